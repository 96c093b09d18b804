//! Messages between the replicas of a server, about what one process has and another is asked for: over a topic of each
//! process, or the one of changes where the order matters. A question is answered within two seconds or not at all.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use super::WeakServer;
use crate::core::{
    admission::Owner,
    crypto::random_id,
    spawn::spawn,
    store::{Condition, Received, SealedStore, StoreError, StoreFuture, Table, Write, Written},
    sync::Mutex,
};

/// How long a question waits for its answer.
const ANSWER: Duration = Duration::from_secs(2);
/// After a failure.
const RETRY: Duration = Duration::from_millis(500);
/// How long a subscription outlives its server.
const CHECK: Duration = Duration::from_secs(5);
/// Bytes of a message that are sent as they are; larger ones are put into the store, since what a topic holds for a slow
/// replica is limited.
const MAX_SENT: usize = 64 << 10;
/// Messages that are in the store.
const MAX_STORED: usize = 4096;
/// Bytes of them.
const MAX_STORED_BYTES: usize = 64 << 20;
/// For how long they are.
const STORED: Duration = Duration::from_secs(30);
/// Characters of the id of a process.
pub(crate) const PROCESS_ID: usize = 32;

/// A server's part of what its replicas say to each other.
pub(crate) trait Peers: fmt::Debug + Send + Sync {
    /// Identifies this process.
    fn id(&self) -> &str;

    /// Adds what answers the questions of other processes.
    fn add_handler(&self, handler: Weak<dyn PeerHandler>);

    /// Asks another process; `None` if it has not answered in time, so that it may be gone.
    fn ask<'a>(
        &'a self,
        process: &'a str,
        question: &'a [u8],
        owner: &'a Owner,
    ) -> StoreFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Tells another process something.
    fn tell<'a>(&'a self, process: &'a str, message: &'a [u8]) -> StoreFuture<'a, Result<(), StoreError>>;

    /// Tells all other processes something, in order with changes.
    fn tell_all<'a>(&'a self, message: &'a str) -> StoreFuture<'a, Result<(), StoreError>>;
}

/// Answers the questions of other processes.
pub(crate) trait PeerHandler: Send + Sync {
    /// The answer to a question; `None` if it concerns something else.
    fn answer(self: Arc<Self>, question: &[u8]) -> Option<Vec<u8>>;

    /// Takes note of what another process has told this one, or all.
    fn receive(self: Arc<Self>, message: &[u8]);

    /// Messages to all may have been lost.
    fn missed(self: Arc<Self>);
}

/// The questions and answers of one process.
pub(super) struct PeerState {
    store: SealedStore,
    /// Large messages.
    table: Table,
    id: String,
    /// Questions that wait for their answers.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>,
    last_number: AtomicU64,
    handlers: Mutex<Vec<Weak<dyn PeerHandler>>>,
}

/// Forgets a question that nothing waits for any more.
struct WaitingQuestion<'a>(&'a PeerState, u64);

impl Drop for WaitingQuestion<'_> {
    fn drop(&mut self) {
        self.0.waiting.lock().remove(&self.1);
    }
}

fn topic(process: &str) -> String {
    format!("process/{process}")
}

/// The parts of a message that was framed.
enum Frame<'a> {
    Question {
        number: u64,
        from: &'a str,
        body: &'a [u8],
    },
    Answer {
        number: u64,
        body: &'a [u8],
    },
    Message(&'a [u8]),
    /// The key of a message in the store.
    Stored(&'a str),
}

impl<'a> Frame<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let numbered = || {
            let (number, rest) = rest.split_first_chunk::<8>()?;
            Some((u64::from_le_bytes(*number), rest))
        };
        match kind {
            b'?' => {
                let (number, rest) = numbered()?;
                let (from, body) = rest.split_at_checked(PROCESS_ID)?;
                Some(Self::Question { number, from: std::str::from_utf8(from).ok()?, body })
            }
            b'!' => numbered().map(|(number, body)| Self::Answer { number, body }),
            b'.' => Some(Self::Message(rest)),
            b'@' => Some(Self::Stored(std::str::from_utf8(rest).ok()?)),
            _ => None,
        }
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Question { number, from, body } => {
                [b"?", &number.to_le_bytes()[..], from.as_bytes(), body].concat()
            }
            Self::Answer { number, body } => [b"!", &number.to_le_bytes()[..], body].concat(),
            Self::Message(body) => [b".", *body].concat(),
            Self::Stored(key) => [b"@", key.as_bytes()].concat(),
        }
    }
}

impl PeerState {
    pub(super) fn new(store: &SealedStore, id: String) -> Self {
        Self {
            store: store.clone(),
            table: Table::new("messages", MAX_STORED, MAX_STORED_BYTES, 50),
            id,
            waiting: Mutex::default(),
            last_number: AtomicU64::new(0),
            handlers: Mutex::default(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn add_handler(&self, handler: Weak<dyn PeerHandler>) {
        let mut handlers = self.handlers.lock();
        handlers.retain(|handler| handler.strong_count() > 0);
        handlers.push(handler);
    }

    pub(super) fn handlers(&self) -> Vec<Arc<dyn PeerHandler>> {
        self.handlers.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Sends a frame to a process.
    async fn send(&self, process: &str, frame: Vec<u8>, owner: &Owner) -> Result<(), StoreError> {
        let topic = topic(process);
        if frame.len() <= MAX_SENT {
            return self.store.publish(&topic, &frame).await;
        }
        let key = random_id()?;
        let write =
            Write { bytes: &frame, owner: owner.as_str(), expires_in: STORED, condition: Condition::Absent };
        match self.store.put(&self.table, &key, write).await? {
            Written::Stored => self.store.publish(&topic, &Frame::Stored(&key).encode()).await,
            _ => Err("too many bytes wait for other replicas".into()),
        }
    }

    pub(super) async fn ask(
        &self,
        process: &str,
        question: &[u8],
        owner: &Owner,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(number, sender);
        let _waiting = WaitingQuestion(self, number);
        let frame = Frame::Question { number, from: &self.id, body: question }.encode();
        self.send(process, frame, owner).await?;
        Ok(timeout(ANSWER, answer).await.ok().and_then(Result::ok))
    }

    pub(super) async fn tell(&self, process: &str, message: &[u8]) -> Result<(), StoreError> {
        self.send(process, Frame::Message(message).encode(), &Owner::local()).await
    }

    /// Takes a message of another process.
    async fn take(self: &Arc<Self>, message: &[u8]) {
        match Frame::parse(message) {
            Some(Frame::Stored(key)) => match self.store.get(&self.table, key).await {
                Ok(Some(stored)) => self.take_frame(&stored.bytes),
                _ => tracing::debug!("a message of another replica is not in the store"),
            },
            Some(_) => self.take_frame(message),
            None => {}
        }
    }

    fn take_frame(self: &Arc<Self>, message: &[u8]) {
        match Frame::parse(message) {
            Some(Frame::Question { number, from, body }) => {
                let answer = self.handlers().into_iter().find_map(|handler| handler.answer(body));
                let frame = Frame::Answer { number, body: &answer.unwrap_or_default() }.encode();
                let (state, from) = (self.clone(), from.to_owned());
                // a store that is slow must not delay the next question
                spawn(async move {
                    if let Err(error) = state.send(&from, frame, &Owner::local()).await {
                        tracing::debug!(%error, "another replica cannot be answered");
                    }
                });
            }
            Some(Frame::Answer { number, body }) => {
                if let Some(waiting) = self.waiting.lock().remove(&number) {
                    // nothing may wait any more
                    let _late = waiting.send(body.to_vec());
                }
            }
            Some(Frame::Message(body)) => {
                self.handlers().into_iter().for_each(|handler| handler.receive(body));
            }
            Some(Frame::Stored(_)) | None => {}
        }
    }
}

/// Answers the questions of other processes for as long as the server is there.
pub(super) async fn answer_peers(peers: Arc<PeerState>, server: WeakServer) {
    let topic = topic(&peers.id);
    while server.upgrade().is_some() {
        let mut subscription = match peers.store.subscribe(&topic).await {
            Ok(subscription) => subscription,
            Err(error) => {
                tracing::debug!(%error, "the messages of other replicas cannot be received yet");
                sleep(RETRY).await;
                continue;
            }
        };
        loop {
            let received = tokio::select! {
                received = subscription.next() => received,
                () = sleep(CHECK) => match server.upgrade() {
                    Some(_) => continue,
                    None => return,
                },
            };
            match received {
                Some(Received::Message(message)) => peers.take(&message).await,
                // those who ask ask again
                Some(Received::Missed) => {}
                None => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_parsed_as_it_was_encoded() {
        let from = "a".repeat(PROCESS_ID);
        let question = Frame::Question { number: 7, from: &from, body: b"body" }.encode();
        let parsed = Frame::parse(&question);
        assert!(matches!(parsed, Some(Frame::Question { number: 7, from: f, body: b"body" }) if f == from));
        let answer = Frame::Answer { number: 7, body: b"" }.encode();
        assert!(matches!(Frame::parse(&answer), Some(Frame::Answer { number: 7, body: b"" })));
        assert!(matches!(Frame::parse(b".x"), Some(Frame::Message(b"x"))));
        assert!(matches!(Frame::parse(&Frame::Stored("key").encode()), Some(Frame::Stored("key"))));
        for bad in [&b""[..], b"?", b"!1234567", &question[..PROCESS_ID], b"x"] {
            assert!(Frame::parse(bad).is_none());
        }
    }
}
