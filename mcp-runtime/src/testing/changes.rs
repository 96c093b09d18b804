//! The notifications of changes that a test's client receives.

use std::{
    fmt,
    future::poll_fn,
    task::{Context, Poll, Waker},
    time::Duration,
};

use serde_json::Value;

use crate::{
    core::{changes::Subscriber, dispatch::NotificationStream},
    transport::memory::parse_message,
};

/// How long a test waits for a change.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A subscription of a [`TestServer`](super::TestServer): the notifications of changes, or of events, oldest first.
///
/// Dropping it ends the subscription.
#[must_use = "dropping it ends the subscription"]
pub struct Changes {
    source: ChangeSource,
    pub(super) acknowledged: Value,
}

pub(super) enum ChangeSource {
    Stream(Box<NotificationStream>),
    /// The subscriber of a legacy client.
    Session(Subscriber),
}

impl Changes {
    pub(super) fn new(source: ChangeSource, acknowledged: Value) -> Self {
        Self { source, acknowledged }
    }

    /// Receives the acknowledgement, which is the first message.
    pub(super) fn receive_acknowledgement(&mut self) {
        if let Poll::Ready(mut message) = self.poll(&mut Context::from_waker(Waker::noop())) {
            self.acknowledged = message["params"]["notifications"].take();
        }
    }

    /// The part of the filter that the server accepted; for a stream of events, its start: `cursor` on the wire and
    /// `truncated`.
    #[must_use]
    pub fn acknowledged(&self) -> &Value {
        &self.acknowledged
    }

    /// Waits for the next notification.
    ///
    /// # Panics
    /// No notification arrives within 10 seconds, or the server has ended the subscription.
    pub async fn next(&mut self) -> Value {
        match self.next_within(TIMEOUT).await {
            Some(message) if message.get("method").is_some() => message,
            Some(result) => panic!("the server has ended the subscription: {result}"),
            None => panic!("no change was published within {TIMEOUT:?}"),
        }
    }

    /// The next notification, if one was published before.
    ///
    /// # Panics
    /// The server has ended the subscription.
    #[must_use]
    pub fn try_next(&mut self) -> Option<Value> {
        match self.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(message) if message.get("method").is_some() => Some(message),
            Poll::Ready(result) => panic!("the server has ended the subscription: {result}"),
            Poll::Pending => None,
        }
    }

    /// Waits for the server to end the subscription, and returns its result. Changes before that are skipped.
    ///
    /// # Panics
    /// The subscription does not end within 10 seconds.
    pub async fn ended(mut self) -> Value {
        loop {
            match self.next_within(TIMEOUT).await {
                Some(mut message) if message.get("method").is_none() => {
                    return message.get_mut("result").map_or(Value::Null, Value::take);
                }
                Some(_) => {}
                None => panic!("the server did not end the subscription within {TIMEOUT:?}"),
            }
        }
    }

    async fn next_within(&mut self, limit: Duration) -> Option<Value> {
        tokio::time::timeout(limit, poll_fn(|cx| self.poll(cx))).await.ok()
    }

    /// The next message; a reply once the subscription has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Value> {
        let bytes = match &mut self.source {
            ChangeSource::Stream(subscription) => match subscription.poll_next(cx) {
                Poll::Ready(Some(message)) => message,
                Poll::Ready(None) => subscription.result(),
                Poll::Pending => return Poll::Pending,
            },
            ChangeSource::Session(subscriber) => match subscriber.poll(cx) {
                Poll::Ready(change) => change.notification(|_| {}),
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(parse_message(&bytes))
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("acknowledged", &self.acknowledged).finish_non_exhaustive()
    }
}
