//! The functions that an attribute names with `subscribed` and `unsubscribed`: for each set of arguments, the first is
//! called before there is a subscription, and the second after there is none any more. They never overlap for the same
//! arguments, and what was opened is closed whatever becomes of the client, the server or the request that it waited for.
//! A poll is a subscription for some time after its response, of which each caller may have a bounded number.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};

use super::{
    EventLimits,
    entry::{EventEntry, EventHost, EventSubscriber},
    error::resource_exhausted,
    ring::EventRings,
    subscription::{canonical, reported},
};
use crate::core::{
    admission::{Owner, Permit, Shares},
    connection::principal_digest,
    error::Failure,
    jsonrpc::ProtocolError,
    server::{Entry as _, Server, WeakServer},
    spawn::spawn,
    sync::Mutex,
};

/// Bytes of arguments that count as one poll.
const ARGUMENT_UNIT: usize = 1 << 10;
/// How long a server that stops waits for what it closes.
const SETTLE: Duration = Duration::from_secs(5);

/// A digest of the arguments, and of the caller if it matters.
type UpstreamKey = [u8; 32];

/// The open sources of one event.
#[derive(Default)]
pub(super) struct Upstreams {
    by_key: Mutex<HashMap<UpstreamKey, Arc<Upstream>>>,
    closed: Notify,
}

/// The open source for one set of arguments.
struct Upstream {
    state: Mutex<UpstreamState>,
    /// Something has opened, failed or begun to close.
    turned: Notify,
    /// Someone has gone.
    released: Notify,
}

struct UpstreamState {
    phase: Phase,
    /// Subscriptions, and requests that wait for it.
    holders: usize,
    /// Callers that have polled, and until when that counts.
    polls: HashMap<Owner, (Instant, Permit)>,
}

enum Phase {
    Opening,
    Open,
    Closing,
    Failed(ProtocolError),
}

impl Upstream {
    /// Takes part, until what is returned is dropped.
    fn hold(self: &Arc<Self>) -> UpstreamHold {
        self.state.lock().holders += 1;
        UpstreamHold { upstream: self.clone(), poll: None }
    }

    /// Ready once it is open.
    ///
    /// # Errors
    /// It could not be opened.
    async fn is_open(&self) -> Result<(), ProtocolError> {
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            match &self.state.lock().phase {
                Phase::Open => return Ok(()),
                Phase::Failed(error) => return Err(error.clone()),
                Phase::Opening | Phase::Closing => {}
            }
            turned.await;
        }
    }

    fn turn(&self, phase: Phase) {
        self.state.lock().phase = phase;
        self.turned.notify_waiters();
    }

    /// Ready once no one takes part, when it has begun to close.
    async fn is_left(&self) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let now = Instant::now();
                state.polls.retain(|_, (until, _)| now < *until);
                if state.holders == 0 && state.polls.is_empty() {
                    state.phase = Phase::Closing;
                    return;
                }
                state.polls.values().map(|(until, _)| *until).min()
            };
            tokio::select! {
                () = self.released.notified() => {}
                () = async { sleep_until(next.unwrap_or_else(Instant::now)).await }, if next.is_some() => {}
            }
        }
    }
}

/// A part in what is open.
pub(super) struct UpstreamHold {
    upstream: Arc<Upstream>,
    poll: Option<PollLease>,
}

/// The lease of a part that a poll holds.
struct PollLease {
    owner: Owner,
    permit: Permit,
    time: Duration,
}

impl Drop for UpstreamHold {
    fn drop(&mut self) {
        {
            let mut state = self.upstream.state.lock();
            state.holders -= 1;
            if let Some(PollLease { owner, permit, time }) = self.poll.take()
                && matches!(state.phase, Phase::Open)
            {
                state.polls.insert(owner, (Instant::now() + time, permit));
            }
        }
        self.upstream.released.notify_one();
    }
}

impl fmt::Debug for UpstreamHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamHold").finish_non_exhaustive()
    }
}

impl Upstreams {
    /// Counts no poll any more.
    fn forget_polls(&self) {
        for upstream in self.by_key.lock().values() {
            upstream.state.lock().polls.clear();
            upstream.released.notify_one();
        }
    }

    /// Ready once everything is closed that no one needs.
    async fn is_closed(&self) {
        loop {
            let mut closed = std::pin::pin!(self.closed.notified());
            closed.as_mut().enable();
            if self.by_key.lock().values().all(|upstream| upstream.state.lock().holders > 0) {
                return;
            }
            closed.await;
        }
    }

    /// Removes one, if no one has come meanwhile.
    fn remove(&self, key: &UpstreamKey, upstream: &Upstream, failed: Option<ProtocolError>) -> bool {
        let mut by_key = self.by_key.lock();
        {
            let mut state = upstream.state.lock();
            state.phase = match failed {
                Some(error) => Phase::Failed(error),
                None if state.holders > 0 => {
                    state.phase = Phase::Opening;
                    return false;
                }
                None => Phase::Closing,
            };
        }
        by_key.remove(key);
        drop(by_key);
        upstream.turned.notify_waiters();
        self.closed.notify_waiters();
        true
    }
}

/// Opens and closes what one set of arguments needs.
struct Opener {
    entry: Arc<EventEntry>,
    host: EventHost,
    server: WeakServer,
    subscriber: EventSubscriber,
    given: Arc<str>,
    key: UpstreamKey,
    upstreams: Weak<Upstreams>,
    upstream: Arc<Upstream>,
}

impl Opener {
    async fn run(self) {
        let Self { entry, upstream, key, .. } = &self;
        loop {
            if let Err(failure) = entry.subscribed(&self.host, &self.subscriber, &self.given).await {
                let error = self.report(failure);
                match self.upstreams.upgrade() {
                    Some(upstreams) => drop(upstreams.remove(key, upstream, Some(error))),
                    None => upstream.turn(Phase::Failed(error)),
                }
                return;
            }
            upstream.turn(Phase::Open);
            upstream.is_left().await;
            if let Err(failure) = entry.unsubscribed(&self.host, &self.subscriber, &self.given).await {
                let error = self.report(failure);
                tracing::warn!(
                    event = entry.name(),
                    error = error.message,
                    "the `unsubscribed` function has failed: the source opened for the subscription was not closed"
                );
            }
            let is_removed =
                self.upstreams.upgrade().is_none_or(|upstreams| upstreams.remove(key, upstream, None));
            if is_removed {
                return;
            }
        }
    }

    fn report(&self, failure: Failure) -> ProtocolError {
        match self.server.upgrade() {
            Some(server) => reported(&server, self.entry.name(), failure),
            None => ProtocolError::internal("the server is gone"),
        }
    }
}

impl EventEntry {
    /// Opens what a subscription with these arguments needs, until what is returned is dropped; `None` if that is nothing.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) async fn open(
        self: &Arc<Self>,
        server: &Server,
        subscriber: &EventSubscriber,
        given: &Arc<str>,
    ) -> Result<Option<UpstreamHold>, ProtocolError> {
        if !self.has_hooks() {
            return Ok(None);
        }
        let hold = self.hold(server, subscriber, given, None)?;
        hold.upstream.is_open().await?;
        Ok(Some(hold))
    }

    /// The same for a poll, which counts as a subscription for some time after its response.
    ///
    /// # Errors
    /// It cannot be opened, or the caller polls too many.
    pub(super) async fn open_for_poll(
        self: &Arc<Self>,
        server: &Server,
        subscriber: &EventSubscriber,
        given: &Arc<str>,
        (owner, limits): (&Owner, &EventLimits),
    ) -> Result<Option<UpstreamHold>, ProtocolError> {
        if !self.has_hooks() {
            return Ok(None);
        }
        let hold = self.hold(server, subscriber, given, Some((owner, limits.lease())))?;
        hold.upstream.is_open().await?;
        Ok(Some(hold))
    }

    fn hold(
        self: &Arc<Self>,
        server: &Server,
        subscriber: &EventSubscriber,
        given: &Arc<str>,
        poll: Option<(&Owner, Duration)>,
    ) -> Result<UpstreamHold, ProtocolError> {
        let caller = if self.hooks_take_caller() { subscriber.caller.clone() } else { None };
        let (arguments, digest) = (canonical(given), principal_digest(caller.as_deref()));
        let mut hash = Sha256::new();
        // lengths keep the parts apart
        hash.update((arguments.len() as u64).to_le_bytes());
        hash.update(arguments);
        if let Some(caller) = digest {
            hash.update(caller.as_bytes());
        }
        let key: UpstreamKey = hash.finalize().into();
        let upstreams = &self.ring.opened;
        let mut by_key = upstreams.by_key.lock();
        let known = by_key.get(&key).cloned();
        let lease = match poll {
            None => None,
            Some((owner, time)) => {
                // that of the poll before goes on with this one
                let earlier = known.as_ref().and_then(|upstream| upstream.state.lock().polls.remove(owner));
                let units = 1 + given.len() / ARGUMENT_UNIT;
                let permit =
                    earlier.map(|(_, permit)| permit).or_else(|| self.ring.polls.try_acquire(owner, units));
                let text = "too many subscriptions are polled\ntry again later";
                let permit = permit.ok_or_else(|| resource_exhausted("subscriptions", text))?;
                Some(PollLease { owner: owner.clone(), permit, time })
            }
        };
        if let Some(upstream) = known {
            let mut hold = upstream.hold();
            hold.poll = lease;
            return Ok(hold);
        }
        let upstream = Arc::new(Upstream {
            state: Mutex::new(UpstreamState { phase: Phase::Opening, holders: 0, polls: HashMap::new() }),
            turned: Notify::new(),
            released: Notify::new(),
        });
        by_key.insert(key, upstream.clone());
        drop(by_key);
        let mut hold = upstream.hold();
        hold.poll = lease;
        let subscriber = EventSubscriber { caller, access_rules: subscriber.access_rules.clone() };
        let opener = Opener {
            entry: self.clone(),
            host: EventHost::of(server),
            server: server.downgrade(),
            subscriber,
            given: given.clone(),
            key,
            upstreams: Arc::downgrade(upstreams),
            upstream,
        };
        spawn(opener.run());
        Ok(hold)
    }
}

impl EventRings {
    /// Counts no poll any more: no client is served.
    pub(super) fn forget_polls(&self) {
        self.all().iter().for_each(|ring| ring.opened.forget_polls());
    }

    /// Ready once what was open is closed, or after a short time.
    pub(super) async fn settle(&self) {
        let closed = async {
            for ring in self.all() {
                ring.opened.is_closed().await;
            }
        };
        if timeout(SETTLE, closed).await.is_err() {
            tracing::warn!("the server stops before every source opened for subscriptions is closed");
        }
    }
}

/// How many polls of callers count, at most.
pub(super) fn poll_shares(assembly: &crate::core::server::Assembly<'_>) -> Arc<Shares> {
    let limits = &assembly.rules.options.limits;
    let events = limits.of_capabilities.get::<EventLimits>();
    let most = events.map_or_else(|| EventLimits::default().max_poll_leases, |events| events.max_poll_leases);
    Shares::new(limits.quota(most))
}
