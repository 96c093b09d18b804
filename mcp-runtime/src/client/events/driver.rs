//! Keeps a subscription going: opens its stream again when that breaks, or polls, with pauses that grow while the server
//! fails. It ends when the server says that the subscription cannot go on.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};

use super::reader::EventReader;
use crate::{
    client::{
        Error,
        connect::shared_client::{CallOptions, SharedClient, params},
        receive::reopening::{Reopening, is_refused},
        requests::result_types::parse,
    },
    core::{jsonrpc::null_is_absent, protocol::METHOD_NOT_FOUND, unix_time::millis},
};

/// How long a server may take to confirm a stream.
const ACTIVE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a stream may be silent: servers send something every 30 seconds.
const SILENCE: Duration = Duration::from_secs(65);
/// How long a server is asked to wait for an event.
const POLL_WAIT: Duration = Duration::from_secs(30);
/// The shortest pause between polls, whatever the server asks for.
const SHORTEST_POLL_PAUSE: Duration = Duration::from_secs(1);
/// The longest one: a server that asks for more is asked again after an hour.
const LONGEST_POLL_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Events that are asked for at once.
const MAX_EVENTS: usize = 100;
/// Codes that refuse the way of delivery only.
const UNSUPPORTED_CODES: [i64; 3] = [METHOD_NOT_FOUND, -32014, -32026];

/// How events come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryMode {
    Push,
    Poll,
}

/// Drives one subscription.
pub(super) struct Driver {
    pub(super) shared: Arc<SharedClient>,
    pub(super) reader: Arc<EventReader>,
    pub(super) arguments: Value,
    pub(super) max_age: Option<Duration>,
    pub(super) mode: DeliveryMode,
}

/// Answers when the subscription has begun, or cannot begin.
type Begun = oneshot::Sender<Result<(), Error>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PollResult {
    events: Vec<Value>,
    #[serde(default)]
    cursor: Value,
    #[serde(default, deserialize_with = "null_is_absent")]
    truncated: bool,
    #[serde(default, deserialize_with = "null_is_absent")]
    has_more: bool,
    next_poll_ms: Option<u64>,
}

impl Driver {
    /// Delivers events until the subscription cannot go on.
    pub(super) async fn drive(self, begun: Begun) -> Error {
        let mut begun = Some(begun);
        let mut reopening = Reopening::new();
        loop {
            reopening.begin();
            let end = match self.mode {
                DeliveryMode::Push => self.stream(&mut begun).await,
                DeliveryMode::Poll => match self.poll(&mut begun).await {
                    Ok(()) => {
                        reopening.succeed();
                        continue;
                    }
                    failed => failed,
                },
            };
            reopening.end(&end);
            let ended = || Error::not_connected("the server has ended the stream of events");
            let error = end.err().unwrap_or_else(ended);
            if let Some(begun) = begun.take() {
                // fails if the program does not wait any more
                let _given_up = begun.send(Err(error.clone()));
                return error;
            }
            if self.reader.terminated().is_some() || is_refused(&self.shared, &error) {
                return error;
            }
            tracing::debug!(event = %self.reader.name, error = error.in_one_line(), "the subscription was interrupted");
            // events that occur until it is open again are lost where the server cannot send them again
            if self.reader.cursor().is_none() {
                self.reader.miss();
            }
            reopening.pause().await;
        }
    }

    fn members(&self) -> Value {
        let cursor = self.reader.cursor();
        let mut members = json!({ "name": self.reader.name, "arguments": self.arguments, "cursor": cursor });
        // it bounds what is sent again, which begins at a cursor
        if let Some(age) = self.max_age.filter(|_| cursor.is_some()) {
            members["maxAgeMs"] = millis(age).into();
        }
        members
    }

    /// Receives a stream until the server ends it.
    ///
    /// # Errors
    /// It broke, or was refused.
    async fn stream(&self, begun: &mut Option<Begun>) -> Result<(), Error> {
        let reader = &self.reader;
        reader.begin_stream();
        let receiving = reader.clone();
        let listener = Arc::new(move |kind: &str, params: &Value| receiving.notified(kind, params));
        let mut request =
            pin!(self.shared.stream("events/stream", self.members(), listener, begun.is_none()));
        let mut silence = pin!(sleep(ACTIVE_TIMEOUT));
        loop {
            tokio::select! {
                // messages that came before the response are delivered before it
                biased;
                () = reader.activity.notified() => {
                    if let Some(begun) = begun.take_if(|_| reader.is_active()) {
                        // fails if the program does not wait any more
                        let _given_up = begun.send(Ok(()));
                    }
                    if let Some(error) = reader.terminated() {
                        return Err(error);
                    }
                    silence.as_mut().reset(Instant::now() + SILENCE);
                }
                reply = &mut request => {
                    return reader.terminated().map_or(reply, Err);
                }
                () = &mut silence => return Err(Error::not_connected("the stream of events is silent")),
            }
        }
    }

    /// Polls once, and waits until it is time for the next poll.
    ///
    /// # Errors
    /// The poll failed.
    async fn poll(&self, begun: &mut Option<Begun>) -> Result<(), Error> {
        let mut members = self.members();
        let wait = POLL_WAIT.min(self.shared.options.request_timeout / 2);
        members["timeoutMs"] = millis(wait).into();
        members["maxEvents"] = MAX_EVENTS.into();
        let before = self.reader.cursor();
        // boxed: the future of the subscription would have room for it otherwise
        let polled: Pin<Box<dyn Future<Output = Result<String, Error>> + Send + '_>> = {
            let members = params(members);
            let options = CallOptions { in_background: begun.is_none(), ..CallOptions::default() };
            Box::pin(async move { Ok(self.shared.request("events/poll", members, &options).await?.json) })
        };
        let polled = polled.await.and_then(|json| parse::<PollResult>(&json, "events/poll"));
        let result = polled?;
        let came = !result.events.is_empty();
        for occurrence in &result.events {
            self.reader.deliver(occurrence);
        }
        self.reader.advance(Some(&result.cursor));
        if result.truncated {
            self.reader.miss();
        }
        self.reader.confirm();
        if let Some(begun) = begun.take() {
            // fails if the program does not wait any more
            let _given_up = begun.send(Ok(()));
        }
        // a server that always has more, and never anything, is not asked without end
        if result.has_more && came && before != self.reader.cursor() {
            return Ok(());
        }
        let pause = result.next_poll_ms.map_or(SHORTEST_POLL_PAUSE, Duration::from_millis);
        sleep_until(Instant::now() + pause.clamp(SHORTEST_POLL_PAUSE, LONGEST_POLL_PAUSE)).await;
        Ok(())
    }
}

/// Whether the server does not deliver in this way.
pub(super) fn is_unsupported(error: &Error) -> bool {
    error.code().is_some_and(|code| UNSUPPORTED_CODES.contains(&code))
}
