//! A server over HTTP+SSE, the transport of 2024-11-05: one event stream has all messages of the server, and each of the
//! client's is posted to the address that the first event names.
//!
//! See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    LinkError,
    event_stream::EventStreamParser,
    http_link::{HttpLink, Login},
    stream_link::{Received, StreamLink},
};
use crate::{
    client::{
        Error,
        connect::client_builder::ClientOptions,
        large_text::run_by_size,
        operation::{Operation, TimeLimit},
        receive::inbox::Inbox,
    },
    core::jsonrpc::parse,
};

/// How long a server may take to name the address for messages.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a server may take to accept a message; the response comes on the event stream.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the event stream, and waits for the address for messages.
///
/// # Errors
/// The server has no such stream, or names an address of another origin.
pub(in crate::client) async fn open(
    http: Arc<HttpLink>,
    inbox: Arc<Inbox>,
    token: CancellationToken,
    options: &ClientOptions,
    operation: &Operation,
) -> Result<StreamLink, Error> {
    let (max_message, options) = (options.max_message, options.clone());
    let opened = async {
        let mut response = http.open_events(Some(operation)).await?;
        let mut events = EventStreamParser::new(max_message);
        let first = events.next(&mut response, None).await?.filter(|event| event.kind == "endpoint");
        let first = first.ok_or_else(|| Error::invalid("the event stream names no address for messages"))?;
        Ok::<_, Error>((response, events, String::from_utf8_lossy(&first.data).into_owned()))
    };
    // the time of a login does not count
    let limit = TimeLimit::new(ENDPOINT_TIMEOUT, None);
    let (mut response, mut events, address) = operation.watch(limit, opened).await??;
    // credentials go where the program said, and nowhere else
    let address = http.url.join(&address).ok().filter(|address| address.origin() == http.url.origin());
    let address = address
        .ok_or_else(|| Error::invalid("the address for messages is not of the event stream's origin"))?;
    let ended = token.clone();
    Ok(StreamLink::new(
        None,
        Some(http.clone()),
        inbox,
        token,
        |queue, received| async move {
            tokio::select! {
                () = write(&http, &options, &address, queue, received) => {}
                () = ended.cancelled() => {}
            }
        },
        move |received| async move {
            loop {
                match events.next(&mut response, None).await {
                    Ok(Some(event)) if matches!(&*event.kind, "" | "message") => {
                        let taker = received.clone();
                        let bytes = event.data.len();
                        if run_by_size(bytes, move || taker.take(&event.data)).await.is_err() {
                            return;
                        }
                    }
                    Ok(Some(_)) => {}
                    // a stream that breaks is the end of the session
                    Ok(None) => return,
                    Err(error) => return received.fail_waiting(&error),
                }
            }
        },
    ))
}

/// Posts messages in their order. A request that the server does not accept fails.
async fn write(
    http: &HttpLink,
    options: &ClientOptions,
    address: &Url,
    mut queue: mpsc::Receiver<Vec<u8>>,
    received: Received,
) {
    while let Some(message) = queue.recv().await {
        let parsed = parse(&message).ok().filter(|message| !message.is_response());
        let id: Option<u64> = parsed.and_then(|message| message.id()?.parse().ok());
        // the time of a login does not count
        let posting = Operation::within(options, TimeLimit::new(POST_TIMEOUT, None));
        let login = Login::Allowed(Some(&posting));
        let posted = posting.watch(None, http.post_message(address, message, login)).await;
        let Err(error) = posted.and_then(|posted| posted.map_err(LinkError::into_error)) else { continue };
        match id {
            Some(id) => received.fail(id, error),
            None => tracing::debug!(error = error.in_one_line(), "a message was not accepted by the server"),
        }
    }
}
