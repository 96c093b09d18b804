//! Event streams of a server over HTTP: those with the reply to a request, and the standalone one of a legacy server. One
//! that breaks is resumed after its last event, within the session in which it began, and not for ever.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, StatusCode};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{
    event_stream::EventStreamParser,
    http_link::{HttpLink, Login},
    http_reply::{HttpReply, take_body},
    outgoing::OutgoingRequest,
};
use crate::client::{
    Error,
    receive::{
        handlers::ChangeEvent,
        reopening::{STABLE_IF_ENDED, is_final_status},
    },
};

/// How long to wait before a broken stream is resumed, unless the server says otherwise.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Attempts to resume a stream without any new event.
const MAX_RESUMPTIONS: u32 = 5;
/// The longest pause between attempts to open the standalone stream.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The longest one that a server may ask for: one that asks for more is asked again after an hour.
const LONGEST_RETRY: Duration = Duration::from_secs(60 * 60);
/// The shortest pause between streams, whatever the server asks for.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// An event stream, of one response or of several that resume it.
pub(super) struct HttpStream<'a> {
    link: &'a Arc<HttpLink>,
    parser: EventStreamParser,
    /// The session in which it began: another one has its own streams.
    session: Option<HeaderValue>,
    /// Attempts to resume it since its last event.
    fruitless: u32,
}

impl<'a> HttpStream<'a> {
    pub(super) fn new(link: &'a Arc<HttpLink>, session: Option<HeaderValue>) -> Self {
        Self { link, parser: EventStreamParser::new(link.max_message), session, fruitless: 0 }
    }

    /// Reads up to the response to a request; the stream of a legacy server is resumed where it breaks.
    pub(super) async fn read_reply(
        mut self,
        request: &OutgoingRequest<'_>,
        mut response: HttpReply,
    ) -> Result<String, Error> {
        loop {
            let before = self.parser.last_id.clone();
            if let Some(reply) = self.read_events(&mut response, Some(request)).await? {
                return Ok(reply);
            }
            if request.revision.is_modern() {
                return Err(Error::not_connected("the event stream ended before the response"));
            }
            if self.parser.last_id.is_none() {
                return Err(Error::not_connected(
                    "the event stream ended before the response, and cannot be resumed",
                ));
            }
            self.fruitless = if before == self.parser.last_id { self.fruitless + 1 } else { 0 };
            response = self.resume(request).await?;
            self.parser.resume();
        }
    }

    /// The response that goes on after the last event.
    async fn resume(&mut self, request: &OutgoingRequest<'_>) -> Result<HttpReply, Error> {
        // the server may have done what was asked for: the request is not repeated
        let lost = || Error::not_connected("the session was lost before the response");
        while self.fruitless <= MAX_RESUMPTIONS {
            sleep(self.parser.retry.unwrap_or(RECONNECT_DELAY).max(SHORTEST_PAUSE)).await;
            if self.link.session() != self.session {
                return Err(lost());
            }
            match self.link.get(self.parser.last_id.as_ref(), Login::Allowed(request.operation)).await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) if response.status() == StatusCode::NOT_FOUND && self.session.is_some() => {
                    self.link.inbox.session_lost();
                    return Err(lost());
                }
                Ok(response) if response.status().is_client_error() => {
                    return Err(response.into_error(self.link).await);
                }
                _ => self.fruitless += 1,
            }
        }
        Err(Error::not_connected("the event stream broke, and could not be resumed"))
    }

    /// Reads events until the response to `request`, or the end of the response.
    async fn read_events(
        &mut self,
        response: &mut HttpReply,
        request: Option<&OutgoingRequest<'_>>,
    ) -> Result<Option<String>, Error> {
        let id = request.map(|request| request.id);
        let operation = request.and_then(|request| request.operation);
        while let Some(event) = self.parser.next(response, operation).await? {
            let is_message = matches!(&*event.kind, "" | "message") && !event.data.is_empty();
            if is_message && let Some(reply) = take_body(self.link, event.data, id).await? {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    /// Receives what a legacy server sends that belongs to no request: opens the stream again whenever it ends, until there
    /// is another session. `answered` is dropped when the server has answered for the first time.
    pub(super) async fn listen(mut self, answered: oneshot::Sender<()>) {
        let mut answered = Some(answered);
        let mut pause = RECONNECT_DELAY;
        // grows while streams end without an event
        let mut shortest = SHORTEST_PAUSE;
        let mut was_open = false;
        while self.link.session() == self.session {
            let response = self.link.get(self.parser.last_id.as_ref(), Login::Background).await;
            // those who wait are notified by its end
            drop(answered.take());
            match response {
                Ok(mut response) if response.status().is_success() && response.is_event_stream() => {
                    pause = RECONNECT_DELAY;
                    let before = self.parser.last_id.clone();
                    // with an id, the server sends what came meanwhile
                    if std::mem::replace(&mut was_open, true) && before.is_none() {
                        self.link.inbox.restored();
                    }
                    let begun = Instant::now();
                    let read = self.read_events(&mut response, None).await;
                    let is_fruitless = self.parser.last_id.is_none() || self.parser.last_id == before;
                    let is_fruitless = is_fruitless && begun.elapsed() < STABLE_IF_ENDED;
                    if read.is_err() {
                        // what cannot be read would come again
                        self.parser = EventStreamParser::new(self.link.max_message);
                    }
                    shortest = if is_fruitless { (shortest * 2).min(LONGEST_PAUSE) } else { SHORTEST_PAUSE };
                    self.parser.resume();
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND && self.session.is_some() => {
                    // a server may have no stream there, and keep the session
                    return self.link.inbox.session_lost();
                }
                // most servers have none
                Ok(response)
                    if response.status() == StatusCode::NOT_FOUND
                        || is_final_status(response.status().as_u16()) =>
                {
                    if was_open {
                        self.link.inbox.notify_all(&ChangeEvent::Ended);
                    }
                    return;
                }
                _ => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            sleep(pause_before_stream(self.parser.retry, pause, shortest)).await;
        }
    }
}

/// The pause before the standalone stream is opened again: what the server asks for, within bounds, else `pause`.
fn pause_before_stream(retry: Option<Duration>, pause: Duration, shortest: Duration) -> Duration {
    match retry {
        Some(retry) => retry.clamp(shortest, LONGEST_RETRY),
        None => pause.clamp(shortest, LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_ask_for_a_pause_of_up_to_an_hour_before_the_standalone_stream() {
        let seconds = Duration::from_secs;
        let pause = |retry: Option<u64>| pause_before_stream(retry.map(seconds), seconds(2), SHORTEST_PAUSE);
        assert_eq!(pause(None), seconds(2));
        assert_eq!(pause(Some(300)), seconds(300));
        assert_eq!((pause(Some(0)), pause(Some(100_000))), (SHORTEST_PAUSE, seconds(3600)));
        assert_eq!(pause_before_stream(None, seconds(100), SHORTEST_PAUSE), LONGEST_PAUSE);
    }
}
