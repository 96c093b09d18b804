//! Delivers the events of one subscription: each by itself, again with growing pauses for some minutes, and in memory that
//! is bounded in number and bytes. Events that are given up show as a gap. A slow endpoint holds up no other subscription.

use std::{
    collections::VecDeque,
    future::pending,
    pin::Pin,
    sync::{Arc, Weak},
    time::Duration,
};

use hyper::body::Bytes;
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    Webhook, Webhooks,
    endpoint::{DeliveryFailure, Endpoints, Message, host_of, is_final, jittered},
    leader::keep_saved,
};
use crate::{
    capability::events::{
        error::{callback_endpoint, forbidden},
        ring::ReadPosition,
        subscription::EventSubscription,
    },
    core::{
        admission::{Turn, Turns},
        crypto::random_id,
        jsonrpc::{Object, ProtocolError},
        server::{Server, WeakServer},
    },
};

/// The largest body of a delivery.
pub(super) const MAX_BODY: usize = 256 << 10;
/// Events of a subscription that are being delivered, or wait to be delivered again.
const MAX_OUTSTANDING: usize = 32;
/// How many of them are sent at once.
const MAX_AT_ONCE: usize = 4;
/// Between the first attempts; the next pause is three times as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(4 * 60);
/// How long an event is tried.
const RETRY_WINDOW: Duration = Duration::from_secs(12 * 60);
/// Attempts to end a subscription in the store.
const MAX_ENDS: usize = 30;
/// Attempts to tell an endpoint that its subscription has ended.
const MAX_FAREWELLS: usize = 3;
/// How often access is checked while nothing happens.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Between two attempts to end a subscription in the store.
const END_PAUSE: Duration = Duration::from_secs(1);

/// How a delivery has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryEnd {
    Accepted,
    /// Refused for good by an endpoint that does not want it.
    Refused,
    /// The event is lost for the endpoint.
    Lost,
    /// The same, since it was not accepted in time.
    GivenUp,
}

/// A delivery in progress.
struct Outstanding {
    number: u64,
    /// The position before the event.
    before: ReadPosition,
    is_done: bool,
}

/// Drives one subscription.
pub(super) struct Deliverer {
    pub(super) server: WeakServer,
    pub(super) webhooks: Weak<Webhooks>,
    pub(super) endpoints: Arc<Endpoints>,
    pub(super) bytes: Arc<Turns>,
    pub(super) webhook: Arc<Webhook>,
    pub(super) subscription: EventSubscription,
}

/// The message of a delivery, and its destination.
struct OutgoingMessage {
    endpoints: Arc<Endpoints>,
    webhook: Arc<Webhook>,
    turns: Arc<Semaphore>,
    id: String,
    body: Vec<Bytes>,
    /// For the bytes of the body.
    _permit: Option<Turn>,
}

impl Deliverer {
    /// Delivers until the subscription ends.
    pub(super) async fn run(mut self) {
        let webhook = self.webhook.clone();
        let mut error = tokio::select! {
            biased;
            () = webhook.revoked.cancelled() => Some(forbidden("the access of the subscriber has ended")),
            () = webhook.token.cancelled() => None,
            () = webhook.expired() => webhook.expiry_error(),
            () = keep_saved(self.webhooks.clone(), webhook.clone()) => webhook.expiry_error(),
            error = self.deliver() => error,
        };
        if error.is_some() {
            for _ in 0..MAX_ENDS {
                let Some(webhooks) = self.webhooks.upgrade() else { break };
                if let Ok(is_ended) = webhooks.end_told(&webhook).await {
                    error = error.filter(|_| is_ended);
                    break;
                }
                drop(webhooks);
                // otherwise it is ended, and its endpoint told again, when it is delivered the next time
                sleep(END_PAUSE).await;
            }
        }
        // from now on, a request for the same is one for another subscription
        webhook.token.cancel();
        if let Some(webhooks) = self.webhooks.upgrade() {
            webhooks.remove(&webhook);
        }
        if let Some(error) = error {
            self.terminate(&error).await;
        }
    }

    /// Delivers until the server is gone, or the error with which it ends the subscription.
    async fn deliver(&mut self) -> Option<ProtocolError> {
        let mut deliveries: JoinSet<(u64, DeliveryEnd)> = JoinSet::new();
        let mut outstanding: VecDeque<Outstanding> = VecDeque::new();
        let turns = Arc::new(Semaphore::new(MAX_AT_ONCE));
        let (mut next_number, mut gap, mut is_followed) = (0u64, None, false);
        // a turn for the largest message, for which it waits before it reads the next event
        let mut turn: Option<Pin<Box<dyn Future<Output = Turn> + Send>>> = None;
        loop {
            let server = self.server.upgrade()?;
            self.subscription.subscriber.caller = Some(self.webhook.caller());
            if self.webhook.is_abandoned() {
                return Some(callback_endpoint("its endpoint has accepted nothing for days"));
            }
            let entry = match self.subscription.entry(&server) {
                Ok(entry) => entry,
                Err(error) => return Some(error),
            };
            if gap.is_none() && self.webhook.take_gap() {
                gap = Some(next_number);
                let cursor = self.cursor(&server, &outstanding, &self.subscription.position).ok()?;
                let delivery = self.delivery(&turns, control_id("gap")?, gap_body(&cursor), None);
                deliveries.spawn(delivery.run(next_number));
                next_number += 1;
            }
            let position = self.subscription.position;
            let has_room = outstanding.len() < MAX_OUTSTANDING;
            if !std::mem::replace(&mut is_followed, true) {
                // of a subscription that another process has begun, this one has read nothing yet
                entry.ring.follow(&server).await;
            }
            // neither keeps a server that the program has dropped
            drop((server, entry));
            tokio::select! {
                Some(done) = deliveries.join_next() => {
                    // a delivery that has panicked is one that is lost, and its number is not known
                    let Ok((number, end)) = done else { return None };
                    let is_lost = matches!(end, DeliveryEnd::Lost | DeliveryEnd::GivenUp);
                    match gap == Some(number) {
                        true => {
                            gap = None;
                            if is_lost {
                                self.webhook.postpone_gap();
                            }
                        }
                        false if is_lost => self.webhook.record_gap(),
                        false => {}
                    }
                    if let Some(delivered) = outstanding.iter_mut().find(|one| one.number == number) {
                        delivered.is_done = true;
                    }
                    while outstanding.front().is_some_and(|one| one.is_done) {
                        outstanding.pop_front();
                    }
                    self.note_watermark(&outstanding);
                }
                () = self.subscription.wait(), if has_room && turn.is_none() => {
                    let (bytes, webhook) = (self.bytes.clone(), self.webhook.clone());
                    let wait = async move { bytes.wait(&webhook.owner, host_of(&webhook.url)).await };
                    turn = Some(Box::pin(wait));
                }
                mut taken = async {
                    match &mut turn {
                        Some(turn) => turn.await,
                        None => pending().await,
                    }
                } => {
                    turn = None;
                    let server = self.server.upgrade()?;
                    let read = match self.subscription.read(&server, None, 1).await {
                        Ok(read) => read,
                        Err(error) => return Some(error),
                    };
                    if read.truncated {
                        self.webhook.record_gap();
                    }
                    if let Some(event) = read.events.first() {
                        self.webhook.retry_gap();
                        let cursor = self.cursor(&server, &outstanding, &event.position).ok()?;
                        let body = event.parts(&self.webhook.name, &cursor);
                        let bytes = body.iter().map(Bytes::len).sum();
                        if bytes > MAX_BODY {
                            self.webhook.record_gap();
                            tracing::warn!(
                                event = %self.webhook.name,
                                subscription = %self.webhook.id,
                                bytes,
                                "an event is not delivered: its message has more than 256 KiB"
                            );
                        } else {
                            taken.shrink(bytes);
                            outstanding.push_back(Outstanding {
                                number: next_number,
                                before: position,
                                is_done: false,
                            });
                            let delivery = self.delivery(&turns, event.id().to_owned(), body, Some(taken));
                            deliveries.spawn(delivery.run(next_number));
                            next_number += 1;
                        }
                    }
                    self.note_watermark(&outstanding);
                }
                () = self.webhook.gap_recorded.notified() => {}
                () = sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    fn delivery(
        &self,
        turns: &Arc<Semaphore>,
        id: String,
        body: Vec<Bytes>,
        permit: Option<Turn>,
    ) -> OutgoingMessage {
        OutgoingMessage {
            endpoints: self.endpoints.clone(),
            webhook: self.webhook.clone(),
            turns: turns.clone(),
            id,
            body,
            _permit: permit,
        }
    }

    /// The cursor that is safe to keep once a delivery is accepted which leads to `after`: nothing before it is on its way.
    fn cursor(
        &self,
        server: &Server,
        outstanding: &VecDeque<Outstanding>,
        after: &ReadPosition,
    ) -> Result<String, ProtocolError> {
        let position = outstanding.front().map_or(after, |first| &first.before);
        self.subscription.cursor(server, position)
    }

    /// Keeps the position below which everything was delivered or given up.
    fn note_watermark(&self, outstanding: &VecDeque<Outstanding>) {
        let position = outstanding.front().map_or(&self.subscription.position, |first| &first.before);
        self.webhook.set_watermark(*position);
    }

    /// Tells the endpoint that the subscription has ended.
    async fn terminate(&self, error: &ProtocolError) {
        let Some(id) = control_id("terminated") else { return };
        let delivery = self.delivery(&Arc::new(Semaphore::new(1)), id, terminated_body(error), None);
        for attempt in 0..MAX_FAREWELLS {
            if attempt > 0 {
                sleep(jittered(FIRST_PAUSE)).await;
            }
            match delivery.send().await {
                Ok(()) => return,
                Err(failure) if is_final(failure) => return,
                Err(_) => {}
            }
        }
    }
}

impl OutgoingMessage {
    /// Sends the message until it is accepted, or its time is over.
    async fn run(self, number: u64) -> (u64, DeliveryEnd) {
        let mut attempts = Attempts::begin();
        let end = loop {
            if let Some(end) = attempts.after(self.send().await).await {
                break end;
            }
        };
        if end == DeliveryEnd::GivenUp {
            tracing::warn!(
                event = %self.webhook.name,
                subscription = %self.webhook.id,
                "a message is given up: its endpoint did not accept it in time"
            );
        }
        (number, end)
    }

    async fn send(&self) -> Result<(), DeliveryFailure> {
        // never closed
        let _turn = self.turns.acquire().await;
        let Webhook { id, url, owner, .. } = &*self.webhook;
        let message =
            Message { id: &self.id, subscription: id, body: &self.body, secrets: self.webhook.secrets() };
        let sent = self.endpoints.send(url, owner, message).await;
        self.webhook.record(sent);
        sent
    }
}

/// How often a message is tried.
struct Attempts {
    started: Instant,
    pause: Duration,
}

impl Attempts {
    fn begin() -> Self {
        Self { started: Instant::now(), pause: FIRST_PAUSE }
    }

    /// Waits until the next attempt, or says how the delivery has ended with this one.
    async fn after(&mut self, sent: Result<(), DeliveryFailure>) -> Option<DeliveryEnd> {
        match sent {
            Ok(()) => return Some(DeliveryEnd::Accepted),
            Err(DeliveryFailure::Status(410)) => return Some(DeliveryEnd::Refused),
            Err(failure) if is_final(failure) => return Some(DeliveryEnd::Lost),
            Err(_) => {}
        }
        let wait = jittered(self.pause);
        if self.started.elapsed() + wait > RETRY_WINDOW {
            return Some(DeliveryEnd::GivenUp);
        }
        sleep(wait).await;
        self.pause = (self.pause * 3).min(LONGEST_PAUSE);
        None
    }
}

/// The id of a message that is not an event's.
pub(super) fn control_id(kind: &str) -> Option<String> {
    Some(format!("msg_{kind}_{}", random_id().ok()?))
}

fn gap_body(cursor: &str) -> Vec<Bytes> {
    let mut body = Vec::new();
    let mut object = Object::new(&mut body);
    object.str("type", "gap").str("cursor", cursor);
    object.end();
    vec![body.into()]
}

fn terminated_body(error: &ProtocolError) -> Vec<Bytes> {
    let mut told = serde_json::json!({ "code": error.code, "message": error.message });
    if let Some(data) = &error.data {
        told["data"] = Value::clone(data);
    }
    let mut body = Vec::new();
    let mut object = Object::new(&mut body);
    object.str("type", "terminated").value("error", &told);
    object.end();
    vec![body.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of the attempts, in seconds, at an endpoint that answers so at each of them.
    async fn attempts(answer: impl Fn(f64) -> Result<(), DeliveryFailure>) -> (DeliveryEnd, Vec<f64>) {
        let (mut attempts, mut times) = (Attempts::begin(), Vec::new());
        loop {
            let time = attempts.started.elapsed().as_secs_f64();
            times.push(time);
            if let Some(end) = attempts.after(answer(time)).await {
                return (end, times);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_was_down_for_twenty_seconds_gets_the_event() {
        for _ in 0..100 {
            let answer = |time| if time < 20.0 { Err(DeliveryFailure::Connection) } else { Ok(()) };
            let (end, times) = attempts(answer).await;
            assert_eq!(end, DeliveryEnd::Accepted);
            assert!(times.len() <= 4 && times.iter().all(|time| *time < 80.0), "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_some_minutes_differ_and_end_after_ten_to_fifteen_minutes() {
        let mut seconds = Vec::new();
        for failure in [DeliveryFailure::Timeout, DeliveryFailure::Tls, DeliveryFailure::Status(302)] {
            for status in [failure, DeliveryFailure::Status(404), DeliveryFailure::Status(503)] {
                let begun = Instant::now();
                let (end, times) = attempts(|_| Err(status)).await;
                assert_eq!(end, DeliveryEnd::GivenUp);
                assert!(begun.elapsed() <= Duration::from_secs(15 * 60));
                let last = times.last().copied().unwrap_or_default();
                assert!((5..=8).contains(&times.len()) && last > 5.0 * 60.0, "{times:?}");
                let pauses: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
                assert!((4.0..=6.0).contains(&pauses[0]), "{pauses:?}");
                assert!(pauses[1] > pauses[0] && pauses[2] > pauses[1], "{pauses:?}");
                assert!(pauses.iter().all(|pause| *pause <= 4.0 * 60.0 * 1.2), "{pauses:?}");
                seconds.push(pauses[0].to_bits());
            }
        }
        seconds.sort_unstable();
        seconds.dedup();
        assert!(seconds.len() > 1, "many endpoints do not get it at the same time");
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_endpoint_refuses_for_good_is_tried_once() {
        for (status, expected) in [(410, DeliveryEnd::Refused), (413, DeliveryEnd::Lost)] {
            let (end, times) = attempts(|_| Err(DeliveryFailure::Status(status))).await;
            assert_eq!((end, times.len()), (expected, 1), "{status}");
        }
    }
}
