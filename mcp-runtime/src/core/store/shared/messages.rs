//! What the replicas of a server tell each other: messages on topics of the store that they share. A message is kept until
//! the store has taken it; a replica that may have missed some is told that instead. In memory, nothing is sent.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::Serialize;
use tokio::{runtime::Handle, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{Received, SealedStore, StoreError, Subscription};
use crate::core::{crypto::random_id, spawn::spawn_on, sync::Mutex};

/// Messages of a topic that were not sent yet; of later ones, the others learn that they have missed some.
pub(crate) const MAX_UNSENT: usize = 1024;
/// After a failure.
const RETRY: Duration = Duration::from_millis(500);

/// The messages of one process.
pub(in crate::core::store) struct Messages {
    process: Arc<str>,
    unsent: Mutex<Unsent>,
    /// The runtime that they are sent on.
    runtime: OnceLock<Handle>,
    /// Fires when the server is gone.
    closed: CancellationToken,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            // without randomness nothing can be sealed, so that no other process meets the empty id
            process: random_id().unwrap_or_default().into(),
            unsent: Mutex::default(),
            runtime: OnceLock::new(),
            closed: CancellationToken::new(),
        }
    }
}

#[derive(Default)]
struct Unsent {
    by_topic: BTreeMap<&'static str, TopicQueue>,
    is_sending: bool,
}

/// Messages of a topic, the oldest first.
#[derive(Default)]
struct TopicQueue {
    messages: VecDeque<Arc<[u8]>>,
    /// Whether the first has begun to be sent: a replica may have acted on it already.
    has_begun: bool,
}

impl Unsent {
    /// Adds a message, unless an equal one waits that has not begun to be sent, and so stands for both; `false` if too many
    /// wait, of which `missed` tells then.
    fn push(&mut self, topic: &'static str, message: Arc<[u8]>, missed: Arc<[u8]>) -> bool {
        let TopicQueue { messages, has_begun } = self.by_topic.entry(topic).or_default();
        let fits = messages.len() < MAX_UNSENT;
        if !messages.iter().skip(usize::from(*has_begun)).any(|waits| *waits == message) {
            if !fits {
                // without a text, the last one says that there were others
                messages.pop_back();
            }
            messages.push_back(if fits { message } else { missed });
        }
        fits
    }

    /// Begins with the oldest message of the topic after that one, or of the first.
    fn begin_next(&mut self, after: &'static str) -> Option<(&'static str, Arc<[u8]>)> {
        let later = self.by_topic.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let topic = *later.chain(&self.by_topic).find(|(_, queue)| !queue.messages.is_empty())?.0;
        let queue = self.by_topic.get_mut(topic)?;
        queue.has_begun = true;
        Some((topic, queue.messages.front()?.clone()))
    }

    /// The store has taken the oldest message of a topic.
    fn end(&mut self, topic: &'static str) {
        if let Some(queue) = self.by_topic.get_mut(topic) {
            queue.messages.pop_front();
            queue.has_begun = false;
        }
    }
}

impl SealedStore {
    /// The id of this process among the replicas: random, and another one for each server.
    pub(crate) fn process(&self) -> &Arc<str> {
        &self.0.messages.process
    }

    /// Begins to send messages, unless that was done. Without a runtime, a later call does it. Returns whether this one did.
    pub(crate) fn begin_messages(&self) -> bool {
        let begun = Handle::try_current().is_ok_and(|runtime| self.0.messages.runtime.set(runtime).is_ok());
        if begun {
            self.send_unsent();
        }
        begun
    }

    /// The runtime of the first call of [`begin_messages`](Self::begin_messages) that had one.
    pub(crate) fn runtime(&self) -> Option<&Handle> {
        self.0.messages.runtime.get()
    }

    /// Ends what listens to messages.
    pub(crate) fn close_messages(&self) {
        self.0.messages.closed.cancel();
    }

    /// Sends a message to the other replicas, if there are any, as soon as the store can be reached; equal ones that wait are
    /// sent once. `false` if too many wait, so that the others learn only that they have missed some.
    pub(crate) fn send(&self, topic: &'static str, message: &impl Serialize) -> bool {
        let Some(message) = serde_json::to_vec(message).ok().filter(|_| self.is_shared()) else {
            return true;
        };
        let message: Arc<[u8]> = [self.process().as_bytes(), b" ", &message].concat().into();
        let missed = [self.process().as_bytes(), b" "].concat().into();
        let fits = self.0.messages.unsent.lock().push(topic, message, missed);
        self.send_unsent();
        fits
    }

    /// Sends what is not sent yet, unless that is done at the moment.
    fn send_unsent(&self) {
        let Some(runtime) = self.runtime().cloned().or_else(|| Handle::try_current().ok()) else { return };
        let mut unsent = self.0.messages.unsent.lock();
        if !std::mem::replace(&mut unsent.is_sending, true) {
            let _sends = spawn_on(&runtime, self.clone().send_all());
        }
    }

    async fn send_all(self) {
        let mut last = "";
        loop {
            let next = {
                let mut unsent = self.0.messages.unsent.lock();
                let next = unsent.begin_next(last);
                unsent.is_sending = next.is_some();
                next
            };
            let Some((topic, message)) = next else { return };
            last = topic;
            let Ok(shared) = self.sealing() else { return };
            match shared.publish(topic, &message).await {
                Ok(()) => self.0.messages.unsent.lock().end(topic),
                Err(_) if self.0.messages.closed.is_cancelled() => return,
                Err(error) => {
                    tracing::debug!(%error, topic, "a message cannot be sent to other replicas yet");
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Listens to what the other replicas send on a topic.
    pub(crate) fn listen(&self, topic: &'static str) -> Listener {
        Listener { store: self.clone(), topic, subscription: None, has_missed: false }
    }
}

/// The messages of other replicas on one topic.
pub(crate) struct Listener {
    store: SealedStore,
    topic: &'static str,
    subscription: Option<Subscription>,
    has_missed: bool,
}

impl Listener {
    /// The next message, or that some may have been lost; `None` when the server is gone.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        let closed = self.store.0.messages.closed.clone();
        loop {
            let received = tokio::select! {
                () = closed.cancelled() => return None,
                received = self.receive() => received,
            };
            match received {
                Ok(Some(received)) => return Some(received),
                Ok(None) => {}
                Err(error) => {
                    let topic = self.topic;
                    tracing::debug!(%error, topic, "messages of other replicas cannot be received yet");
                    self.has_missed = true;
                    if let Ok(shared) = self.store.sealing() {
                        shared.note_loss();
                    }
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// What is received next; `None` if it is of no use.
    async fn receive(&mut self) -> Result<Option<Received>, StoreError> {
        let shared = self.store.sealing()?;
        let Some(subscription) = &mut self.subscription else {
            self.subscription = Some(shared.subscribe(self.topic).await?);
            return Ok(std::mem::take(&mut self.has_missed).then_some(Received::Missed));
        };
        let received = match subscription.next().await {
            None => {
                (self.subscription, self.has_missed) = (None, true);
                return Ok(None);
            }
            Some(Received::Message(sealed)) => shared.open_message(self.topic, &sealed),
            missed => missed,
        };
        let message = match received {
            Some(Received::Message(message)) => message,
            Some(Received::Missed) => {
                shared.note_loss();
                return Ok(Some(Received::Missed));
            }
            None => return Ok(None),
        };
        let from = message.iter().position(|byte| *byte == b' ').unwrap_or_default();
        let (from, message) = message.split_at(from);
        Ok(match message.get(1..) {
            // its own
            Some(_) if from == self.store.process().as_bytes() => None,
            None | Some([]) => Some(Received::Missed),
            Some(message) => Some(Received::Message(message.into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stands_for_an_equal_one_until_it_begins_to_be_sent() {
        let mut unsent = Unsent::default();
        let text = |text: &str| -> Arc<[u8]> { text.as_bytes().into() };
        let push = |unsent: &mut Unsent, message| unsent.push("changes", text(message), text("missed"));
        let next = |unsent: &mut Unsent| unsent.begin_next("").map(|(_, message)| message);
        assert!(push(&mut unsent, "a") && push(&mut unsent, "a"));
        assert_eq!(next(&mut unsent), Some(text("a")));
        // a replica that has got the first may have acted on it by now
        assert!(push(&mut unsent, "a") && push(&mut unsent, "b") && push(&mut unsent, "a"));
        assert_eq!(next(&mut unsent), Some(text("a")), "which the store has not taken");
        for expected in ["a", "b"] {
            unsent.end("changes");
            assert_eq!(next(&mut unsent), Some(text(expected)));
        }
        unsent.end("changes");
        assert_eq!(next(&mut unsent), None);
    }
}
