//! `events/subscribe` and `events/unsubscribe` (feature `events-webhook`): subscriptions whose events are sent to a URL of
//! the client, signed, for as long as the client renews them. They are records of the store: of one in memory, and then their
//! time is short, or of the one that replicas share. One process delivers them.

mod delivery;
mod endpoint;
mod leader;
mod record;
mod secret;
mod subscribe;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use self::{
    endpoint::{DeliveryFailure, Endpoints},
    leader::{Revocations, RunningLeader},
    record::{KeyList, Progress, StoredWebhook, VerifiedEndpoint, WebhookKey},
    secret::Secret,
};
use super::{EventLimits, Events, error::forbidden, ring::ReadPosition};
use crate::{
    core::{
        admission::{HALF, Owner, Rate, RateLimiter, Turns},
        arguments::BoxFuture,
        build_error::BuildError,
        config::LONGEST,
        connection::Principal,
        dispatch::{ObservedItem, Reply, Request, Response},
        jsonrpc::ProtocolError,
        server::{Assembly, Capability, Registry, Server},
        store::{Leases, Records, SealedStore, Table, Versioned},
        sync::Mutex,
    },
    fetch::Reach,
};

/// The shortest time that is granted, so that clients do not renew without end.
const SHORTEST_LIFETIME: Duration = Duration::from_secs(60);
/// Challenges that one principal causes in a minute, whatever their hosts are.
const CHALLENGES: u32 = 60;
/// Challenges for one host that all principals cause in a minute.
const HOST_CHALLENGES: u32 = 600;
/// Hosts whose challenges are counted, and principals.
const MAX_HOSTS: usize = 16_384;

const MINUTE: Duration = Duration::from_secs(60);

/// How long a subscription lasts in memory, and in a store that replicas share.
const LIFETIMES: [Duration; 2] = [Duration::from_secs(30 * 60), Duration::from_secs(24 * 60 * 60)];
/// How long the endpoint of a subscription that does not expire may accept nothing.
const LONGEST_FAILURE: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// Subscriptions by webhook.
const MAX_SUBSCRIPTIONS: usize = 10_000;
/// Bytes of a subscription, and of a verified endpoint, on average.
const MEAN_BYTES: [usize; 2] = [4096, 256];
/// Bytes of messages that are on their way.
const MAX_BYTES: usize = 32 << 20;

/// Limits of subscriptions by webhook.
#[derive(Debug, Clone)]
pub(super) struct WebhookLimits {
    pub(super) max_subscriptions: usize,
    max_bytes: usize,
    lifetime: Option<Duration>,
    challenges: Result<Rate, String>,
    host_challenges: Result<Rate, String>,
    on_loopback: bool,
    /// Authorities of endpoints in addition to those of the operating system; `None` if they are not in PEM.
    roots: Option<Vec<CertificateDer<'static>>>,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self {
            max_subscriptions: MAX_SUBSCRIPTIONS,
            max_bytes: MAX_BYTES,
            lifetime: None,
            challenges: Ok(Rate::new(CHALLENGES, MINUTE)),
            host_challenges: Ok(Rate::new(HOST_CHALLENGES, MINUTE)),
            on_loopback: false,
            roots: Some(Vec::new()),
        }
    }
}

impl EventLimits {
    /// Sets how many subscriptions by webhook there are, of which one principal may have half; 10,000 by default.
    pub fn max_webhooks(mut self, subscriptions: usize) -> Self {
        self.webhook.max_subscriptions = subscriptions;
        self
    }

    /// Sets how many bytes are on their way to endpoints, of which one principal may have half; 32 MiB by default. Beyond it,
    /// events wait in what is [kept](Self::max_kept).
    pub fn max_webhook_bytes(mut self, bytes: usize) -> Self {
        self.webhook.max_bytes = bytes;
        self
    }

    /// Sets how long a subscription by webhook lasts, unless the client asks for less or renews it: a year at most. By default
    /// 30 minutes, since subscriptions are in memory, and clients have none after a restart until they renew theirs; 24 hours
    /// with a [shared store](crate::ServerBuilder::shared), where subscriptions stay, and those of clients that ask for it
    /// do not expire. With this, every subscription expires.
    pub fn webhook_lifetime(mut self, time: Duration) -> Self {
        self.webhook.lifetime = Some(time.clamp(SHORTEST_LIFETIME, LONGEST));
        self
    }

    /// Trusts these certificate authorities of endpoints, in PEM, in addition to those of the operating system. Which addresses
    /// endpoints may have does not change.
    pub fn webhook_root_certificates(mut self, pem: &str) -> Self {
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        self.webhook.roots = match (self.webhook.roots, roots) {
            (Some(mut all), Ok(roots)) if !roots.is_empty() => {
                all.extend(roots);
                Some(all)
            }
            _ => None,
        };
        self
    }

    /// Sets how often one principal may have the server send challenges, to the endpoints of all hosts together; `"60/1m"` by
    /// default. An endpoint needs a challenge before its first subscription, and again a day later; subscriptions
    /// that need more of them are refused.
    ///
    /// [`build`](crate::ServerBuilder::build) fails if it is not a rate.
    pub fn webhook_challenges(mut self, rate: &str) -> Self {
        self.webhook.challenges = Rate::parse(rate);
        self
    }

    /// Sets how often all principals together may have the server send challenges to the endpoints of one host; `"600/1m"` by
    /// default. The endpoints of many users may share a host, as those of ChatGPT do.
    ///
    /// [`build`](crate::ServerBuilder::build) fails if it is not a rate.
    pub fn webhook_challenges_per_host(mut self, rate: &str) -> Self {
        self.webhook.host_challenges = Rate::parse(rate);
        self
    }

    /// Sends webhooks to this machine too, also by `http:`; for tests. The server warns of it.
    pub fn webhooks_on_loopback(mut self) -> Self {
        self.webhook.on_loopback = true;
        self
    }
}

/// The subscriptions of a server.
pub(super) struct Webhooks {
    limits: WebhookLimits,
    store: SealedStore,
    records: Records<StoredWebhook>,
    lists: Records<KeyList>,
    verified: Records<VerifiedEndpoint>,
    leases: Leases,
    endpoints: Arc<Endpoints>,
    /// Of messages on their way.
    bytes: Arc<Turns>,
    table: Mutex<WebhookTable>,
    /// By principal.
    challenges: RateLimiter,
    /// By host.
    host_challenges: RateLimiter,
    /// What was not ended in the store yet.
    revoked: Mutex<Revocations>,
    has_revoked: Arc<Notify>,
    leader: Mutex<Option<RunningLeader>>,
    token: CancellationToken,
    /// Ends every delivery with the server.
    _end: DropGuard,
}

/// What this process delivers.
#[derive(Default)]
struct WebhookTable {
    /// Whether it is the one that does.
    is_leader: bool,
    by_key: HashMap<WebhookKey, Arc<Webhook>>,
}

/// One subscription that is delivered here.
pub(super) struct Webhook {
    key: WebhookKey,
    /// When it was made.
    since: SystemTime,
    /// `id` on the wire.
    id: Box<str>,
    name: Box<str>,
    url: Url,
    owner: Owner,
    state: Mutex<WebhookState>,
    gap_recorded: Notify,
    renewed: Notify,
    progressed: Notify,
    /// Cancelled when it is not delivered here any more, without a word to its endpoint.
    token: CancellationToken,
    /// Cancelled when its principal has lost access; the endpoint is told.
    revoked: CancellationToken,
}

struct WebhookState {
    /// As the store has it, as far as is known.
    stored: Versioned<StoredWebhook>,
    caller: Arc<Principal>,
    /// What it has reached since then.
    progress: Progress,
    gap: GapMessage,
}

/// Whether the endpoint has to be told of a gap.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum GapMessage {
    #[default]
    None,
    Due,
    /// It could not be delivered, and is due again with the next event, or when the subscription is renewed.
    Waits,
}

impl GapMessage {
    /// Whether it was `from`, and is `to` now.
    fn replace_if(&mut self, from: Self, to: Self) -> bool {
        let is_from = *self == from;
        if is_from {
            *self = to;
        }
        is_from
    }
}

impl Webhook {
    fn new(
        key: WebhookKey,
        url: Url,
        caller: Arc<Principal>,
        stored: Versioned<StoredWebhook>,
        token: CancellationToken,
    ) -> Self {
        let record = &stored.record;
        Self {
            key,
            since: record.since,
            id: record.id.clone(),
            name: record.name.clone(),
            url,
            owner: Owner::from_text(record.owner.clone()),
            state: Mutex::new(WebhookState {
                progress: record.progress.clone(),
                stored,
                caller,
                gap: GapMessage::None,
            }),
            gap_recorded: Notify::new(),
            renewed: Notify::new(),
            progressed: Notify::new(),
            token,
            revoked: CancellationToken::new(),
        }
    }

    fn caller(&self) -> Arc<Principal> {
        self.state.lock().caller.clone()
    }

    fn secrets(&self) -> [Option<Secret>; 2] {
        self.state.lock().stored.record.secrets()
    }

    fn progress(&self) -> Progress {
        self.state.lock().progress.clone()
    }

    /// Goes on with what the store has now.
    fn take(&self, stored: Versioned<StoredWebhook>) {
        {
            let mut state = self.state.lock();
            if stored.version < state.stored.version {
                return;
            }
            state.caller = Arc::new(stored.record.caller.principal());
            state.stored = stored;
        }
        self.renewed.notify_one();
    }

    /// Ends when the subscription was not renewed in time.
    async fn expired(&self) {
        loop {
            let left = self.state.lock().stored.record.left();
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = sleep(left) => {}
                () = self.renewed.notified() => {}
            }
        }
    }

    /// Changes what it has reached, which is written a little later.
    fn reach(&self, change: impl FnOnce(&mut WebhookState)) {
        change(&mut self.state.lock());
        self.progressed.notify_one();
    }

    fn set_watermark(&self, position: ReadPosition) {
        if self.progress().position != position {
            self.reach(|state| state.progress.position = position);
        }
    }

    /// Notes that the endpoint does not get an event.
    fn record_gap(&self) {
        self.reach(|state| {
            state.gap = GapMessage::Due;
            state.progress.gaps += 1;
        });
        self.gap_recorded.notify_one();
    }

    /// Whether the endpoint has to be told of a gap now, once.
    fn take_gap(&self) -> bool {
        self.state.lock().gap.replace_if(GapMessage::Due, GapMessage::None)
    }

    /// Notes that it could not be told of a gap: another message would most likely fail as well.
    fn postpone_gap(&self) {
        self.state.lock().gap = GapMessage::Waits;
    }

    /// Tells it again, if it could not be told.
    fn retry_gap(&self) {
        let is_due = self.state.lock().gap.replace_if(GapMessage::Waits, GapMessage::Due);
        if is_due {
            self.gap_recorded.notify_one();
        }
    }

    /// Why it ends as its time is over; `None` if it was not renewed.
    fn expiry_error(&self) -> Option<ProtocolError> {
        // timers and the clock may differ a little
        let soon = SystemTime::now() + Duration::from_secs(1);
        let expires = self.caller().expires();
        let has_expired = expires.is_some_and(|expires| expires <= soon);
        has_expired.then(|| forbidden("the authentication of the subscriber has expired"))
    }

    /// Whether it does not expire, and its endpoint has accepted nothing for days.
    fn is_abandoned(&self) -> bool {
        let state = self.state.lock();
        let failed_for = |since: SystemTime| since.elapsed().unwrap_or_default();
        let failed_since = state.progress.failed_since;
        state.stored.record.expires.is_none()
            && failed_since.is_some_and(|since| failed_for(since) > LONGEST_FAILURE)
    }

    /// Notes what became of an attempt.
    fn record(&self, sent: Result<(), DeliveryFailure>) {
        match sent {
            // written with the position that it leads to
            Ok(()) => {
                let progress = &mut self.state.lock().progress;
                progress.last_delivery = Some(SystemTime::now());
                (progress.failure, progress.failed_since) = (None, None);
            }
            Err(failure) => self.reach(|state| {
                state.progress.failure = Some(failure);
                state.progress.failed_since.get_or_insert_with(SystemTime::now);
            }),
        }
    }
}

impl Webhooks {
    /// One principal may have half of what the tables hold.
    fn new(limits: WebhookLimits, store: &SealedStore) -> Self {
        let reach = if limits.on_loopback { Reach::Loopback } else { Reach::Public };
        let token = CancellationToken::new();
        let limiter = |rate: &Result<Rate, String>, default| {
            // one that is not a rate is an error of `build()`
            let rate = rate.as_ref().ok().copied().unwrap_or_else(|| Rate::new(default, MINUTE));
            RateLimiter::new(rate, MAX_HOSTS)
        };
        let values = limits.max_subscriptions;
        let table = |name, bytes| Table::new(name, values, values.saturating_mul(bytes), HALF);
        let [of_webhook, of_endpoint] = MEAN_BYTES;
        Self {
            store: store.clone(),
            records: Records::new(store, table("webhooks", of_webhook)),
            lists: Records::new(store, KeyList::table()),
            verified: Records::new(store, table("webhook-endpoints", of_endpoint)),
            leases: Leases::new(store),
            endpoints: Arc::new(Endpoints::new(reach, limits.roots.clone().unwrap_or_default())),
            bytes: Turns::of_units(limits.max_bytes, 50, delivery::MAX_BODY),
            table: Mutex::default(),
            challenges: limiter(&limits.challenges, CHALLENGES),
            host_challenges: limiter(&limits.host_challenges, HOST_CHALLENGES),
            limits,
            revoked: Mutex::default(),
            has_revoked: Arc::default(),
            leader: Mutex::default(),
            _end: token.clone().drop_guard(),
            token,
        }
    }

    fn remove(&self, webhook: &Arc<Webhook>) {
        let mut table = self.table.lock();
        // another one may have its place
        if table.by_key.get(&webhook.key).is_some_and(|known| Arc::ptr_eq(known, webhook)) {
            table.by_key.remove(&webhook.key);
        }
    }

    fn find(&self, key: &WebhookKey) -> Option<Arc<Webhook>> {
        self.table.lock().by_key.get(key).filter(|webhook| !webhook.token.is_cancelled()).cloned()
    }
}

impl Webhooks {
    pub(in crate::capability::events) fn open(assembly: &mut Assembly<'_>) -> Arc<Self> {
        let options = &assembly.parts.options;
        let limits = options.limits.of_capabilities.get::<EventLimits>();
        let limits = limits.map(|limits| limits.webhook.clone()).unwrap_or_default();
        if limits.on_loopback {
            tracing::warn!(
                "webhooks may be sent to this machine: clients reach what only its programs should reach\n\
                 remove `webhooks_on_loopback()` outside of tests"
            );
        }
        if limits.roots.is_none() {
            assembly.errors.push(BuildError::new("the root certificates for webhooks are not in PEM".into()));
        }
        for problem in
            [&limits.challenges, &limits.host_challenges].into_iter().filter_map(|rate| rate.as_ref().err())
        {
            assembly.errors.push(BuildError::new(problem.clone()));
        }
        Arc::new(Self::new(limits, &assembly.parts.store))
    }
}

impl Capability for Webhooks {
    fn methods(&self) -> &'static [&'static str] {
        // `Events` has them: it also refuses them where callers are not identified
        &[]
    }

    fn serve(self: Arc<Self>, server: &Server) {
        self.lead(server);
    }

    fn end_of_principal(self: Arc<Self>, server: &Server, principal: &Principal) {
        let own: Vec<_> = {
            let table = self.table.lock();
            let own = table.by_key.values().filter(|webhook| webhook.caller().is_same(principal));
            own.cloned().collect()
        };
        own.iter().for_each(|webhook| webhook.revoked.cancel());
        // those that another process delivers, or none at the moment
        self.revoke(principal);
        self.lead(server);
    }

    fn settle(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(async move {
            // in memory, they go on until the server is gone
            if self.store.is_shared() {
                self.stop_leading().await;
            }
        })
    }

    fn answer(
        self: Arc<Self>,
        server: &Server,
        registry: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        match request.method {
            "events/subscribe" => self.subscribe(server, registry, request),
            _ => self.unsubscribe(request),
        }
    }

    fn observed(&self, registry: &Registry, request: &Request<'_>) -> ObservedItem {
        match registry.capabilities.get::<Events>() {
            Some(events) => events.observed(registry, request),
            None => ObservedItem::None,
        }
    }
}
