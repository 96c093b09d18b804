//! The response to calls: JSON if they complete soon and send nothing before their results, an event stream otherwise.
//! The calls of an event stream are driven by a task, whether or not the client reads it.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Response, StatusCode};
use hyper::body::Bytes;
use tokio::{
    runtime::Handle,
    time::{Sleep, sleep},
};

use super::{
    cut_off::CutOffWaiter,
    endpoint::Endpoint,
    http_error::{HttpError, TOO_MANY_UNREAD},
    legacy::LegacyClient,
    request_connection::RequestConnection,
    response_body::{
        ResponseBody, charge_response, copy_status_and_headers, empty_response, event_stream_response,
        json_response,
    },
    sse::{COMMENT, message_event, write_event},
};
use crate::core::{
    admission::Permit,
    connection::{Outbound, Put, Receiver},
    dispatch::{Calls, NotificationStream, Reply, StartedRequest, encode},
    maybe_ready::MaybeReady,
    protocol::Revision,
    server::Server,
    spawn::{spawn, spawn_on},
};

/// After this time without a result the response becomes an event stream, which can be kept alive.
const MAX_SILENCE: Duration = Duration::from_secs(10);

/// A response, as far as it is known without waiting.
pub(super) type StartedResponse = MaybeReady<Response<ResponseBody>>;

impl From<HttpError> for StartedResponse {
    fn from(error: HttpError) -> Self {
        Self::Ready(error.into())
    }
}

/// The response to calls that are running. If it is dropped, the client has disconnected.
pub(super) struct HttpResponseFuture {
    /// Absent once there is a response.
    calls: Option<Calls>,
    endpoint: Arc<Endpoint>,
    connection: Arc<RequestConnection>,
    /// The client of calls of a legacy revision, which continue when it disconnects.
    legacy: Option<LegacyClient>,
    silence: Option<Pin<Box<Sleep>>>,
    cut_off: CutOffWaiter,
}

/// Whether a response has to become an event stream now.
enum Format {
    Undecided,
    EventStream {
        /// Nothing has been sent, so a comment has to open the stream.
        opening_comment: bool,
    },
}

impl HttpResponseFuture {
    pub(super) fn new(
        endpoint: &Arc<Endpoint>,
        calls: Calls,
        connection: &Arc<RequestConnection>,
        legacy: Option<LegacyClient>,
    ) -> Pin<Box<Self>> {
        let (endpoint, connection) = (endpoint.clone(), connection.clone());
        Box::pin(Self { calls: Some(calls), endpoint, connection, legacy, silence: None, cut_off: None })
    }

    fn poll_format(&mut self, cx: &mut Context<'_>) -> Format {
        let accepts = self.connection.accepts();
        if !accepts.stream {
            return Format::Undecided;
        }
        let is_empty = self.connection.outbound().wake_on_message(cx);
        if !is_empty || self.legacy.as_ref().is_some_and(LegacyClient::is_closing) {
            return Format::EventStream { opening_comment: false };
        }
        if !accepts.json {
            return Format::EventStream { opening_comment: true };
        }
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(MAX_SILENCE)));
        match silence.as_mut().poll(cx) {
            Poll::Ready(()) => Format::EventStream { opening_comment: true },
            Poll::Pending => Format::Undecided,
        }
    }
}

impl Future for HttpResponseFuture {
    type Output = Response<ResponseBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<ResponseBody>> {
        let this = &mut *self;
        let Some(calls) = &mut this.calls else { return Poll::Pending };
        let mut has_ended = calls.poll(cx).is_ready();
        if !has_ended && this.endpoint.cut_off.poll(&mut this.cut_off, cx).is_ready() {
            calls.cut_off();
            has_ended = true;
        }
        if has_ended {
            let response = calls_response(&this.endpoint.server, calls, &this.connection);
            this.calls = None;
            return Poll::Ready(response);
        }
        let Format::EventStream { opening_comment } = this.poll_format(cx) else { return Poll::Pending };
        let Some(calls) = this.calls.take() else { return Poll::Pending };
        Poll::Ready(match &this.legacy {
            Some(client) => {
                client.stream().response(&this.endpoint, calls, &this.connection, opening_comment)
            }
            None => stream_response(&this.endpoint, calls, &this.connection, opening_comment),
        })
    }
}

/// Answers calls of 2026-07-28 with an event stream; they are cancelled when the client disconnects.
fn stream_response(
    endpoint: &Arc<Endpoint>,
    mut calls: Calls,
    connection: &RequestConnection,
    opening_comment: bool,
) -> Response<ResponseBody> {
    let (endpoint, outbound) = (endpoint.clone(), connection.outbound().clone());
    if opening_comment {
        outbound.put_short(COMMENT.to_vec());
    }
    let receiver = Receiver::new(outbound.clone());
    spawn(async move {
        tokio::select! {
            biased;
            () = outbound.abandoned() => {}
            () = drive_calls(&endpoint, &mut calls, &outbound) => outbound.finish(),
        }
    });
    event_stream_response(ResponseBody::from_events(receiver, None))
}

impl Drop for HttpResponseFuture {
    fn drop(&mut self) {
        if let (Some(mut calls), Some(_)) = (self.calls.take(), &self.legacy) {
            // the functions continue, but no one reads their messages
            self.connection.outbound().abandon();
            // calls beyond the budget are dropped, which cancels them
            if let Ok(runtime) = Handle::try_current()
                && self.endpoint.budgets.detach(&mut calls, &self.connection.owner())
            {
                let cut_off = self.endpoint.cut_off.clone();
                spawn_on(&runtime, async move {
                    tokio::select! {
                        biased;
                        () = poll_fn(|cx| calls.poll(cx)) => {}
                        () = cut_off.wait() => {}
                    }
                });
            }
        }
    }
}

/// Drives calls until they have completed, or a shutdown cuts them off; sends each reply as soon as it is there.
pub(super) async fn drive_calls(endpoint: &Endpoint, calls: &mut Calls, outbound: &Outbound) {
    let revision = calls.revision;
    let send_replies = |calls: &mut Calls| {
        for (id, reply) in calls.take_replies() {
            if outbound.put(reply_event(&endpoint.server, &id, revision, &reply)) == Put::Full {
                let refused = Reply::unavailable(TOO_MANY_UNREAD);
                outbound.put_short(reply_event(&endpoint.server, &id, revision, &refused));
            }
        }
    };
    let ended = poll_fn(|cx| {
        let polled = calls.poll(cx);
        send_replies(calls);
        polled
    });
    let is_cut_off = tokio::select! {
        biased;
        () = ended => false,
        () = endpoint.cut_off.wait() => true,
    };
    if is_cut_off {
        calls.cut_off();
        send_replies(calls);
    }
}

/// Answers a request that opens a stream with that, which does not count as a running request; `permit` is that of the
/// stream.
pub(super) fn subscription_response(
    mut subscription: NotificationStream,
    endpoint: &Endpoint,
    connection: &RequestConnection,
    permit: Permit,
) -> Response<ResponseBody> {
    let shutdown = endpoint.shutdown.clone();
    let caller = connection.caller().filter(|_| !subscription.watches_caller());
    let end = endpoint.stream_end(caller, endpoint.options.max_stream_age);
    let outbound = connection.outbound().clone();
    let receiver = Receiver::new(outbound.clone());
    spawn(async move {
        let messages = async {
            // changes that the client has not read yet are kept in the hub, each of them once
            while outbound.wait_for_capacity().await
                && let Some(message) = poll_fn(|cx| subscription.poll_next(cx)).await
                && outbound.put(message_event(&message)) == Put::Queued
            {}
        };
        tokio::select! {
            biased;
            () = outbound.abandoned() => return,
            () = messages => {}
            () = shutdown.cancelled() => {}
            _ = end => {}
        }
        outbound.put_short(message_event(&subscription.result()));
        outbound.finish();
    });
    event_stream_response(ResponseBody::from_events(receiver, None).holding(Some(permit)))
}

/// The event that holds a reply.
fn reply_event(server: &Server, id: &str, revision: Revision, reply: &Reply) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_event(&mut out, |out| encode(out, reply, id, revision, server.identity()));
    out
}

/// The response to a request that completed immediately.
pub(super) fn reply_response(
    server: &Server,
    connection: &RequestConnection,
    id: &str,
    revision: Revision,
    reply: &Reply,
) -> Response<ResponseBody> {
    // a client that lacks authorization, or is to come again, looks at the response, and not at events
    let is_json = connection.accepts().json && !connection.has_messages();
    let mut response = if is_json || reply.status.is_of_all_revisions() {
        let mut out = Vec::with_capacity(256);
        encode(&mut out, reply, id, revision, server.identity());
        json_response(StatusCode::OK, out)
    } else {
        complete_stream_response([reply_event(server, id, revision, reply)], connection)
    };
    charge_response(&mut response, connection, Some(id));
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        return response;
    }
    copy_status_and_headers(&mut response, reply, revision.is_modern());
    response
}

/// The response to a request that was started; while it runs it holds `permit`.
pub(super) fn request_response(
    endpoint: &Arc<Endpoint>,
    connection: &Arc<RequestConnection>,
    (id, revision): (&str, Revision),
    started: StartedRequest,
    permit: Option<Permit>,
    legacy: Option<LegacyClient>,
) -> StartedResponse {
    let mut running = match started {
        StartedRequest::Ready(reply) => {
            return reply_response(&endpoint.server, connection, id, revision, &reply).into();
        }
        StartedRequest::Pending(running) => running,
    };
    if let Some(mut permit) = permit {
        permit.charge(&connection.owner());
        running.hold(permit);
    }
    let calls = Calls::single(running, revision);
    StartedResponse::Pending(HttpResponseFuture::new(endpoint, calls, connection, legacy))
}

/// The response to calls that have all completed.
pub(super) fn calls_response(
    server: &Server,
    calls: &mut Calls,
    connection: &RequestConnection,
) -> Response<ResponseBody> {
    let (batch, revision) = (calls.batch, calls.revision);
    let replies = calls.take_replies();
    let Some((id, first)) = replies.first() else {
        // cancelled: the JSON-RPC request gets no reply, the HTTP request still gets a response
        return if connection.accepts().stream {
            event_stream_response(ResponseBody::complete(Bytes::new()))
        } else {
            empty_response(StatusCode::ACCEPTED)
        };
    };
    if !batch {
        return reply_response(server, connection, id, revision, first);
    }
    let mut response = if connection.has_messages() || !connection.accepts().json {
        let events = replies.iter().map(|(id, reply)| reply_event(server, id, revision, reply));
        complete_stream_response(events, connection)
    } else {
        let mut array = Vec::new();
        server.encode_batch(&mut array, &replies);
        json_response(StatusCode::OK, array)
    };
    charge_response(&mut response, connection, None);
    response
}

/// The events sent before the replies, and those of the replies, as a complete event stream.
fn complete_stream_response(
    replies: impl IntoIterator<Item = Vec<u8>>,
    connection: &RequestConnection,
) -> Response<ResponseBody> {
    let events: Vec<_> = connection.outbound().take().messages.into_iter().chain(replies).collect();
    event_stream_response(ResponseBody::complete(events.concat()))
}
