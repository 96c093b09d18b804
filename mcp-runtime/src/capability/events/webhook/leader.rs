//! One process delivers all subscriptions: the one that holds the lease. Every process writes their records and tells that
//! one, which writes into them what they have reached. When it stops, another one goes on from there at once; when it is
//! killed, after the lease. While the store is away it delivers until its lease no longer counts, and goes on from its records
//! when the store is back. Messages that were on their way come again.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use tokio::{
    runtime::Handle,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    Webhook, Webhooks,
    delivery::Deliverer,
    record::{KeyList, StoredWebhook, WebhookKey},
};
use crate::{
    capability::events::{Events, entry::EventSubscriber, subscription::EventSubscription},
    core::{
        connection::Principal,
        server::{Entry as _, Server, WeakServer},
        spawn::spawn,
        store::{Condition, Found, Listener, Received, StoreError, Updated, Versioned, log_store_error},
    },
};

/// The name of the lease, and the topic of the keys of subscriptions that were made, renewed or ended.
const NAME: &str = "webhooks";
/// How long the lease lasts, and for how much of that its holder counts on it.
const LEASE: Duration = Duration::from_secs(10);
const COUNTED: Duration = Duration::from_secs(6);
/// How often it is renewed, and other processes ask for it.
const BEAT: Duration = Duration::from_secs(2);
/// Between two times that what a subscription has reached is written.
const SAVE_PAUSE: Duration = Duration::from_secs(2);
/// How long others are waited for that take over.
const SETTLE: Duration = Duration::from_secs(3);

pub(super) const OTHER_VERSION: &str = "the subscription is of another version of this crate";

/// The task that asks for the lease, or has it.
pub(super) struct RunningLeader {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// Principals that have lost access, each with when this process learned of it: the subscriptions that it has made later,
/// with new access, go on.
pub(super) type Revocations = HashMap<(String, String), SystemTime>;

struct Leader {
    webhooks: Weak<Webhooks>,
    server: WeakServer,
    messages: Listener,
    /// When the lease was renewed.
    renewed: Option<Instant>,
    /// Whether messages of other processes may have been lost, so that every subscription is read.
    has_missed: bool,
}

impl Webhooks {
    /// Begins to deliver as soon as no other process does, unless that was done.
    pub(super) fn lead(self: &Arc<Self>, server: &Server) {
        let mut running = self.leader.lock();
        if running.is_some() || Handle::try_current().is_err() {
            return;
        }
        let stop = self.token.child_token();
        let leader = Leader {
            webhooks: Arc::downgrade(self),
            server: server.downgrade(),
            messages: self.store.listen(NAME),
            renewed: None,
            has_missed: false,
        };
        let (stopping, webhooks) = (stop.clone(), leader.webhooks.clone());
        let task = spawn(async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                () = leader.run() => {}
            }
            if let Some(webhooks) = webhooks.upgrade()
                && let Err(error) = webhooks.hand_over().await
            {
                tracing::debug!(%error, "another process delivers webhooks a little later");
            }
        });
        *running = Some(RunningLeader { stop, task });
    }

    /// Stops to deliver, and waits for a short time until others can.
    pub(super) async fn stop_leading(&self) {
        let running = self.leader.lock().take();
        let Some(RunningLeader { stop, task }) = running else { return };
        stop.cancel();
        if timeout(SETTLE, task).await.is_err() {
            log_store_error(&"the store does not answer", "subscriptions by webhook cannot be handed over");
        }
    }

    /// Writes what was not written yet, and gives the lease up.
    async fn hand_over(&self) -> Result<(), StoreError> {
        let stopped = self.stop_deliveries();
        self.end_revoked().await?;
        for webhook in stopped {
            self.save(&webhook).await?;
        }
        self.leases.release(NAME).await
    }

    /// Stops to deliver, without ending any subscription.
    fn stop_deliveries(&self) -> Vec<Arc<Webhook>> {
        let stopped: Vec<_> = {
            let mut table = self.table.lock();
            table.is_leader = false;
            table.by_key.drain().map(|(_, webhook)| webhook).collect()
        };
        stopped.iter().for_each(|webhook| webhook.token.cancel());
        stopped
    }

    /// Tells the process that delivers, this one or another, of a subscription that was made or changed.
    pub(super) fn tell(
        self: &Arc<Self>,
        server: &Server,
        key: &WebhookKey,
        stored: Versioned<StoredWebhook>,
    ) {
        // others that were not told read the list of keys
        let _fits = self.store.send(NAME, key);
        self.deliver(server, key, stored);
    }

    /// Ends a subscription for its client; whether there is one.
    pub(super) async fn end(&self, key: &WebhookKey) -> Result<bool, StoreError> {
        let is_alive = match self.records.find(key).await? {
            Found::Value(found) => found.record.is_alive(),
            Found::Nothing => false,
            Found::OtherVersion => return Err(OTHER_VERSION.into()),
        };
        if is_alive {
            self.records.remove(key).await?;
            let _fits = self.store.send(NAME, key);
            self.forget(key);
        }
        Ok(is_alive)
    }

    /// Ends a subscription whose endpoint is told why; `false` if another one has replaced it, or it was told.
    pub(super) async fn end_told(&self, webhook: &Webhook) -> Result<bool, StoreError> {
        let end = |record: &mut StoredWebhook| {
            let is_this = record.since == webhook.since && (!record.has_ended || record.is_revoked);
            if is_this {
                (record.has_ended, record.is_revoked) = (true, false);
            }
            is_this
        };
        match self.records.update(&webhook.key, None, end).await? {
            Updated::Stored(_) | Updated::Nothing => Ok(true),
            Updated::Unchanged(_) => Ok(false),
            Updated::OtherVersion => Err(OTHER_VERSION.into()),
            Updated::Full => Err("the store is full".into()),
        }
    }

    /// Writes what a subscription has reached; `false` if it has ended.
    async fn save(&self, webhook: &Webhook) -> Result<bool, StoreError> {
        let (known, progress) = {
            let state = webhook.state.lock();
            (state.stored.clone(), state.progress.clone())
        };
        if known.record.progress == progress {
            return Ok(true);
        }
        let save = |record: &mut StoredWebhook| {
            let is_this = record.since == webhook.since && record.is_alive();
            if is_this {
                record.progress = progress.clone();
            }
            is_this
        };
        match self.records.update(&webhook.key, Some(known), save).await? {
            Updated::Stored(stored) => webhook.take(stored),
            Updated::Full => return Err("the store is full".into()),
            Updated::Unchanged(_) | Updated::Nothing | Updated::OtherVersion => return Ok(false),
        }
        Ok(true)
    }

    /// Ends the subscriptions of a principal, as soon as the store can be used. If too many wait for that, the oldest is
    /// forgotten.
    pub(super) fn revoke(&self, principal: &Principal) {
        let mut revoked = self.revoked.lock();
        revoked.insert((principal.issuer().into(), principal.subject().into()), SystemTime::now());
        // the store has no subscriptions of more
        if revoked.len() > self.limits.max_subscriptions
            && let Some((oldest, _)) = revoked.iter().min_by_key(|(_, time)| **time)
        {
            let oldest = oldest.clone();
            revoked.remove(&oldest);
            let what = "subscriptions by webhook of a principal without access go on until they expire";
            log_store_error(&"more principals than `max_webhooks` have lost access while it was away", what);
        }
        drop(revoked);
        self.has_revoked.notify_one();
    }

    /// Ends in the store what was revoked.
    pub(super) async fn end_revoked(&self) -> Result<(), StoreError> {
        let revoked = self.revoked.lock().clone();
        if revoked.is_empty() {
            return Ok(());
        }
        let end = |record: &mut StoredWebhook| {
            let (issuer, subject) = record.caller.identity();
            let time = revoked.get(&(issuer.into(), subject.into()));
            let has_lost = record.is_alive() && time.is_some_and(|time| record.since <= *time);
            if has_lost {
                (record.has_ended, record.is_revoked) = (true, true);
            }
            has_lost
        };
        for name in KeyList::names() {
            let list = self.lists.get(&name).await?;
            for key in list.into_iter().flat_map(|list| list.record.0) {
                // processes of another version end theirs
                if let Updated::Stored(_) = self.records.update(&key, None, end).await? {
                    let _fits = self.store.send(NAME, &key);
                }
            }
        }
        self.revoked.lock().retain(|principal, time| revoked.get(principal) != Some(time));
        Ok(())
    }

    /// Has a key in the list from which subscriptions are found. That of a new one is written though it is there: it may be
    /// about to be removed.
    pub(super) async fn list(&self, key: &WebhookKey, is_new: bool) -> Result<(), StoreError> {
        let add = |list: &mut KeyList| list.0.insert(key.clone()) || is_new;
        match self.lists.update_or_create(KeyList::of(key), KeyList::default(), add).await? {
            Updated::Full => Err("the list of subscriptions is full".into()),
            _ => Ok(()),
        }
    }

    /// Delivers the subscriptions of a list that are not delivered yet, or reads them all again.
    async fn load_list(self: &Arc<Self>, server: &Server, name: &str, all: bool) -> Result<(), StoreError> {
        let Some(Versioned { record: mut list, version }) = self.lists.get(name).await? else {
            return Ok(());
        };
        let mut gone = Vec::new();
        for key in &list.0 {
            if (all || self.find(key).is_none()) && !self.load(server, key).await? {
                gone.push(key.clone());
            }
        }
        if !gone.is_empty() {
            list.0.retain(|key| !gone.contains(key));
            // not if it has changed: one of them may have been made again
            let _written = self.lists.put(name, &list, Condition::Version(version)).await?;
        }
        Ok(())
    }

    /// Delivers a subscription as the store has it; whether it is there.
    async fn load(self: &Arc<Self>, server: &Server, key: &WebhookKey) -> Result<bool, StoreError> {
        match self.records.find(key).await? {
            // processes of that version deliver it, when one of them has the lease
            Found::OtherVersion => Ok(true),
            Found::Value(found) if found.record.is_alive() || found.record.is_revoked => {
                self.deliver(server, key, found);
                Ok(true)
            }
            Found::Value(_) | Found::Nothing => {
                self.forget(key);
                Ok(false)
            }
        }
    }

    /// Does not deliver a subscription any more.
    fn forget(&self, key: &WebhookKey) {
        let removed = self.table.lock().by_key.remove(key);
        if let Some(webhook) = removed {
            webhook.token.cancel();
        }
    }

    /// Delivers a subscription, or goes on with what has changed in it, if this process delivers.
    fn deliver(self: &Arc<Self>, server: &Server, key: &WebhookKey, stored: Versioned<StoredWebhook>) {
        let mut table = self.table.lock();
        if !table.is_leader {
            return;
        }
        if let Some(webhook) = table.by_key.get(key).cloned() {
            if webhook.since == stored.record.since && !webhook.token.is_cancelled() {
                drop(table);
                if stored.record.is_revoked {
                    webhook.revoked.cancel();
                } else {
                    webhook.take(stored);
                    webhook.retry_gap();
                }
                return;
            }
            // it has ended, and was made again
            webhook.token.cancel();
        }
        // a process of another version may have the event
        let Some(deliverer) = self.deliverer(server, key, stored) else { return };
        table.by_key.insert(key.clone(), deliverer.webhook.clone());
        drop(table);
        let _runs = spawn(deliverer.run());
    }

    fn deliverer(
        self: &Arc<Self>,
        server: &Server,
        key: &WebhookKey,
        stored: Versioned<StoredWebhook>,
    ) -> Option<Deliverer> {
        let url = Url::parse(&stored.record.url).ok()?;
        let caller = Arc::new(stored.record.caller.principal());
        let subscriber = EventSubscriber {
            caller: Some(caller.clone()),
            access_rules: Some(server.access_rules().clone()),
        };
        let registry = server.registry();
        let events = registry.capabilities.get::<Events>()?;
        let entry = events.catalog.iter().find(|entry| entry.name() == &*stored.record.name)?;
        let arguments = stored.record.arguments.clone();
        let given = entry.given(&arguments).as_deref().unwrap_or(&arguments).into();
        let (mut subscription, _) =
            EventSubscription::open(server, entry, subscriber, &arguments, given, None);
        subscription.position = stored.record.progress.position;
        let is_revoked = stored.record.is_revoked || is_removed(server, &caller);
        let webhook = Webhook::new(key.clone(), url, caller, stored, self.token.child_token());
        if is_revoked {
            webhook.revoked.cancel();
        }
        Some(Deliverer {
            server: server.downgrade(),
            webhooks: Arc::downgrade(self),
            endpoints: self.endpoints.clone(),
            bytes: self.bytes.clone(),
            webhook: Arc::new(webhook),
            subscription,
        })
    }
}

/// Whether the lists of API keys do not have a principal any more.
fn is_removed(server: &Server, principal: &Principal) -> bool {
    server.options().http.authenticator.as_ref().is_some_and(|keys| keys.has_removed(principal))
}

/// Writes what a subscription has reached whenever that has changed, until it has ended in the store.
pub(super) async fn keep_saved(webhooks: Weak<Webhooks>, webhook: Arc<Webhook>) {
    loop {
        webhook.progressed.notified().await;
        let Some(webhooks) = webhooks.upgrade() else { return };
        match webhooks.save(&webhook).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                log_store_error(&error, "messages to endpoints may be sent again");
                webhook.progressed.notify_one();
            }
        }
        drop(webhooks);
        sleep(SAVE_PAUSE).await;
    }
}

impl Leader {
    async fn run(mut self) {
        loop {
            let next = Instant::now() + BEAT;
            let (Some(webhooks), Some(server)) = (self.webhooks.upgrade(), self.server.upgrade()) else {
                return;
            };
            if let Err(error) = self.look(&webhooks, &server).await {
                tracing::debug!(%error, "the store of subscriptions by webhook cannot be used");
            }
            drop(server);
            end_revoked(&webhooks).await;
            let has_revoked = webhooks.has_revoked.clone();
            drop(webhooks);
            loop {
                let received = tokio::select! {
                    () = sleep_until(next) => break,
                    () = has_revoked.notified() => {
                        let Some(webhooks) = self.webhooks.upgrade() else { return };
                        end_revoked(&webhooks).await;
                        continue;
                    }
                    received = self.messages.next() => received,
                };
                let key = match received {
                    None => return,
                    Some(Received::Missed) => None,
                    Some(Received::Message(key)) => serde_json::from_slice::<WebhookKey>(&key).ok(),
                };
                let (Some(webhooks), Some(server)) = (self.webhooks.upgrade(), self.server.upgrade()) else {
                    return;
                };
                let is_loaded = match &key {
                    Some(key) if webhooks.table.lock().is_leader => webhooks.load(&server, key).await.is_ok(),
                    Some(_) => true,
                    None => false,
                };
                self.has_missed |= !is_loaded;
            }
        }
    }

    /// Delivers what is in the lists, if this process has the lease.
    async fn look(&mut self, webhooks: &Arc<Webhooks>, server: &Server) -> Result<(), StoreError> {
        for name in KeyList::names() {
            if !self.hold(webhooks).await? {
                return Ok(());
            }
            webhooks.load_list(server, &name, self.has_missed).await?;
        }
        self.has_missed = false;
        Ok(())
    }

    /// Renews the lease in time, or asks for it; whether this process has it.
    async fn hold(&mut self, webhooks: &Webhooks) -> Result<bool, StoreError> {
        let now = Instant::now();
        if self.renewed.is_some_and(|renewed| now < renewed + BEAT) {
            return Ok(true);
        }
        let over = self.renewed.unwrap_or(now) + COUNTED;
        let held = timeout_at(over, webhooks.leases.hold(NAME, LEASE)).await;
        let held = held.unwrap_or_else(|_| Err("the lease was not renewed in time".into()));
        match &held {
            Ok(true) => {
                self.renewed = Some(now);
                webhooks.table.lock().is_leader = true;
            }
            Err(_) if Instant::now() < over => {}
            Ok(false) | Err(_) => {
                self.renewed = None;
                webhooks.stop_deliveries();
            }
        }
        held
    }
}

async fn end_revoked(webhooks: &Webhooks) {
    if let Err(error) = webhooks.end_revoked().await {
        let what = "subscriptions by webhook of a principal without access are ended a little later";
        log_store_error(&error, what);
    }
}

#[cfg(all(test, feature = "shared"))]
mod tests {
    use super::{
        super::{
            WebhookLimits,
            record::{Progress, digest},
            secret::Secret,
        },
        *,
    };
    use crate::{
        capability::events::ring::ReadPosition,
        core::{
            connection::StoredPrincipal,
            crypto::{Key, KeyRing, test_key},
            store::{Memory, SealedStore},
        },
    };

    fn webhooks(store: &SealedStore, max_subscriptions: usize) -> Arc<Webhooks> {
        let limits = WebhookLimits { max_subscriptions, ..WebhookLimits::default() };
        Arc::new(Webhooks::new(limits, store))
    }

    fn record(subject: &str) -> StoredWebhook {
        StoredWebhook {
            id: "sub_1".into(),
            name: "note.added".into(),
            url: "https://example.com/".into(),
            arguments: "{}".into(),
            caller: StoredPrincipal::new(&Principal::new("test", subject)),
            owner: subject.into(),
            secret: Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret"),
            previous: None,
            expires: None,
            since: SystemTime::now(),
            progress: Progress::at(ReadPosition::from_bytes(&[0; 24]).expect("a position")),
            told_gaps: 0,
            has_ended: false,
            is_revoked: false,
        }
    }

    impl Webhooks {
        async fn add(&self, key: &WebhookKey, record: &StoredWebhook) {
            self.records.put(key, record, Condition::Absent).await.unwrap();
            self.list(key, true).await.unwrap();
        }

        async fn is_revoked(&self, key: &WebhookKey) -> bool {
            self.records.get(key).await.unwrap().expect("a subscription").record.is_revoked
        }
    }

    #[tokio::test]
    async fn of_too_many_principals_that_lose_access_before_the_store_can_be_used_the_oldest_is_forgotten() {
        let store = SealedStore::in_memory();
        let (all, two) = (webhooks(&store, 100), webhooks(&store, 2));
        let subjects = ["ada", "bob", "cleo"];
        for subject in subjects {
            all.add(&digest(&[subject]), &record(subject)).await;
        }
        // one that loses access twice is one
        for subject in ["bob", "ada", "bob", "cleo"] {
            two.revoke(&Principal::new("test", subject));
        }
        two.end_revoked().await.unwrap();
        for subject in subjects {
            assert_eq!(all.is_revoked(&digest(&[subject])).await, subject != "ada", "{subject}");
        }
        assert!(two.revoked.lock().is_empty());
    }

    #[tokio::test]
    async fn a_subscription_that_is_made_with_new_access_goes_on_also_if_the_ones_before_are_ended_later() {
        let webhooks = webhooks(&SealedStore::in_memory(), 100);
        let [before, after] = [digest(&["before"]), digest(&["after"])];
        webhooks.add(&before, &record("ada")).await;
        webhooks.revoke(&Principal::new("test", "ada"));
        let since = SystemTime::now() + Duration::from_secs(60);
        webhooks.add(&after, &StoredWebhook { since, ..record("ada") }).await;
        webhooks.end_revoked().await.unwrap();
        assert_eq!([webhooks.is_revoked(&before).await, webhooks.is_revoked(&after).await], [true, false]);
    }

    #[tokio::test]
    async fn a_subscription_of_another_version_is_neither_delivered_nor_forgotten_and_the_log_says_so() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let other = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        other.become_other_version();
        let this = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        let (theirs, ours) = (webhooks(&other, 100), webhooks(&this, 100));
        let server = Server::builder("test", "1").build().expect("a server");
        let [known, gone]: [WebhookKey; 2] = ["0a".into(), "0b".into()];
        theirs.records.put(&known, &record("ada"), Condition::Absent).await.unwrap();
        for key in [&known, &gone] {
            ours.list(key, true).await.unwrap();
        }
        ours.table.lock().is_leader = true;
        ours.load_list(&server, "0", false).await.unwrap();
        assert!(ours.find(&known).is_none() && this.has_logged_other_version());
        let list = ours.lists.get("0").await.unwrap().expect("a list");
        assert!(list.record.0.iter().eq([&known]));
        assert!(ours.end(&known).await.is_err(), "a client that asks may ask again");
        assert!(!ours.end(&gone).await.unwrap());
    }

    #[tokio::test]
    async fn a_list_is_read_again_as_a_whole_when_messages_were_missed() {
        let webhooks = webhooks(&SealedStore::in_memory(), 100);
        let server = Server::builder("test", "1").build().expect("a server");
        let key: WebhookKey = "0a".into();
        webhooks.add(&key, &record("ada")).await;
        let stored = webhooks.records.get(&key).await.unwrap().expect("a subscription");
        let url = Url::parse(&stored.record.url).expect("a URL");
        let caller = Arc::new(stored.record.caller.principal());
        let webhook = Webhook::new(key.clone(), url, caller, stored, webhooks.token.child_token());
        {
            let mut table = webhooks.table.lock();
            table.is_leader = true;
            table.by_key.insert(key.clone(), Arc::new(webhook));
        }
        webhooks.records.remove(&key).await.unwrap();
        webhooks.load_list(&server, "0", false).await.unwrap();
        assert!(webhooks.find(&key).is_some(), "it is delivered already");
        webhooks.load_list(&server, "0", true).await.unwrap();
        assert!(webhooks.find(&key).is_none(), "another process has removed it");
    }

    #[tokio::test(start_paused = true)]
    async fn one_process_has_the_lease_and_hands_it_over_when_it_stops() {
        let memory = Memory::default();
        let replica = || {
            let builder = Server::builder("test", "1").stores(|stores| stores.keys([test_key(1)]));
            let server = builder.shared(memory.clone()).build().expect("a server");
            (webhooks(server.store(), 10), server)
        };
        let leads = |of: &(Arc<Webhooks>, Server)| of.0.table.lock().is_leader;
        let until_leads = async |of: &(Arc<Webhooks>, Server)| {
            while !leads(of) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let (one, two) = (replica(), replica());
        one.0.lead(&one.1);
        until_leads(&one).await;
        two.0.lead(&two.1);
        sleep(LEASE * 3).await;
        assert!(leads(&one) && !leads(&two));
        let begun = Instant::now();
        one.0.stop_leading().await;
        assert!(!leads(&one));
        until_leads(&two).await;
        assert!(begun.elapsed() < LEASE / 2, "without a wait for the lease");
        // a server that serves again delivers again
        one.0.lead(&one.1);
        two.0.stop_leading().await;
        until_leads(&one).await;
    }
}
