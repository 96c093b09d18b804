//! The calls of one connection: what runs, what waits for a place, and how each of them ends. The connection admits
//! requests to it; whoever owns it stops them all by dropping [`Owner`].

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::{runtime::Handle, sync::Notify, task::AbortHandle};

use super::{sink::Sink, tell};
use crate::{
    context::{Link, Peer},
    dispatch::{Begun, Listening, Running},
    jsonrpc::{RequestId, parse},
    protocol::Revision,
    server::Server,
    subscribe::Follower,
    wire::Wire,
};

/// A connection's calls.
pub(super) struct Calls {
    server: Server,
    sink: Arc<Sink>,
    runtime: Handle,
    table: Mutex<Table>,
    /// The last call has ended.
    idle: Notify,
    wire: Arc<Wire>,
}

#[derive(Default)]
struct Table {
    running: HashMap<RequestId, Place>,
    queue: VecDeque<Queued>,
    /// Subscriptions, which take no place: by id, with their serials.
    listening: HashMap<RequestId, (u64, AbortHandle)>,
    /// Tells a client of the handshake era of changes.
    telling: Option<AbortHandle>,
    /// Calls whose ids are free again while their replies are being sent.
    ending: usize,
    /// Tells a call from a later one of the same id.
    serial: u64,
    stopping: bool,
}

impl Table {
    /// Whether a request of that id is not answered yet.
    fn holds(&self, id: &str) -> bool {
        if self.running.is_empty() && self.queue.is_empty() && self.listening.is_empty() {
            return false;
        }
        let id = RequestId::of(id);
        self.running.contains_key(&id)
            || self.listening.contains_key(&id)
            || self.queue.iter().any(|queued| queued.id == id)
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.queue.is_empty() && self.listening.is_empty() && self.ending == 0
    }
}

struct Place {
    serial: u64,
    task: AbortHandle,
    way: Way,
}

/// A request that waits for a place, as text.
struct Queued {
    id: RequestId,
    text: Box<[u8]>,
    revision: Revision,
    peer: Peer,
    way: Way,
}

/// What may become of a request.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Admission {
    Now,
    Queue,
    Busy,
    Duplicate,
    Stopping,
}

/// How a reply travels.
#[derive(Clone)]
pub(super) enum Way {
    /// On a line of its own.
    Line,
    /// In an array with others.
    Batch(Arc<Batch>),
}

/// The replies to one batch, until the last of them is there.
pub(super) struct Batch {
    sink: Arc<Sink>,
    state: Mutex<(Vec<u8>, usize)>,
}

impl Batch {
    /// A batch of so many requests.
    pub(super) fn new(sink: Arc<Sink>, requests: usize) -> Arc<Self> {
        Arc::new(Self { sink, state: Mutex::new((vec![b'['], requests)) })
    }

    /// One request has ended, with that reply or without any.
    fn end(&self, reply: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (replies, left) = &mut *state;
        if !reply.is_empty() {
            if replies.len() > 1 {
                replies.push(b',');
            }
            replies.extend_from_slice(reply);
        }
        *left = left.saturating_sub(1);
        if *left == 0 && replies.len() > 1 {
            replies.extend_from_slice(b"]\n");
            self.sink.send(replies, 1);
            *replies = Vec::new();
        }
    }
}

impl Calls {
    pub(super) fn new(server: Server, sink: Arc<Sink>, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            server,
            sink,
            runtime,
            table: Mutex::default(),
            idle: Notify::new(),
            wire: Wire::new(),
        })
    }

    /// The connection that the calls came in on.
    pub(super) fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_place(&self, table: &Table) -> bool {
        table.running.len() + table.ending + self.sink.unwritten() < self.server.options().max_in_flight
    }

    /// What may become of a request of that id; asked by the one reader, so that the answer holds until it has acted.
    pub(super) fn admit(&self, id: &str) -> Admission {
        let table = self.table();
        if table.stopping {
            return Admission::Stopping;
        }
        if table.holds(id) {
            return Admission::Duplicate;
        }
        if table.queue.is_empty() && self.has_place(&table) {
            Admission::Now
        } else if table.queue.len() < self.server.options().max_queued {
            Admission::Queue
        } else {
            Admission::Busy
        }
    }

    /// What may become of a request to listen, which waits for nobody.
    pub(super) fn admit_listening(&self, id: &str) -> Admission {
        let table = self.table();
        if table.stopping {
            Admission::Stopping
        } else if table.holds(id) {
            Admission::Duplicate
        } else {
            Admission::Now
        }
    }

    /// Lets a request wait for its turn.
    pub(super) fn queue(self: &Arc<Self>, id: &str, text: &[u8], revision: Revision, peer: &Peer, way: Way) {
        let queued = Queued { id: RequestId::of(id), text: text.into(), revision, peer: peer.clone(), way };
        self.table().queue.push_back(queued);
        // a place may have become free since the request was told to wait
        self.refill();
    }

    /// Takes a call that did not end at once.
    pub(super) fn run(self: &Arc<Self>, id: &str, running: Running, way: Way) {
        let mut table = self.table();
        self.spawn(&mut table, RequestId::of(id), way, async move { running.await.bytes });
    }

    /// Starts requests that wait, while there are places.
    pub(super) fn refill(self: &Arc<Self>) {
        let mut table = self.table();
        while self.has_place(&table)
            && let Some(Queued { id, text, revision, peer, way }) = table.queue.pop_front()
        {
            let server = self.server.clone();
            self.spawn(&mut table, id, way, async move {
                let mut out = Vec::new();
                let begun = match parse(&text) {
                    Ok(message) => server.begin(&message, revision, &peer, &mut out),
                    Err(_) => return out,
                };
                match begun {
                    Begun::Done(_) => out,
                    Begun::Running(running) => running.await.bytes,
                    // it does not wait, so it is not here
                    Begun::Listening(listening) => listening.result(),
                }
            });
        }
    }

    /// Takes a subscription; its acknowledgement goes out at once.
    pub(super) fn listen(self: &Arc<Self>, id: &str, mut listening: Listening) {
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(Some(acknowledgement)) = listening.poll_next(&mut cx) {
            tell::line(&self.sink, acknowledgement, 0);
        }
        let mut table = self.table();
        table.serial += 1;
        let serial = table.serial;
        let id = RequestId::of(id);
        let (calls, key) = (Arc::clone(self), id.clone());
        let task = self.runtime.spawn(async move {
            tell::subscription(listening, calls.wire.ending(), Arc::clone(&calls.sink)).await;
            let mut table = calls.table();
            if table.listening.get(&key).is_some_and(|(held, _)| *held == serial) {
                table.listening.remove(&key);
            }
            calls.left(table);
        });
        table.listening.insert(id, (serial, task.abort_handle()));
    }

    /// Tells a client of the handshake era what a follower learns, from now on.
    pub(super) fn tell(&self, follower: Follower) {
        let task = self.runtime.spawn(tell::changes(follower, Arc::clone(&self.sink)));
        if let Some(before) = self.table().telling.replace(task.abort_handle()) {
            before.abort();
        }
    }

    /// The task blocks on the table until its place is in it.
    fn spawn(
        self: &Arc<Self>,
        table: &mut Table,
        id: RequestId,
        way: Way,
        work: impl Future<Output = Vec<u8>> + Send + 'static,
    ) {
        table.serial += 1;
        let serial = table.serial;
        let (calls, key) = (Arc::clone(self), id.clone());
        let task = self.runtime.spawn(async move {
            let reply = work.await;
            calls.finish(&key, serial, reply);
        });
        table.running.insert(id, Place { serial, task: task.abort_handle(), way });
    }

    fn finish(self: &Arc<Self>, id: &RequestId, serial: u64, mut reply: Vec<u8>) {
        let way = {
            let mut table = self.table();
            // a cancelled call has lost its place: it must not be answered
            if table.running.get(id).is_none_or(|place| place.serial != serial) {
                return;
            }
            let Some(place) = table.running.remove(id) else { return };
            // whoever sees the reply may use the id again at once, but the connection is not idle yet
            table.ending += 1;
            place.way
        };
        match way {
            Way::Line => {
                reply.push(b'\n');
                self.sink.send(&reply, 1);
            }
            Way::Batch(batch) => batch.end(&reply),
        }
        let mut table = self.table();
        table.ending -= 1;
        self.left(table);
    }

    /// A reply that was there at once, for a batch.
    pub(super) fn reply(way: &Way, reply: &[u8]) {
        if let Way::Batch(batch) = way {
            batch.end(reply);
        }
    }

    /// Stops a call, or takes it out of the queue; it gets no reply.
    pub(super) fn cancel(self: &Arc<Self>, id: &RequestId) {
        let mut table = self.table();
        if let Some((_, task)) = table.listening.remove(id) {
            task.abort();
            return self.left(table);
        }
        let way = if let Some(place) = table.running.remove(id) {
            place.task.abort();
            place.way
        } else if let Some(at) = table.queue.iter().position(|queued| queued.id == *id) {
            let Some(queued) = table.queue.remove(at) else { return };
            queued.way
        } else {
            return;
        };
        self.left(table);
        if let Way::Batch(batch) = way {
            batch.end(&[]);
        }
    }

    /// After a place has become free.
    fn left(self: &Arc<Self>, table: MutexGuard<'_, Table>) {
        if !table.queue.is_empty() {
            drop(table);
            self.refill();
        } else if table.is_idle() {
            drop(table);
            self.idle.notify_waiters();
        }
    }

    /// From now on requests are refused.
    pub(super) fn stop(&self) {
        self.table().stopping = true;
    }

    /// Waits until nothing runs and nothing waits.
    pub(super) async fn ended(&self) {
        loop {
            let mut idle = pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.table().is_idle() {
                return;
            }
            idle.await;
        }
    }
}

/// Stops every call when dropped.
pub(super) struct Owner(pub(super) Arc<Calls>);

impl Drop for Owner {
    fn drop(&mut self) {
        let Table { running, queue, listening, telling, .. } = {
            let mut table = self.0.table();
            std::mem::replace(&mut *table, Table { stopping: true, ..Table::default() })
        };
        let subscriptions = listening.into_values().map(|(_, task)| task).chain(telling);
        for task in running.values().map(|place| place.task.clone()).chain(subscriptions) {
            task.abort();
        }
        drop((running, queue));
        self.0.idle.notify_waiters();
    }
}
