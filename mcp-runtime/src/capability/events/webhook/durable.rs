//! Subscriptions that replicas share: each is a value of the store, which every replica renews, and one replica delivers.
//!
//! The subscriptions are divided into parts. The value of a part says which replica delivers it, and which positions were
//! reached. That replica replaces the value every few seconds; another one takes the part when the value has not changed
//! for some time, or was released. Each replacement names the version that it replaces, so one of several that try succeeds,
//! and a replica that was suspended notices that it has lost its parts. Events that were on their way come again.
//!
//! A replica with less than its share of the parts asks the one with most of them, which hands some over.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    DeliveryFailure, GapMessage, RunningKeeper, Webhook, WebhookKey, WebhookState, Webhooks,
    delivery::Deliverer, secret::Secret,
};
use crate::{
    capability::events::{
        Events, entry::EventSubscriber, ring::ReadPosition, subscription::EventSubscription,
    },
    core::{
        admission::Owner,
        config::LONGEST,
        connection::{Principal, StoredPrincipal},
        log_limit::log_store_error,
        server::{Entry as _, Server, WeakServer},
        spawn::spawn,
        store::{Condition, Found, Received, SealedStore, StoreError, Table, Write, Written},
        sync::Mutex,
    },
};

/// Parts of the subscriptions, each of which one replica delivers.
const PARTS: u8 = 16;
/// How often a replica says that it delivers its parts, and looks at those of others.
const BEAT: Duration = Duration::from_secs(2);
/// How long a part may be unchanged before another replica takes it.
const LEASE: Duration = Duration::from_secs(10);
/// The topic of notices about subscriptions that were made, renewed or ended.
const TOPIC: &str = "webhooks";
/// The prefix of a message in which a replica asks for parts; no key begins with it. The id of the replica that is asked
/// follows, and its own after a space.
const REQUEST: &[u8] = b"+";
/// After the subscription to the topic has failed.
const RETRY: Duration = Duration::from_secs(1);
/// Bytes of one subscription in the store.
const MAX_RECORD: usize = 64 << 10;
/// Attempts to replace a value that others replace, too.
const MAX_CONFLICTS: usize = 8;
/// How long the value of an ended subscription stays: the store has it no more when replicas look at it.
const ENDED: Duration = Duration::from_secs(1);
/// The same of one whose principal has lost access: the replica that delivers it tells its endpoint.
const REVOKED: Duration = Duration::from_secs(30);

const OTHER_VERSION: &str = "the subscription is of another version of this crate";

/// Whether the lists of API keys do not have a principal any more.
fn is_removed(server: &Server, principal: &Principal) -> bool {
    #[cfg(feature = "auth")]
    return server.options().http.authenticator.as_ref().is_some_and(|keys| keys.has_removed(principal));
    #[cfg(not(feature = "auth"))]
    {
        let _without_keys = (server, principal);
        false
    }
}

/// A subscription as the store has it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) url: String,
    /// As the client has sent them.
    pub(super) arguments: String,
    pub(super) caller: StoredPrincipal,
    pub(super) owner: String,
    pub(super) secret: String,
    /// The secret before, and until when it signs.
    pub(super) previous: Option<(String, u64)>,
    /// `None` if it does not expire.
    pub(super) expires: Option<u64>,
    /// When it was made, in milliseconds since 1970; one that replaces an ended one is later.
    #[serde(default)]
    pub(super) since: u64,
    /// Where it begins.
    pub(super) start: String,
    /// How many gaps its client was told of.
    pub(super) told_gaps: u64,
    pub(super) has_ended: bool,
    /// Whether it has ended since its principal has lost access, and its endpoint was not told yet.
    #[serde(default)]
    pub(super) is_revoked: bool,
}

/// The position that a subscription has reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Reached {
    /// The subscription that it is of.
    #[serde(default)]
    pub(super) since: u64,
    /// Everything before it was delivered, or given up.
    pub(super) position: String,
    pub(super) last_delivery: Option<u64>,
    pub(super) failure: Option<String>,
    pub(super) failed_since: Option<u64>,
    /// How many gaps there were.
    pub(super) gaps: u64,
}

/// The value of a part.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Part {
    /// The replica that delivers; empty if it has released the part.
    holder: String,
    /// By the keys of subscriptions.
    reached: BTreeMap<String, Reached>,
}

/// The state of a part as a replica knows it.
enum KnownPart {
    /// Another one delivers it, or none; when this version was first seen.
    Other {
        version: u64,
        since: Instant,
    },
    Own {
        version: u64,
    },
}

/// The value that the store has for a key.
enum FoundValue<T> {
    Nothing,
    /// Only replicas of another version of this crate can read it.
    OtherVersion,
    Value(T, u64),
}

/// A principal that has lost access.
struct Revocation {
    /// Without its claims.
    principal: Principal,
    /// When this replica learned of it, in milliseconds since 1970. The subscriptions that the principal has made later, with
    /// new access, go on.
    time: u64,
}

/// The subscriptions that the replicas of a server share.
pub(super) struct DurableWebhooks {
    store: SealedStore,
    /// This replica.
    replica: String,
    records: Table,
    indexes: Table,
    parts: Table,
    verified: Table,
    /// The positions reached by subscriptions of own parts that are not delivered at the moment.
    kept: Mutex<BTreeMap<String, Reached>>,
    own: Mutex<[bool; PARTS as usize]>,
    /// Something was changed by this replica.
    changed: Notify,
    /// Principals that have lost access, and whose subscriptions were not ended in the store yet, oldest first.
    revoked: Mutex<VecDeque<Arc<Revocation>>>,
    /// The most of them: the store has no subscriptions of more.
    max_revoked: usize,
}

/// Milliseconds since 1970.
pub(super) fn to_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn of_millis(time: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(time).min(LONGEST * 100)
}

/// The time of this process; one that has passed is now.
fn instant_of(time: u64) -> Instant {
    Instant::now() + of_millis(time).duration_since(SystemTime::now()).unwrap_or_default()
}

pub(super) fn position_text(position: &ReadPosition) -> String {
    URL_SAFE_NO_PAD.encode(position.to_bytes())
}

pub(super) fn parse_position(text: &str) -> Option<ReadPosition> {
    ReadPosition::from_bytes(&URL_SAFE_NO_PAD.decode(text).ok()?)
}

/// A key as the store has it.
fn key_text(key: &WebhookKey) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_key(text: &str) -> Option<WebhookKey> {
    let mut key = WebhookKey::default();
    let pairs = text.as_bytes().chunks_exact(2);
    if text.len() != key.len() * 2 {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}

fn part_of(key: &WebhookKey) -> u8 {
    key.first().copied().unwrap_or_default() % PARTS
}

impl Record {
    /// Whether it was neither ended nor has expired.
    pub(super) fn is_alive(&self) -> bool {
        !self.has_ended && self.expires.is_none_or(|expires| of_millis(expires) > SystemTime::now())
    }

    /// Replaces the secret; the one before signs for some time.
    pub(super) fn set_secret(&mut self, secret: &Secret) {
        let text = secret.to_text();
        if self.secret != text {
            let until = to_millis(SystemTime::now() + super::ROTATION);
            self.previous = Some((std::mem::replace(&mut self.secret, text), until));
        }
    }

    fn kept_for(&self) -> Duration {
        let left = |expires| of_millis(expires).duration_since(SystemTime::now()).unwrap_or_default();
        self.expires.map_or(LONGEST, left).max(Duration::from_secs(1))
    }

    /// Its mutable part, as deliveries need it; `None` if it is broken.
    fn state(&self, reached: &Reached, position: ReadPosition) -> Option<WebhookState> {
        let previous = match &self.previous {
            Some((secret, until)) => Some((Secret::parse(secret)?, instant_of(*until))),
            None => None,
        };
        Some(WebhookState {
            caller: Arc::new(self.caller.principal()),
            secret: Secret::parse(&self.secret)?,
            previous,
            expires: self.expires.map(instant_of),
            watermark: position,
            gap: GapMessage::None,
            truncated: false,
            gaps: reached.gaps,
            last_delivery: reached.last_delivery.map(of_millis),
            failure: reached.failure.as_deref().and_then(DeliveryFailure::parse),
            failed_since: reached.failed_since.map(of_millis),
        })
    }
}

impl Reached {
    fn of(webhook: &Webhook) -> Self {
        let state = webhook.state.lock();
        Self {
            since: webhook.since,
            position: position_text(&state.watermark),
            last_delivery: state.last_delivery.map(to_millis),
            failure: state.failure.map(|failure| failure.as_str().to_owned()),
            failed_since: state.failed_since.map(to_millis),
            gaps: state.gaps,
        }
    }
}

impl DurableWebhooks {
    /// The webhooks of a server, if it shares a store.
    pub(super) fn of(server: &Server, max_subscriptions: usize) -> Option<Arc<Self>> {
        let store = server.store();
        store.is_shared().then(|| Arc::new(Self::new(store.clone(), max_subscriptions)))
    }

    fn new(store: SealedStore, max_subscriptions: usize) -> Self {
        let small = |name: &str| Table::new(name, usize::from(PARTS) * 2, MAX_RECORD * 1024, 100);
        Self {
            replica: store.process().to_string(),
            store,
            records: Table::new("webhooks", max_subscriptions, max_subscriptions.saturating_mul(4096), 50),
            indexes: small("webhook-indexes"),
            parts: small("webhook-parts"),
            verified: Table::new(
                "webhook-endpoints",
                max_subscriptions,
                max_subscriptions.saturating_mul(256),
                50,
            ),
            kept: Mutex::default(),
            own: Mutex::default(),
            changed: Notify::new(),
            revoked: Mutex::default(),
            max_revoked: max_subscriptions,
        }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        table: &Table,
        key: &str,
    ) -> Result<Option<(T, u64)>, StoreError> {
        Ok(match self.look_up(table, key).await? {
            FoundValue::Value(value, version) => Some((value, version)),
            FoundValue::Nothing | FoundValue::OtherVersion => None,
        })
    }

    async fn look_up<T: DeserializeOwned>(
        &self,
        table: &Table,
        key: &str,
    ) -> Result<FoundValue<T>, StoreError> {
        Ok(match self.store.find(table, key).await? {
            Found::Nothing => FoundValue::Nothing,
            Found::OtherVersion => FoundValue::OtherVersion,
            Found::Value(found) => match serde_json::from_slice(&found.bytes) {
                Ok(value) => FoundValue::Value(value, found.version),
                Err(_) => {
                    self.store.log_other_version(table);
                    FoundValue::OtherVersion
                }
            },
        })
    }

    async fn put<T: Serialize>(
        &self,
        table: &Table,
        key: &str,
        value: &T,
        (owner, expires_in, condition): (&str, Duration, Condition),
    ) -> Result<Written, StoreError> {
        let bytes = serde_json::to_vec(value)?;
        self.store.put(table, key, Write { bytes: &bytes, owner, expires_in, condition }).await
    }

    /// A subscription and its version, also one that has ended.
    ///
    /// # Errors
    /// The store cannot be read, or only replicas of another version of this crate can read the subscription.
    pub(super) async fn find(&self, key: &WebhookKey) -> Result<Option<(Record, u64)>, StoreError> {
        match self.look_up(&self.records, &key_text(key)).await? {
            FoundValue::Value(record, version) => Ok(Some((record, version))),
            FoundValue::Nothing => Ok(None),
            FoundValue::OtherVersion => Err(OTHER_VERSION.into()),
        }
    }

    /// Puts a subscription, and tells the replica that delivers it.
    pub(super) async fn put_record(
        &self,
        key: &WebhookKey,
        record: &Record,
        condition: Condition,
    ) -> Result<Written, StoreError> {
        let text = key_text(key);
        let bytes = serde_json::to_vec(record)?;
        if bytes.len() > MAX_RECORD {
            return Ok(Written::Full);
        }
        let kept_for = match (record.has_ended, record.is_revoked) {
            (false, _) => record.kept_for(),
            (true, false) => ENDED,
            (true, true) => REVOKED,
        };
        let write = Write { bytes: &bytes, owner: &record.owner, expires_in: kept_for, condition };
        let written = self.store.put(&self.records, &text, write).await?;
        if written == Written::Stored {
            if !record.has_ended {
                self.change_index(part_of(key), &[&text], &[]).await?;
            }
            self.changed.notify_one();
            // a replica that does not get it looks at the store a little later
            let _told = self.store.publish(TOPIC, text.as_bytes()).await;
        }
        Ok(written)
    }

    /// Ends a subscription for all replicas.
    pub(super) async fn end(&self, key: &WebhookKey) -> Result<bool, StoreError> {
        let Some((mut record, _)) = self.find(key).await?.filter(|(record, _)| record.is_alive()) else {
            return Ok(false);
        };
        record.has_ended = true;
        self.put_record(key, &record, Condition::Always).await?;
        Ok(true)
    }

    /// Ends a subscription whose endpoint is told why, if it is still this one.
    pub(super) async fn end_told(&self, key: &WebhookKey, since: u64) -> Result<(), StoreError> {
        let end = |record: &mut Record| {
            let is_this = record.since == since && (record.is_alive() || record.is_revoked);
            if is_this {
                (record.has_ended, record.is_revoked) = (true, false);
            }
            is_this
        };
        if self.change_record(key, end).await? { Ok(()) } else { Err(OTHER_VERSION.into()) }
    }

    /// Changes a subscription until no other replica has changed it meanwhile; `change` returns whether there is anything to
    /// write. `false` if only replicas of another version can read it.
    async fn change_record(
        &self,
        key: &WebhookKey,
        change: impl Fn(&mut Record) -> bool,
    ) -> Result<bool, StoreError> {
        for _ in 0..MAX_CONFLICTS {
            let (mut record, version) = match self.look_up(&self.records, &key_text(key)).await? {
                FoundValue::Value(record, version) => (record, version),
                FoundValue::Nothing => return Ok(true),
                FoundValue::OtherVersion => return Ok(false),
            };
            if !change(&mut record)
                || self.put_record(key, &record, Condition::Version(version)).await? == Written::Stored
            {
                return Ok(true);
            }
        }
        Err("the subscription changes too often".into())
    }

    /// Ends the subscriptions of a principal for all replicas, as soon as the store can be used. If too many wait for that, the
    /// oldest is forgotten.
    pub(super) fn revoke(&self, principal: &Principal) {
        {
            let mut revoked = self.revoked.lock();
            revoked.retain(|known| !known.principal.is_same(principal));
            revoked.push_back(Arc::new(Revocation {
                principal: Principal::new(principal.issuer(), principal.subject()),
                time: to_millis(SystemTime::now()),
            }));
            if revoked.len() > self.max_revoked {
                revoked.pop_front();
                let what = "subscriptions by webhook of a principal without access go on until they expire";
                log_store_error(
                    &"more principals than `max_webhooks` have lost access while it was away",
                    what,
                );
            }
        }
        self.changed.notify_one();
    }

    /// Ends in the store what was revoked.
    async fn end_revoked(&self) -> Result<(), StoreError> {
        let revoked = self.revoked.lock().clone();
        if revoked.is_empty() {
            return Ok(());
        }
        let lost: HashMap<_, _> = revoked
            .iter()
            .map(|known| ((known.principal.issuer(), known.principal.subject()), known.time))
            .collect();
        let end = |record: &mut Record| {
            let time = lost.get(&record.caller.identity());
            let has_lost = record.is_alive() && time.is_some_and(|time| record.since <= *time);
            if has_lost {
                (record.has_ended, record.is_revoked) = (true, true);
            }
            has_lost
        };
        for part in 0..PARTS {
            let index = self.get::<Vec<String>>(&self.indexes, &part.to_string()).await?;
            for key in index.into_iter().flat_map(|(keys, _)| keys) {
                if let Some(key) = parse_key(&key) {
                    // replicas of another version end theirs
                    let _is_readable = self.change_record(&key, end).await?;
                }
            }
        }
        // principals revoked meanwhile may concern subscriptions that were already checked
        self.revoked.lock().retain(|known| !revoked.iter().any(|done| Arc::ptr_eq(done, known)));
        Ok(())
    }

    /// The position reached, as far as the replica that delivers has reported it.
    pub(super) async fn reached(&self, key: &WebhookKey) -> Result<Option<Reached>, StoreError> {
        let part = self.get::<Part>(&self.parts, &part_of(key).to_string()).await?;
        Ok(part.and_then(|(mut part, _)| part.reached.remove(&key_text(key))))
    }

    /// Whether an endpoint has repeated a challenge for this principal, at any replica.
    pub(super) async fn is_verified(&self, endpoint: &WebhookKey) -> Result<bool, StoreError> {
        Ok(self.store.get(&self.verified, &key_text(endpoint)).await?.is_some())
    }

    pub(super) async fn set_verified(&self, endpoint: &WebhookKey, owner: &str) {
        let how = (owner, super::VERIFIED_FOR, Condition::Always);
        // it is verified again if this fails
        let _written = self.put(&self.verified, &key_text(endpoint), &true, how).await;
    }

    /// Adds keys to the index of a part, and removes others.
    async fn change_index(&self, part: u8, added: &[&str], removed: &[&str]) -> Result<(), StoreError> {
        let name = part.to_string();
        for _ in 0..MAX_CONFLICTS {
            let found = self.get::<Vec<String>>(&self.indexes, &name).await?;
            let (mut keys, condition) = match found {
                Some((keys, version)) => (keys, Condition::Version(version)),
                None => (Vec::new(), Condition::Absent),
            };
            let before = keys.len();
            keys.retain(|key| !removed.contains(&key.as_str()));
            let missing: Vec<_> =
                added.iter().filter(|key| !keys.iter().any(|known| known == *key)).collect();
            if missing.is_empty() && keys.len() == before {
                return Ok(());
            }
            keys.extend(missing.into_iter().map(|key| (*key).to_owned()));
            match self.put(&self.indexes, &name, &keys, ("local", LONGEST, condition)).await? {
                Written::Stored => return Ok(()),
                Written::Conflict => {}
                Written::Full => return Err("the index of subscriptions is full".into()),
            }
        }
        Err("the index of subscriptions changes too often".into())
    }
}

/// Delivers on this replica.
struct Keeper {
    durable: Arc<DurableWebhooks>,
    webhooks: Weak<Webhooks>,
    server: WeakServer,
    parts: Vec<KnownPart>,
    /// The replicas that deliver the other parts, as they were last seen.
    holders: BTreeMap<u8, String>,
    /// Whether messages of other replicas may have been lost, so that every subscription is examined.
    has_missed: bool,
}

impl Webhooks {
    /// Begins to deliver what the replicas share, unless that was done.
    pub(super) fn keep(self: &Arc<Self>, server: &Server) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let Some(durable) = self.durable(server) else { return };
        let (stop, stopped) = (self.token.child_token(), CancellationToken::new());
        {
            let mut running = self.keeper.lock();
            if running.is_some() {
                return;
            }
            *running = Some(RunningKeeper { stop: stop.clone(), stopped: stopped.clone() });
        }
        let since = Instant::now();
        let keeper = Keeper {
            durable: durable.clone(),
            webhooks: Arc::downgrade(self),
            server: server.downgrade(),
            parts: (0..PARTS).map(|_| KnownPart::Other { version: 0, since }).collect(),
            holders: BTreeMap::new(),
            has_missed: false,
        };
        spawn(async move {
            let (durable, webhooks) = (keeper.durable.clone(), keeper.webhooks.clone());
            tokio::select! {
                () = stop.cancelled() => {}
                () = keeper.run() => {}
            }
            // where the store fails, others end it that were told as well
            let _ended = durable.end_revoked().await;
            durable.release(&webhooks).await;
            stopped.cancel();
        });
    }

    /// Stops to deliver what the replicas share, and waits for a short time until others can deliver it.
    pub(super) async fn stop_keeper(&self) {
        const SETTLE: Duration = Duration::from_secs(3);
        let Some(RunningKeeper { stop, stopped }) = self.keeper.lock().take() else { return };
        stop.cancel();
        if timeout(SETTLE, stopped.cancelled()).await.is_err() {
            log_store_error(&"the store does not answer", "subscriptions by webhook cannot be handed over");
        }
    }
}

impl DurableWebhooks {
    /// Lets other replicas take the parts of this one at once, and go on where it is.
    async fn release(&self, webhooks: &Weak<Webhooks>) {
        let webhooks = webhooks.upgrade();
        let own = std::mem::take(&mut *self.own.lock());
        let mut is_reached = true;
        for part in (0..PARTS).filter(|part| own.get(usize::from(*part)).is_some_and(|own| *own)) {
            if is_reached && let Err(error) = self.release_part(part, webhooks.as_deref()).await {
                tracing::debug!(%error, "other replicas take the subscriptions of this one a little later");
                is_reached = false;
            }
            if let Some(webhooks) = &webhooks {
                webhooks.stop_part(part);
            }
        }
    }

    async fn release_part(&self, part: u8, webhooks: Option<&Webhooks>) -> Result<(), StoreError> {
        let name = part.to_string();
        let Some((mut value, version)) = self.get::<Part>(&self.parts, &name).await? else { return Ok(()) };
        if value.holder == self.replica {
            value.holder.clear();
            if let Some(webhooks) = webhooks {
                value.reached = self.collect(part, webhooks);
            }
            // a conflict is with one that has taken it
            self.put(&self.parts, &name, &value, ("local", LONGEST, Condition::Version(version))).await?;
        }
        Ok(())
    }
}

impl Keeper {
    async fn run(mut self) {
        let mut topic = None;
        loop {
            let mut is_complete = true;
            for part in 0..PARTS {
                let (Some(webhooks), Some(server)) = (self.webhooks.upgrade(), self.server.upgrade()) else {
                    return;
                };
                if let Err(error) = self.look_at(part, &webhooks, &server).await {
                    tracing::debug!(%error, "the store of subscriptions by webhook cannot be used");
                    is_complete = false;
                    break;
                }
            }
            self.has_missed &= !is_complete;
            if is_complete {
                self.request_parts().await;
            }
            self.end_revoked().await;
            let next = Instant::now() + BEAT;
            loop {
                if topic.is_none() {
                    topic = self.durable.store.subscribe(TOPIC).await.ok();
                }
                let received = async {
                    match &mut topic {
                        Some(topic) => topic.next().await,
                        None => {
                            sleep(RETRY).await;
                            None
                        }
                    }
                };
                tokio::select! {
                    () = sleep_until(next) => break,
                    // parts that no replica has are taken
                    () = self.durable.changed.notified() => self.end_revoked().await,
                    received = received => match received {
                        Some(Received::Message(message)) if message.starts_with(REQUEST) => {
                            let Some(webhooks) = self.webhooks.upgrade() else { return };
                            if let Err(error) = self.hand_over(&message, &webhooks).await {
                                tracing::debug!(%error, "subscriptions by webhook cannot be handed over now");
                            }
                        }
                        Some(Received::Message(key)) => {
                            let key = std::str::from_utf8(&key).ok().and_then(parse_key);
                            let (Some(key), Some(webhooks), Some(server)) =
                                (key, self.webhooks.upgrade(), self.server.upgrade()) else { continue };
                            if self.owns(part_of(&key)) {
                                // it is tried again when the part is looked at
                                let _later = self.load(&key, None, &webhooks, &server).await;
                            }
                        }
                        Some(Received::Missed) => self.has_missed = true,
                        None => (topic, self.has_missed) = (None, true),
                    },
                }
            }
        }
    }

    async fn end_revoked(&self) {
        if let Err(error) = self.durable.end_revoked().await {
            let what = "subscriptions by webhook of a principal without access are ended a little later";
            log_store_error(&error, what);
        }
    }

    fn owns(&self, part: u8) -> bool {
        matches!(self.parts.get(usize::from(part)), Some(KnownPart::Own { .. }))
    }

    /// How many parts this replica has.
    fn own_parts(&self) -> usize {
        (0..PARTS).filter(|part| self.owns(*part)).count()
    }

    /// How many parts each replica should have at least that has any, or asks for them.
    fn share(&self, asking: &str) -> usize {
        let mut replicas: BTreeSet<&str> = self.holders.values().map(String::as_str).collect();
        replicas.extend([asking, &self.durable.replica]);
        usize::from(PARTS) / replicas.len()
    }

    /// Asks the replica with most parts for some, if this one has less than its share.
    async fn request_parts(&self) {
        let own = &self.durable.replica;
        if self.own_parts() >= self.share(own) {
            return;
        }
        let mut counts = BTreeMap::<&str, usize>::new();
        for holder in self.holders.values() {
            *counts.entry(holder).or_default() += 1;
        }
        let Some((most, _)) = counts.into_iter().max_by_key(|(_, count)| *count) else { return };
        let request = [REQUEST, most.as_bytes(), b" ", own.as_bytes()].concat();
        // it is repeated after the next look
        let _lost = self.durable.store.publish(TOPIC, &request).await;
    }

    /// Hands parts over to the replica that asks this one for them, until one of the two has its share.
    async fn hand_over(&mut self, request: &[u8], webhooks: &Webhooks) -> Result<(), StoreError> {
        let durable = self.durable.clone();
        let text = request.strip_prefix(REQUEST).and_then(|text| std::str::from_utf8(text).ok());
        let Some((asked, asking)) = text.and_then(|text| text.split_once(' ')) else { return Ok(()) };
        if asked != durable.replica || asking == asked {
            return Ok(());
        }
        let share = self.share(asking);
        let of_asking = self.holders.values().filter(|holder| *holder == asking).count();
        let count = self.own_parts().saturating_sub(share).min(share.saturating_sub(of_asking));
        let own: Vec<u8> = (0..PARTS).rev().filter(|part| self.owns(*part)).take(count).collect();
        for part in own {
            let Some(KnownPart::Own { version }) = self.parts.get(usize::from(part)) else { continue };
            let condition = Condition::Version(*version);
            let value = Part { holder: asking.to_owned(), reached: durable.collect(part, webhooks) };
            let how = ("local", LONGEST, condition);
            if durable.put(&durable.parts, &part.to_string(), &value, how).await? == Written::Stored {
                self.lose(part, condition.next_version(), webhooks);
                self.holders.insert(part, asking.to_owned());
            }
        }
        Ok(())
    }

    /// Stops to deliver a part, which another replica delivers.
    fn lose(&mut self, part: u8, version: u64, webhooks: &Webhooks) {
        tracing::debug!(part, "the subscriptions by webhook of a part are delivered by another replica");
        self.set(part, KnownPart::Other { version, since: Instant::now() });
        webhooks.stop_part(part);
        self.durable.kept.lock().retain(|key, _| parse_key(key).is_some_and(|key| part_of(&key) != part));
    }

    fn set(&mut self, part: u8, known: KnownPart) {
        let is_own = matches!(known, KnownPart::Own { .. });
        if is_own {
            self.holders.remove(&part);
        }
        if let Some(own) = self.durable.own.lock().get_mut(usize::from(part)) {
            *own = is_own;
        }
        if let Some(place) = self.parts.get_mut(usize::from(part)) {
            *place = known;
        }
    }

    /// Says that this replica delivers a part, or takes one that none delivers.
    async fn look_at(
        &mut self,
        part: u8,
        webhooks: &Arc<Webhooks>,
        server: &Server,
    ) -> Result<(), StoreError> {
        let name = part.to_string();
        let durable = self.durable.clone();
        if let Some(KnownPart::Own { version }) = self.parts.get(usize::from(part)) {
            let version = *version;
            self.load_index(part, webhooks, server).await?;
            let value = Part { holder: durable.replica.clone(), reached: durable.collect(part, webhooks) };
            let how = ("local", LONGEST, Condition::Version(version));
            if durable.put(&durable.parts, &name, &value, how).await? == Written::Stored {
                self.set(part, KnownPart::Own { version: version + 1 });
            } else {
                self.lose(part, 0, webhooks);
            }
            return Ok(());
        }
        let (mut value, condition) = match durable.get::<Part>(&durable.parts, &name).await? {
            None => (Part::default(), Condition::Absent),
            Some((value, version)) => {
                let is_free = match self.parts.get(usize::from(part)) {
                    Some(KnownPart::Other { version: known, since }) if *known == version => {
                        since.elapsed() >= LEASE
                    }
                    _ => {
                        self.set(part, KnownPart::Other { version, since: Instant::now() });
                        false
                    }
                };
                // another replica has released it, or handed it over to this one
                let is_left = value.holder.is_empty() || value.holder == durable.replica;
                if !is_free && !is_left {
                    self.holders.insert(part, value.holder);
                    return Ok(());
                }
                (value, Condition::Version(version))
            }
        };
        value.holder.clone_from(&durable.replica);
        if durable.put(&durable.parts, &name, &value, ("local", LONGEST, condition)).await? != Written::Stored
        {
            return Ok(());
        }
        self.set(part, KnownPart::Own { version: condition.next_version() });
        durable.kept.lock().extend(value.reached);
        self.load_index(part, webhooks, server).await
    }

    /// Begins to deliver the subscriptions of a part that are not delivered yet, and forgets those that are gone.
    async fn load_index(
        &self,
        part: u8,
        webhooks: &Arc<Webhooks>,
        server: &Server,
    ) -> Result<(), StoreError> {
        let durable = &self.durable;
        let Some((keys, _)) = durable.get::<Vec<String>>(&durable.indexes, &part.to_string()).await? else {
            return Ok(());
        };
        let mut gone = Vec::new();
        for text in &keys {
            let Some(key) = parse_key(text) else { continue };
            if !self.has_missed && webhooks.find(&key).is_some() {
                continue;
            }
            if !self.load(&key, Some(text), webhooks, server).await? {
                gone.push(text.as_str());
            }
        }
        if !gone.is_empty() {
            durable.kept.lock().retain(|key, _| !gone.contains(&key.as_str()));
            durable.change_index(part, &[], &gone).await?;
        }
        Ok(())
    }

    /// Delivers a subscription as the store has it; whether it is there.
    async fn load(
        &self,
        key: &WebhookKey,
        text: Option<&str>,
        webhooks: &Arc<Webhooks>,
        server: &Server,
    ) -> Result<bool, StoreError> {
        let durable = &self.durable;
        let found = match durable.look_up::<Record>(&durable.records, &key_text(key)).await? {
            // replicas of that version deliver it, when they have its part
            FoundValue::OtherVersion => return Ok(true),
            FoundValue::Value(record, _) => {
                Some(record).filter(|record| record.is_alive() || record.is_revoked)
            }
            FoundValue::Nothing => None,
        };
        if let Some(record) = &found
            && let Some(other) = webhooks.find(key).filter(|webhook| webhook.since != record.since)
        {
            // one that has ended, and was made again
            other.token.cancel();
            webhooks.remove(&other);
        }
        let Some(record) = found else {
            if let Some(webhook) = webhooks.find(key) {
                webhook.token.cancel();
                webhooks.remove(&webhook);
            }
            return Ok(false);
        };
        let owned;
        let text = match text {
            Some(text) => text,
            None => {
                owned = key_text(key);
                &owned
            }
        };
        let reached = self.durable.kept.lock().get(text).cloned();
        let reached = reached.filter(|reached| reached.since == record.since);
        let has_reached = reached.is_some();
        let reached = reached.unwrap_or_default();
        let position = parse_position(if has_reached { &reached.position } else { &record.start });
        let state = position.and_then(|position| Some((record.state(&reached, position)?, position)));
        let Some((state, position)) = state else {
            durable.store.log_other_version(&durable.records);
            return Ok(true);
        };
        if let Some(webhook) = webhooks.find(key) {
            if record.is_revoked {
                webhook.revoked.cancel();
                return Ok(false);
            }
            {
                let mut current = webhook.state.lock();
                (current.caller, current.secret) = (state.caller, state.secret);
                (current.previous, current.expires) = (state.previous, state.expires);
            }
            webhook.note_renewal();
            return Ok(true);
        }
        webhooks.deliver_record(*key, &record, state, &position, server);
        self.durable.kept.lock().remove(text);
        Ok(!record.is_revoked)
    }
}

impl DurableWebhooks {
    /// The positions that the subscriptions of a part have reached.
    fn collect(&self, part: u8, webhooks: &Webhooks) -> BTreeMap<String, Reached> {
        let mut reached: BTreeMap<_, _> = self
            .kept
            .lock()
            .iter()
            .filter(|(key, _)| parse_key(key).is_some_and(|key| part_of(&key) == part))
            .map(|(key, reached)| (key.clone(), reached.clone()))
            .collect();
        let table = webhooks.table.lock();
        let of_part = table.by_key.iter().filter(|(key, _)| part_of(key) == part);
        reached.extend(of_part.map(|(key, webhook)| (key_text(key), Reached::of(webhook))));
        reached
    }
}

impl Webhooks {
    /// Stops to deliver the subscriptions of a part, without ending them.
    fn stop_part(&self, part: u8) {
        let mut table = self.table.lock();
        table.by_key.retain(|key, webhook| {
            let stays = part_of(key) != part;
            if !stays {
                webhook.token.cancel();
            }
            stays
        });
    }

    /// Delivers a subscription on this replica.
    fn deliver_record(
        self: &Arc<Self>,
        key: WebhookKey,
        record: &Record,
        state: WebhookState,
        position: &ReadPosition,
        server: &Server,
    ) {
        let Ok(url) = Url::parse(&record.url) else { return };
        let subscriber = EventSubscriber {
            caller: Some(state.caller.clone()),
            access_rules: Some(server.access_rules().clone()),
        };
        let registry = server.registry();
        // a replica of another version may have the event
        let events = registry.capabilities.get::<Events>();
        let entry = events.and_then(|events| events.catalog.iter().find(|entry| entry.name() == record.name));
        let Some(entry) = entry else { return };
        let given: Arc<str> = entry.given(&record.arguments).as_deref().unwrap_or(&record.arguments).into();
        let webhook = Arc::new(Webhook {
            key,
            since: record.since,
            id: record.id.as_str().into(),
            name: record.name.as_str().into(),
            url,
            owner: Owner::from_text(record.owner.as_str().into()),
            state: Mutex::new(state),
            gap_recorded: Notify::new(),
            renewed: Notify::new(),
            token: self.token.child_token(),
            revoked: CancellationToken::new(),
            _permit: None,
        });
        if record.is_revoked || is_removed(server, &webhook.caller()) {
            webhook.revoked.cancel();
        }
        let subscription =
            EventSubscription::at(server, entry, subscriber, &record.arguments, given, position);
        self.table.lock().by_key.insert(key, webhook.clone());
        let deliverer = Deliverer {
            server: server.downgrade(),
            webhooks: Arc::downgrade(self),
            endpoints: self.endpoints.clone(),
            bytes: self.bytes.clone(),
            webhook,
            subscription,
        };
        spawn(deliverer.run());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        admission::Quota,
        crypto::{Key, KeyRing, test_key},
        store::Memory,
    };

    fn durable(store: SealedStore) -> Arc<DurableWebhooks> {
        Arc::new(DurableWebhooks::new(store, 100))
    }

    fn record(subject: &str) -> Record {
        Record {
            id: "sub_1".into(),
            name: "note.added".into(),
            url: "https://example.com/".into(),
            arguments: "{}".into(),
            caller: StoredPrincipal::new(&Principal::new("test", subject)),
            owner: subject.into(),
            secret: String::new(),
            previous: None,
            expires: None,
            since: 1,
            start: String::new(),
            told_gaps: 0,
            has_ended: false,
            is_revoked: false,
        }
    }

    #[tokio::test]
    async fn of_too_many_principals_that_lose_access_before_the_store_can_be_used_the_oldest_is_forgotten() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let store = SealedStore::shared(Arc::new(memory), &keys, "test");
        let (all, two) = (durable(store.clone()), DurableWebhooks::new(store, 2));
        let subjects = ["ada", "bob", "cleo"];
        let key = |index: usize| [u8::try_from(index).expect("a few"); 32];
        for (index, subject) in subjects.iter().enumerate() {
            all.put_record(&key(index), &record(subject), Condition::Absent).await.unwrap();
        }
        // one that loses access twice is one
        for subject in ["bob", "ada", "bob", "cleo"] {
            two.revoke(&Principal::new("test", subject));
        }
        two.end_revoked().await.unwrap();
        let mut ended = Vec::new();
        for (index, subject) in subjects.iter().enumerate() {
            let (record, _) = all.find(&key(index)).await.unwrap().expect("a subscription");
            ended.push((*subject, record.is_revoked));
        }
        assert_eq!(ended, [("ada", false), ("bob", true), ("cleo", true)]);
        assert!(two.revoked.lock().is_empty());
    }

    #[tokio::test]
    async fn a_subscription_that_is_made_with_new_access_goes_on_also_if_the_ones_before_are_ended_later() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let durable = durable(SealedStore::shared(Arc::new(memory), &keys, "test"));
        let (before, after) = (WebhookKey::default(), [1; 32]);
        let now = to_millis(SystemTime::now());
        let made = |since| Record { since, ..record("ada") };
        durable.put_record(&before, &made(now), Condition::Absent).await.unwrap();
        durable.revoke(&Principal::new("test", "ada"));
        durable.put_record(&after, &made(now + 60_000), Condition::Absent).await.unwrap();
        durable.end_revoked().await.unwrap();
        for (key, is_ended) in [(before, true), (after, false)] {
            let (record, _) = durable.find(&key).await.unwrap().expect("a subscription");
            assert_eq!((record.is_revoked, record.is_alive()), (is_ended, !is_ended));
        }
    }

    #[tokio::test]
    async fn a_subscription_of_another_version_is_neither_delivered_nor_forgotten_and_the_log_says_so() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let other = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        other.become_other_version();
        let this = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        let (theirs, ours) = (durable(other), durable(this.clone()));
        let server = Server::builder("test", "1").build().expect("a server");
        let webhooks = Arc::new(Webhooks::new(super::super::WebhookLimits::default(), Quota::half(10)));
        let keeper = Keeper {
            durable: ours.clone(),
            webhooks: Arc::downgrade(&webhooks),
            server: server.downgrade(),
            parts: Vec::new(),
            holders: BTreeMap::new(),
            has_missed: true,
        };
        let [known, gone] = [WebhookKey::default(), [PARTS; 32]];
        assert_eq!(part_of(&known), part_of(&gone));
        let how = ("ada", LONGEST, Condition::Absent);
        theirs.put(&theirs.records, &key_text(&known), &record("ada"), how).await.unwrap();
        ours.change_index(0, &[&key_text(&known), &key_text(&gone)], &[]).await.unwrap();
        keeper.load_index(0, &webhooks, &server).await.unwrap();
        assert!(webhooks.find(&known).is_none() && this.has_logged_other_version());
        let (index, _) = ours.get::<Vec<String>>(&ours.indexes, "0").await.unwrap().expect("an index");
        assert_eq!(index, [key_text(&known)]);
        assert!(ours.find(&known).await.is_err(), "a client that asks may ask again");
        assert!(ours.find(&gone).await.unwrap().is_none());
    }

    /// A replica with nothing but the keeper of its parts.
    fn replica(memory: &Memory) -> (Arc<Webhooks>, Server) {
        let builder = Server::builder("test", "1").stores(|stores| stores.keys([test_key(1)]));
        let server = builder.shared(memory.clone()).build().expect("a server");
        let limits = super::super::WebhookLimits::default();
        (Arc::new(Webhooks::new(limits, Quota::half(10))), server)
    }

    /// How many parts each of some replicas has.
    async fn counts<const N: usize>(
        durable: &DurableWebhooks,
        replicas: [&(Arc<Webhooks>, Server); N],
    ) -> [usize; N] {
        let mut holders = Vec::new();
        for part in 0..PARTS {
            let value = durable.get::<Part>(&durable.parts, &part.to_string()).await.expect("memory");
            holders.extend(value.map(|(value, _)| value.holder));
        }
        replicas.map(|(webhooks, server)| {
            let replica = &webhooks.durable(server).expect("a store").replica;
            holders.iter().filter(|holder| *holder == replica).count()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stops_hands_its_parts_over_at_once() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let durable = durable(SealedStore::shared(Arc::new(memory.clone()), &keys, "test"));
        let until_all = async |of: &(Arc<Webhooks>, Server)| {
            while counts(&durable, [of]).await != [usize::from(PARTS)] {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let (one, two) = (replica(&memory), replica(&memory));
        one.0.keep(&one.1);
        until_all(&one).await;
        two.0.keep(&two.1);
        sleep(LEASE * 2).await;
        let begun = Instant::now();
        one.0.stop_keeper().await;
        until_all(&two).await;
        assert!(begun.elapsed() < LEASE / 2, "without a wait for the lease");
        // a server that serves again delivers again
        one.0.keep(&one.1);
        two.0.stop_keeper().await;
        until_all(&one).await;
    }

    #[tokio::test(start_paused = true)]
    async fn replicas_that_join_get_their_share_of_the_parts_and_then_none_moves() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let durable = durable(SealedStore::shared(Arc::new(memory.clone()), &keys, "test"));
        let (one, two, three) = (replica(&memory), replica(&memory), replica(&memory));
        one.0.keep(&one.1);
        sleep(BEAT * 2).await;
        assert_eq!(counts(&durable, [&one, &two, &three]).await, [16, 0, 0]);
        two.0.keep(&two.1);
        sleep(LEASE).await;
        assert_eq!(counts(&durable, [&one, &two, &three]).await, [8, 8, 0]);
        three.0.keep(&three.1);
        sleep(LEASE).await;
        let shared = counts(&durable, [&one, &two, &three]).await;
        assert!(shared.iter().all(|count| [5, 6].contains(count)), "{shared:?}");
        assert_eq!(shared.iter().sum::<usize>(), 16);
        for _ in 0..20 {
            sleep(BEAT).await;
            assert_eq!(counts(&durable, [&one, &two, &three]).await, shared);
        }
        // one that stops leaves its parts to the others, which even out as well
        three.0.stop_keeper().await;
        sleep(LEASE).await;
        assert_eq!(counts(&durable, [&one, &two, &three]).await, [8, 8, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn parts_that_were_handed_to_a_replica_that_is_gone_are_taken_after_the_lease() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let durable = durable(SealedStore::shared(Arc::new(memory.clone()), &keys, "test"));
        let one = replica(&memory);
        one.0.keep(&one.1);
        sleep(BEAT * 2).await;
        let own = one.0.durable(&one.1).expect("a store").replica.clone();
        let request = [REQUEST, own.as_bytes(), b" gone"].concat();
        durable.store.publish(TOPIC, &request).await.unwrap();
        sleep(BEAT).await;
        assert_eq!(counts(&durable, [&one]).await, [8]);
        // of another replica, or malformed
        for other in [&b"+other gone"[..], b"+", b"+other", b"+\xff \xff"] {
            durable.store.publish(TOPIC, other).await.unwrap();
        }
        sleep(LEASE + 2 * BEAT).await;
        assert_eq!(counts(&durable, [&one]).await, [16]);
    }
}
