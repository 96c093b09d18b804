//! A batch of 2025-03-26, the only revision that has them: which messages it holds, how each is answered, and the array of
//! the replies, which are in the order of their requests. A connection of another revision, or one that has not begun, has
//! no batches: an array is one malformed message.
//!
//! Only its requests wait for capacity, or are refused: responses and notifications are handled as soon as the batch is
//! received, after its requests have been started or queued, so that these can be cancelled. A ping is answered in the
//! array of the requests that it was sent with.
//!
//! | | stdio and byte streams: `receive_batch` of `transport/stream_connection.rs` | HTTP: `start_if_batch` of `transport/http/legacy/post.rs` |
//! |---|---|---|
//! | all requests are answered | one line with the array | the array; if messages were sent before, or the client takes no JSON, an event stream with an event for each reply |
//! | it has no requests | nothing is written | `202` |
//! | it is empty, has more than [`MAX_BATCH`] messages or contains `initialize` | each request gets the error; without requests it is one error without an id, which this revision cannot send | `400` with one error |

use serde_json::value::RawValue;

use super::{
    Request,
    inbound::{Calls, OpenRequests, Registration, StartedCall, StartedRequest, is_initialized},
    request::is_limited,
    response::{Reply, encode},
};
use crate::core::{
    admission::Permit,
    connection::RequestContext,
    jsonrpc::{JsonRpcMessage, MalformedMessage, ProtocolError, parse},
    log_limit::LogLine,
    protocol::Revision,
    server::Server,
};

/// The revision whose messages may be batches.
const REVISION: Revision = Revision::V2025_03_26;

/// Messages in one batch, at most.
const MAX_BATCH: usize = 50;

/// How many messages of a batch that is too long are read, so that their requests can be refused one by one.
const MAX_REFUSED: usize = 1_000;

impl Server {
    /// Starts to answer the requests of a batch, which has passed [`Batch::check`]. `admitted` has a permit for each of its
    /// [limited requests](Batch::limited_requests), where these need some, or the error that all of them get.
    pub(crate) fn start_batch(
        &self,
        batch: &Batch<'_>,
        context: &RequestContext,
        open: Option<OpenRequests<'_>>,
        registrations: &mut Vec<Registration>,
        admitted: Result<Vec<Permit>, ProtocolError>,
    ) -> StartedBatch {
        let (mut permits, refusal) = match admitted {
            Ok(permits) => (permits.into_iter(), None),
            Err(error) => (Vec::new().into_iter(), Some(error)),
        };
        // the transport takes a message from the rate, which may hold many requests
        let of_next = RequestContext { rate_taken: false, ..context.clone() };
        let mut context = context;
        let mut started: Vec<StartedCall> = Vec::new();
        let mut unreadable = None;
        for message in &batch.0 {
            let message = match message {
                Ok(message) => message,
                Err(malformed) if !malformed.expects_response => continue,
                Err(malformed) => {
                    // this revision has no reply without an id, and a client waits for one of every request
                    if let Some(id) = malformed.id.as_deref().or(malformed.long_id.as_deref()) {
                        started.push((id.into(), malformed.error.clone().into()).into());
                    } else {
                        if let Some(LogLine { suppressed }) = self.log_limits().unreadable.line() {
                            let error = &malformed.error;
                            tracing::warn!(suppressed, %error, "a message in a batch could not be read");
                        }
                        unreadable.get_or_insert_with(|| malformed.error.clone());
                    }
                    continue;
                }
            };
            let Some(request) = Request::from_message(message, REVISION, context) else { continue };
            // while the batch was queued
            if Registration::is_cancelled_in(registrations, request.id) {
                continue;
            }
            let is_limited = is_limited(request.method);
            if let Some(error) = refusal.as_ref().filter(|_| is_limited) {
                started.push((request.id.into(), error.clone().into()).into());
                continue;
            }
            context = &of_next;
            if request.params.meta.version.is_some() {
                let text = "a request that names its revision in `_meta` must not be part of a batch";
                let error = ProtocolError::invalid_request(text);
                started.push((request.id.into(), error.into()).into());
                continue;
            }
            let permit = if is_limited { permits.next() } else { None };
            started.push(match self.start_request(request, open, registrations).holding(permit) {
                StartedRequest::Ready(reply) => (request.id.into(), reply).into(),
                StartedRequest::Pending(running) => StartedCall::Pending(running),
            });
        }
        StartedBatch { calls: Calls { started, batch: true, revision: REVISION }, unreadable }
    }

    /// Writes the replies to a batch, of which there is one at least: an array in one line.
    pub(crate) fn encode_batch(&self, out: &mut Vec<u8>, replies: &[(Box<str>, Reply)]) {
        let start = out.len();
        for (id, reply) in replies {
            out.push(if out.len() == start { b'[' } else { b',' });
            encode(out, reply, id, REVISION, self.identity());
        }
        out.push(b']');
    }
}

/// A batch of 2025-03-26 whose requests have been started.
pub(crate) struct StartedBatch {
    pub(crate) calls: Calls,
    /// The error of the first message that cannot be read, not even its id.
    pub(crate) unreadable: Option<ProtocolError>,
}

/// The messages of a batch; one that cannot be read has its error instead. Of a batch that is too long, the first ones.
pub(crate) struct Batch<'a>(Vec<Result<JsonRpcMessage<'a>, MalformedMessage>>);

impl<'a> Batch<'a> {
    pub(crate) fn parse(messages: &[&'a RawValue]) -> Self {
        Self(messages.iter().take(MAX_REFUSED).map(|raw| parse(raw.get().as_bytes())).collect())
    }

    /// Raw JSON of the ids of its requests.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|message| match message {
            Ok(message) if message.is_response() => None,
            Ok(message) => message.id(),
            Err(malformed) => malformed.id.as_deref(),
        })
    }

    /// How many of its requests need capacity; see [`is_limited`].
    pub(crate) fn limited_requests(&self) -> usize {
        let limited = |message: &&JsonRpcMessage<'_>| {
            message.id().is_some() && message.method().is_some_and(is_limited)
        };
        self.0.iter().flatten().filter(limited).count()
    }

    /// Its responses and notifications.
    pub(crate) fn responses_and_notifications(&self) -> impl Iterator<Item = &JsonRpcMessage<'a>> {
        self.0.iter().flatten().filter(|message| message.is_response() || message.id().is_none())
    }

    /// Whether some message of it is `notifications/initialized`.
    pub(crate) fn contains_initialized(&self) -> bool {
        self.0.iter().flatten().any(is_initialized)
    }

    /// Whether some message of it gets a reply, so that the HTTP response has a body.
    #[cfg(feature = "http")]
    pub(crate) fn expects_replies(&self) -> bool {
        self.0.iter().any(|message| match message {
            Ok(message) => message.id().is_some() && !message.is_response(),
            Err(malformed) => malformed.expects_response,
        })
    }

    /// Checks the batch as a whole.
    ///
    /// # Errors
    /// `-32600`: it is empty or too large, or contains `initialize`.
    pub(crate) fn check(&self) -> Result<(), ProtocolError> {
        if !(1..=MAX_BATCH).contains(&self.0.len()) {
            return Err(ProtocolError::invalid_request(format!("a batch holds 1 to {MAX_BATCH} messages")));
        }
        if self.0.iter().flatten().any(|message| message.method() == Some("initialize")) {
            return Err(ProtocolError::invalid_request("`initialize` must not be part of a batch"));
        }
        Ok(())
    }
}
