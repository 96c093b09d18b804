//! `events/subscribe` and `events/unsubscribe` (feature `events-webhook`): subscriptions whose events are sent to a URL of
//! the client, signed, for as long as the client renews them. They are kept in memory, so their time is short: a client that
//! renews one after a restart goes on at its cursor.

mod delivery;
mod endpoint;
mod subscribe;

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use self::endpoint::{DeliveryFailure, Endpoints};
use super::{EventLimits, Events, ring::ReadPosition};
use crate::{
    core::{
        admission::{Owner, Permit, Quota, Rate, RateLimiter, Shares},
        config::LONGEST,
        connection::Principal,
        dispatch::{ObservedItem, Reply, Request, Response},
        server::{Assembly, Capability, Declared, Lasting, Registry, Server},
        sync::Mutex,
        webhook_secret::Secret,
    },
    fetch::Reach,
};

/// The shortest time that is granted, so that clients do not renew without end.
const SHORTEST_LIFETIME: Duration = Duration::from_secs(60);
/// How long an old secret signs besides a new one.
const ROTATION: Duration = Duration::from_secs(5 * 60);
/// How long an endpoint that has repeated a challenge needs no other one.
const VERIFIED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Challenges for one host in a minute.
const CHALLENGES: u32 = 20;
/// Hosts whose challenges are counted.
const MAX_HOSTS: usize = 4_096;

/// Subscriptions by webhook.
const MAX_SUBSCRIPTIONS: usize = 10_000;
/// Bytes of messages that are on their way.
const MAX_BYTES: usize = 32 << 20;

/// Limits of subscriptions by webhook.
#[derive(Debug, Clone)]
pub(super) struct WebhookLimits {
    pub(super) max_subscriptions: usize,
    max_bytes: usize,
    lifetime: Duration,
    on_loopback: bool,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self {
            max_subscriptions: MAX_SUBSCRIPTIONS,
            max_bytes: MAX_BYTES,
            lifetime: Duration::from_secs(30 * 60),
            on_loopback: false,
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

    /// Sets how long a subscription by webhook lasts, unless the client asks for less or renews it; 30 minutes by default, a
    /// year at most. Subscriptions are in memory: after a restart, clients have none until they renew theirs.
    pub fn webhook_lifetime(mut self, time: Duration) -> Self {
        self.webhook.lifetime = time.clamp(SHORTEST_LIFETIME, LONGEST);
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
    endpoints: Arc<Endpoints>,
    /// Subscriptions, and bytes of messages on their way.
    shares: Arc<Shares>,
    bytes: Arc<Shares>,
    table: Mutex<WebhookTable>,
    challenges: RateLimiter,
    token: CancellationToken,
    /// Ends every subscription with the server.
    _end: DropGuard,
}

#[derive(Default)]
struct WebhookTable {
    by_key: HashMap<WebhookKey, Arc<Webhook>>,
    /// Endpoints that have repeated a challenge, by principal and URL.
    verified: HashMap<WebhookKey, Instant>,
}

/// A digest of what a subscription is: who, where, what and with which arguments.
type WebhookKey = [u8; 32];

/// One subscription.
pub(super) struct Webhook {
    key: WebhookKey,
    /// The wire's `id`.
    id: Box<str>,
    name: Box<str>,
    url: Url,
    owner: Owner,
    state: Mutex<WebhookState>,
    gap_recorded: Notify,
    renewed: Notify,
    token: CancellationToken,
    _permit: Permit,
}

struct WebhookState {
    caller: Arc<Principal>,
    secret: Secret,
    /// The secret before, and until when it signs.
    previous: Option<(Secret, Instant)>,
    expires: Instant,
    watermark: ReadPosition,
    /// Whether the endpoint has to be told of a gap.
    gap: bool,
    /// Whether the next response has to tell of one.
    truncated: bool,
    last_delivery: Option<SystemTime>,
    failure: Option<DeliveryFailure>,
    failed_since: Option<SystemTime>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // a URL may be a secret
        f.debug_struct("Webhook").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl Webhook {
    fn caller(&self) -> Arc<Principal> {
        self.state.lock().caller.clone()
    }

    /// The secret, and the one before as long as it signs.
    fn secrets(&self) -> [Option<Secret>; 2] {
        let state = self.state.lock();
        let previous = state.previous.as_ref().filter(|(_, until)| Instant::now() < *until);
        [Some(state.secret.clone()), previous.map(|(secret, _)| secret.clone())]
    }

    /// Ends when the subscription was not renewed in time.
    async fn expired(&self) {
        loop {
            let expires = self.state.lock().expires;
            tokio::select! {
                () = sleep_until(expires) => {
                    if self.state.lock().expires <= Instant::now() {
                        return;
                    }
                }
                () = self.renewed.notified() => {}
            }
        }
    }

    fn set_watermark(&self, position: ReadPosition) {
        self.state.lock().watermark = position;
    }

    /// Notes that the endpoint does not get an event.
    fn record_gap(&self) {
        {
            let mut state = self.state.lock();
            (state.gap, state.truncated) = (true, true);
        }
        self.gap_recorded.notify_one();
    }

    /// Whether the endpoint has to be told of a gap, once.
    fn take_gap(&self) -> bool {
        std::mem::take(&mut self.state.lock().gap)
    }

    /// Notes what became of an attempt.
    fn record(&self, sent: Result<(), DeliveryFailure>) {
        let mut state = self.state.lock();
        match sent {
            Ok(()) => {
                state.last_delivery = Some(SystemTime::now());
                (state.failure, state.failed_since) = (None, None);
            }
            Err(failure) => {
                state.failure = Some(failure);
                state.failed_since.get_or_insert_with(SystemTime::now);
            }
        }
    }
}

impl Webhooks {
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

    /// Whether an endpoint has repeated a challenge for this principal.
    fn is_verified(&self, endpoint: &WebhookKey) -> bool {
        self.table.lock().verified.get(endpoint).is_some_and(|until| Instant::now() < *until)
    }

    fn set_verified(&self, endpoint: WebhookKey) {
        let mut table = self.table.lock();
        let now = Instant::now();
        if table.verified.len() >= self.limits.max_subscriptions {
            table.verified.retain(|_, until| now < *until);
        }
        if table.verified.len() < self.limits.max_subscriptions {
            table.verified.insert(endpoint, now + VERIFIED_FOR);
        }
    }
}

impl Lasting for Webhooks {
    fn open(assembly: &mut Assembly<'_>) -> Arc<Self> {
        let options = assembly.rules.options;
        let limits = options.limits.of_capabilities.get::<EventLimits>();
        let limits = limits.map(|limits| limits.webhook.clone()).unwrap_or_default();
        let reach = if limits.on_loopback { Reach::Loopback } else { Reach::Public };
        if limits.on_loopback {
            tracing::warn!(
                "webhooks may be sent to this machine: clients reach what only its programs should reach\n\
                 remove `webhooks_on_loopback()` outside of tests"
            );
        }
        let token = CancellationToken::new();
        Arc::new(Self {
            endpoints: Arc::new(Endpoints::new(reach)),
            shares: Shares::new(options.limits.quota(limits.max_subscriptions)),
            bytes: Shares::new(Quota::half(limits.max_bytes)),
            table: Mutex::default(),
            challenges: RateLimiter::new(Rate::new(CHALLENGES, Duration::from_secs(60)), MAX_HOSTS),
            limits,
            _end: token.clone().drop_guard(),
            token,
        })
    }
}

impl Capability for Webhooks {
    fn methods(&self) -> &'static [&'static str] {
        &["events/subscribe", "events/unsubscribe"]
    }

    // that of events says it
    fn declare(&self, _: &mut Declared) {}

    fn answer(
        self: Arc<Self>,
        server: &Server,
        registry: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        match request.method {
            "events/subscribe" => self.subscribe(server, registry, request),
            _ => self.unsubscribe(server, &request),
        }
    }

    fn observed(&self, registry: &Registry, request: &Request<'_>) -> ObservedItem {
        match registry.capabilities.get::<Events>() {
            Some(events) => events.observed(registry, request),
            None => ObservedItem::None,
        }
    }
}
