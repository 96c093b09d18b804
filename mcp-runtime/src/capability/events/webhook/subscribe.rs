//! The methods. A subscription is identified by its contents when it is made, renewed or ended, so that a client that has
//! lost track of its subscriptions does no harm by asking again.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    DeliveryFailure, GapMessage, LIFETIMES, Webhook, WebhookKey, WebhookState, Webhooks,
    delivery::{Deliverer, control_id},
    durable::{DurableWebhooks, Reached, Record, of_millis, parse_position, position_text, to_millis},
    endpoint::Message,
    secret::Secret,
};
use crate::{
    capability::events::{
        Delivery, Events,
        call::{EventCall, EventRequest},
        error::{callback_endpoint, needs_caller, resource_exhausted, unknown_subscription},
        poll::integer,
        subscription::{EventSubscription, canonical},
    },
    core::{
        admission::Owner,
        arguments::MaybeFuture,
        client_request::CallBinding,
        connection::{Principal, StoredPrincipal, principal_digest},
        context::Context,
        crypto::random_id,
        dispatch::{ItemCall, Reply, Request, Response, WriteResult},
        error::Failure,
        extensions::Extensions,
        invoke::{self, Invocation, StartOptions},
        item::ItemSpec,
        item_output::ItemOutput,
        jsonrpc::{Object, ProtocolError},
        protocol::Revision,
        server::{Entry as _, Registry, Server},
        spawn::spawn,
        store::{Condition, StoreError, Written},
    },
};

/// The longest URL of an endpoint.
const MAX_URL: usize = 2_048;
/// Attempts to replace a subscription that other replicas replace, too.
const MAX_CONFLICTS: usize = 4;
/// The purpose from which ids of subscriptions are derived.
const ID_PURPOSE: &str = "events/subscription";

/// `delivery` on the wire.
#[derive(Deserialize)]
struct WireDelivery {
    mode: Option<String>,
    url: Option<String>,
    secret: Option<String>,
}

/// The params that only `events/subscribe` has.
#[derive(Clone)]
struct Subscribe {
    webhooks: Arc<Webhooks>,
    caller: Arc<Principal>,
    lifetime: AskedLifetime,
    url: Url,
    secret: Secret,
}

/// `ttlMs` on the wire.
#[derive(Clone, Copy)]
enum AskedLifetime {
    OfServer,
    Of(Duration),
    Unlimited,
}

/// The result of `events/subscribe`.
#[derive(Debug)]
struct SubscribeResult {
    id: Box<str>,
    /// `None` if it does not expire.
    refresh_before: Option<SystemTime>,
    cursor: String,
    truncated: bool,
    /// The delivery status of a renewed subscription.
    status: Option<DeliveryStatus>,
}

/// The outcome of the last attempts.
#[derive(Debug)]
struct DeliveryStatus {
    last_delivery: Option<SystemTime>,
    failure: Option<DeliveryFailure>,
    failed_since: Option<SystemTime>,
}

#[derive(Debug)]
struct EmptyResult;

impl WriteResult for EmptyResult {
    fn write_members(&self, _: &mut Object<'_>, _: Revision) {}
}

fn invalid(text: impl Into<String>) -> ProtocolError {
    ProtocolError::invalid_params(text.into())
}

/// A digest of parts that are kept apart.
fn digest(parts: &[&str]) -> WebhookKey {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// The identity of a subscription: the caller, the URL, the event and its arguments.
fn key_of(caller: &Principal, url: &Url, name: &str, arguments: &str) -> WebhookKey {
    let caller = principal_digest(Some(caller)).unwrap_or_default();
    digest(&["subscription", &caller, url.as_str(), name, &canonical(arguments)])
}

fn wire_delivery(request: &Request<'_>) -> Result<WireDelivery, ProtocolError> {
    let raw = request.params.delivery.map_or("null", |raw| raw.get());
    serde_json::from_str(raw)
        .map_err(|_| invalid("`delivery` is not an object with `mode`, `url` and `secret`"))
}

impl Webhooks {
    fn endpoint(&self, delivery: &WireDelivery) -> Result<Url, ProtocolError> {
        let Some(url) = delivery.url.as_deref().filter(|url| url.len() <= MAX_URL) else {
            return Err(invalid(format!("`delivery.url` is missing, or has more than {MAX_URL} bytes")));
        };
        self.endpoints.parse_url(url).map_err(|why| invalid(format!("`delivery.url` {why}")))
    }

    /// Answers `events/subscribe`.
    pub(super) fn subscribe(
        self: Arc<Self>,
        server: &Server,
        registry: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        let Some(caller) = request.context.caller.clone() else { return Err(needs_caller()) };
        let Some(events) = registry.capabilities.get::<Events>() else {
            return Err(Reply::unknown_method(request.method));
        };
        let (entry, arguments) = events.wanted(server, &request, Delivery::Webhook)?;
        let delivery = wire_delivery(&request)?;
        if delivery.mode.as_deref().is_some_and(|mode| mode != "webhook") {
            return Err(invalid("`delivery.mode` is not `webhook`").into());
        }
        let url = self.endpoint(&delivery)?;
        let Some(secret) = delivery.secret.as_deref().and_then(Secret::parse) else {
            return Err(invalid("`delivery.secret` is not `whsec_` and base64 of 24 to 64 bytes").into());
        };
        let call = EventCall::of(server, &request, entry, arguments)?;
        let lifetime = match integer(request.params.ttl_ms, "ttlMs")? {
            Some(lifetime) => AskedLifetime::Of(Duration::from_millis(lifetime)),
            None if request.params.ttl_ms.is_some() => AskedLifetime::Unlimited,
            None => AskedLifetime::OfServer,
        };
        let subscribe = Subscribe { webhooks: self, caller, lifetime, url, secret };
        Ok(call.start(request, subscribe))
    }

    /// Answers `events/unsubscribe`: also of an event that the caller may not have any more.
    pub(super) fn unsubscribe(
        self: Arc<Self>,
        server: &Server,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        let Some(caller) = &request.context.caller else { return Err(needs_caller()) };
        let name = request.name()?;
        let arguments = match request.params.arguments.map(|raw| raw.get()) {
            None => "{}",
            Some(arguments) => arguments,
        };
        let url = self.endpoint(&wire_delivery(&request)?)?;
        let key = key_of(caller, &url, &name, arguments);
        if let Some(durable) = self.durable(server) {
            let call =
                Unsubscribe { durable: durable.clone(), key, name: (*name).into(), state: Arc::default() };
            return Ok(server.call_item(request, call));
        }
        let Some(webhook) = self.find(&key) else {
            return Err(unknown_subscription().into());
        };
        webhook.token.cancel();
        self.remove(&webhook);
        Ok(EmptyResult.into_reply().into())
    }
}

/// An `events/unsubscribe` of a subscription that replicas share.
#[derive(Clone)]
struct Unsubscribe {
    durable: Arc<DurableWebhooks>,
    key: WebhookKey,
    name: Box<str>,
    state: Arc<Extensions>,
}

impl ItemCall for Unsubscribe {
    fn into_owned(self) -> Arc<dyn ItemCall> {
        Arc::new(self)
    }

    fn item(&self) -> Option<&ItemSpec> {
        None
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.state
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new("events/unsubscribe", &self.name, "{}")
    }

    fn start(&self, _: StartOptions, context: &dyn Fn() -> Context) -> Invocation {
        let Self { durable, key, .. } = self.clone();
        let run = async move {
            let ended = match durable.end(&key).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(unknown_subscription()),
                Err(error) => Err(store_failed(&error)),
            };
            Ok(ItemOutput::Other(Box::new(ended)))
        };
        invoke::start_with(|| Ok(MaybeFuture::Pending(Box::pin(run))), &context(), None)
    }

    fn respond(&self, _: &Server, _: Revision, result: Result<ItemOutput, Failure>) -> Response {
        let ended = match result {
            Ok(ItemOutput::Other(ended)) => {
                ended.downcast::<Result<(), ProtocolError>>().map(|ended| *ended).ok()
            }
            _ => None,
        };
        match ended {
            Some(Ok(())) => EmptyResult.into_reply().into(),
            Some(Err(error)) => Reply::from(error).into(),
            None => Reply::from(ProtocolError::internal("the subscription was not ended; try again")).into(),
        }
    }
}

/// The error for a client; the log has the cause.
fn store_failed(error: &StoreError) -> ProtocolError {
    tracing::warn!(%error, "the store of subscriptions by webhook cannot be used");
    ProtocolError::internal("subscriptions cannot be stored at the moment; try again")
}

impl EventRequest for Subscribe {
    const METHOD: &'static str = "events/subscribe";
    type Result = SubscribeResult;

    async fn answer(call: EventCall<Self>, given: Arc<str>) -> Result<SubscribeResult, ProtocolError> {
        call.subscribe(given).await
    }
}

impl EventCall<Subscribe> {
    async fn subscribe(&self, given: Arc<str>) -> Result<SubscribeResult, ProtocolError> {
        let key = key_of(&self.own.caller, &self.own.url, self.entry.name(), &self.arguments);
        if let Some(durable) = self.own.webhooks.durable(&self.server).cloned() {
            self.own.webhooks.keep(&self.server);
            return self.subscribe_durably(&durable, key, given).await;
        }
        if let Some(webhook) = self.own.webhooks.find(&key) {
            return self.renew(&webhook, given);
        }
        let exhausted = || resource_exhausted("subscriptions", "too many subscriptions by webhook");
        let permit = self.own.webhooks.shares.try_acquire(&self.owner, 1).ok_or_else(exhausted)?;
        let id = self.id(&key);
        self.verify(&id, None).await?;
        let (mut subscription, mut truncated) = EventSubscription::open(
            &self.server,
            &self.entry,
            self.subscriber.clone(),
            &self.arguments,
            given.clone(),
            self.cursor.as_deref(),
        );
        if self.cursor.is_some() {
            truncated |= subscription.skip_older(&self.server, self.max_age)?;
        }
        let refresh_before = self.grant(false);
        let expires = refresh_before.map(instant_of);
        let webhook = Arc::new(Webhook {
            key,
            since: to_millis(SystemTime::now()),
            id: id.as_str().into(),
            name: self.entry.name().into(),
            url: self.own.url.clone(),
            owner: self.owner.clone(),
            state: crate::core::sync::Mutex::new(WebhookState {
                caller: self.own.caller.clone(),
                secret: self.own.secret.clone(),
                previous: None,
                expires,
                watermark: subscription.position,
                gap: GapMessage::None,
                truncated: false,
                gaps: 0,
                last_delivery: None,
                failure: None,
                failed_since: None,
            }),
            gap_recorded: tokio::sync::Notify::new(),
            renewed: tokio::sync::Notify::new(),
            token: self.own.webhooks.token.child_token(),
            revoked: CancellationToken::new(),
            _permit: Some(permit),
        });
        {
            let mut table = self.own.webhooks.table.lock();
            match table.by_key.get(&key).filter(|known| !known.token.is_cancelled()).cloned() {
                // another request was faster
                Some(known) => {
                    drop(table);
                    return self.renew(&known, given);
                }
                None => drop(table.by_key.insert(key, webhook.clone())),
            }
        }
        let cursor = subscription.cursor(&self.server, &subscription.position)?;
        let deliverer = Deliverer {
            server: self.server.downgrade(),
            webhooks: Arc::downgrade(&self.own.webhooks),
            endpoints: self.own.webhooks.endpoints.clone(),
            bytes: self.own.webhooks.bytes.clone(),
            webhook,
            subscription,
        };
        spawn(deliverer.run());
        Ok(SubscribeResult { id: id.into(), refresh_before, cursor, truncated, status: None })
    }

    /// `id` on the wire: the same for the same subscription, on every replica.
    fn id(&self, key: &WebhookKey) -> String {
        let digest = self.server.keys().keyed_digest(ID_PURPOSE, key);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sub_{digest}")
    }

    /// The same in the store that replicas share: the replica that delivers it is told.
    async fn subscribe_durably(
        &self,
        durable: &DurableWebhooks,
        key: WebhookKey,
        given: Arc<str>,
    ) -> Result<SubscribeResult, ProtocolError> {
        let failed = |error: StoreError| store_failed(&error);
        for _ in 0..MAX_CONFLICTS {
            let found = durable.find(&key).await.map_err(failed)?;
            let refresh_before = self.grant(true);
            let (mut subscription, mut truncated) = EventSubscription::open(
                &self.server,
                &self.entry,
                self.subscriber.clone(),
                &self.arguments,
                given.clone(),
                self.cursor.as_deref(),
            );
            let alive = found.as_ref().filter(|(record, _)| record.is_alive());
            let (record, condition, position, status);
            if let Some((known, version)) = alive {
                let reached = durable.reached(&key).await.map_err(failed)?;
                let reached = reached.filter(|reached| reached.since == known.since);
                let mut renewed = known.clone();
                renewed.set_secret(&self.own.secret);
                renewed.caller = StoredPrincipal::new(&self.own.caller);
                renewed.expires = refresh_before.map(to_millis);
                let start = reached.as_ref().map_or(renewed.start.as_str(), |reached| &reached.position);
                position = parse_position(start).unwrap_or(subscription.position);
                let reached = reached.unwrap_or_default();
                truncated = reached.gaps > renewed.told_gaps;
                renewed.told_gaps = renewed.told_gaps.max(reached.gaps);
                (record, condition) = (renewed, Condition::Version(*version));
                status = Some(DeliveryStatus::of(&reached));
            } else {
                let id = self.id(&key);
                self.verify(&id, Some(durable)).await?;
                if self.cursor.is_some() {
                    truncated |= subscription.skip_older(&self.server, self.max_age)?;
                }
                position = subscription.position;
                // one that has ended is replaced
                let ended = found.map(|(ended, version)| (ended.since, version));
                condition = ended.map_or(Condition::Absent, |(_, version)| Condition::Version(version));
                let after = ended.map_or(0, |(since, _)| since + 1);
                record = Record {
                    id,
                    name: self.entry.name().to_owned(),
                    url: self.own.url.to_string(),
                    arguments: self.arguments.to_string(),
                    caller: StoredPrincipal::new(&self.own.caller),
                    owner: self.owner.as_str().to_string(),
                    secret: self.own.secret.to_text(),
                    previous: None,
                    expires: refresh_before.map(to_millis),
                    since: to_millis(SystemTime::now()).max(after),
                    start: position_text(&position),
                    told_gaps: 0,
                    has_ended: false,
                    is_revoked: false,
                };
                status = None;
            }
            match durable.put_record(&key, &record, condition).await.map_err(failed)? {
                Written::Stored => {
                    let cursor = subscription.cursor(&self.server, &position)?;
                    return Ok(SubscribeResult {
                        id: record.id.into(),
                        refresh_before,
                        cursor,
                        truncated,
                        status,
                    });
                }
                Written::Conflict => {}
                Written::Full => {
                    return Err(resource_exhausted("subscriptions", "too many subscriptions by webhook"));
                }
            }
        }
        Err(ProtocolError::internal("the subscription changes too often; try again"))
    }

    /// Checks that the endpoint wants messages of this principal, unless it has said so.
    async fn verify(&self, id: &str, durable: Option<&DurableWebhooks>) -> Result<(), ProtocolError> {
        let caller = principal_digest(Some(&self.own.caller)).unwrap_or_default();
        let endpoint = digest(&["endpoint", &caller, self.own.url.as_str()]);
        if self.own.webhooks.is_verified(&endpoint) {
            return Ok(());
        }
        if let Some(durable) = durable
            && durable.is_verified(&endpoint).await.map_err(|error| store_failed(&error))?
        {
            return Ok(());
        }
        let host = self.own.url.host_str().unwrap_or_default();
        let Webhooks { challenges, host_challenges, .. } = &*self.own.webhooks;
        let exhausted = |text| Err(resource_exhausted("challenges", text));
        if challenges.take(&Owner::principal(caller)).is_err() {
            return exhausted("too many challenges for this principal; try again in a minute");
        }
        if host_challenges.take(&Owner::principal(host.into())).is_err() {
            return exhausted("too many challenges for this host; try again in a minute");
        }
        let random = |_| ProtocolError::internal("the operating system provides no randomness");
        let challenge = random_id().map_err(random)?;
        let message_id = control_id("verification").ok_or_else(|| random(getrandom::Error::UNEXPECTED))?;
        let mut body = Vec::new();
        let mut object = Object::new(&mut body);
        object.str("type", "verification").str("challenge", &challenge);
        object.end();
        let (body, secrets) = ([body.into()], [Some(self.own.secret.clone()), None]);
        let message = Message { id: &message_id, subscription: id, body: &body, secrets };
        let answered =
            self.own.webhooks.endpoints.challenge(&self.own.url, &self.owner, message, &challenge).await;
        answered.map_err(|failure| callback_endpoint(failure.as_str()))?;
        self.own.webhooks.set_verified(endpoint);
        if let Some(durable) = durable {
            durable.set_verified(&endpoint, self.owner.as_str()).await;
        }
        Ok(())
    }

    /// Until when the subscription lasts: not longer than the authentication of its caller. Without an expiry only where it
    /// survives the process.
    fn grant(&self, is_durable: bool) -> Option<SystemTime> {
        let now = SystemTime::now();
        let expires = self.own.caller.expires();
        let longest = self.own.webhooks.limits.lifetime;
        let most = longest.unwrap_or(LIFETIMES[usize::from(is_durable)]);
        let lifetime = match self.own.lifetime {
            AskedLifetime::Unlimited if is_durable && longest.is_none() => return expires,
            AskedLifetime::OfServer | AskedLifetime::Unlimited => most,
            AskedLifetime::Of(asked) => asked.clamp(super::SHORTEST_LIFETIME, most),
        };
        let until = now + lifetime;
        Some(expires.map_or(until, |expires| expires.min(until)))
    }

    fn renew(&self, webhook: &Webhook, given: Arc<str>) -> Result<SubscribeResult, ProtocolError> {
        let refresh_before = self.grant(false);
        let (watermark, truncated) = {
            let mut state = webhook.state.lock();
            if state.secret != self.own.secret {
                let previous = std::mem::replace(&mut state.secret, self.own.secret.clone());
                state.previous = Some((previous, Instant::now() + super::ROTATION));
            }
            state.caller = self.own.caller.clone();
            state.expires = refresh_before.map(instant_of);
            (state.watermark, std::mem::take(&mut state.truncated))
        };
        webhook.note_renewal();
        let (subscriber, arguments) = (self.subscriber.clone(), &self.arguments);
        let (subscription, _) =
            EventSubscription::open(&self.server, &self.entry, subscriber, arguments, given, None);
        let cursor = subscription.cursor(&self.server, &watermark)?;
        let state = webhook.state.lock();
        let status = DeliveryStatus {
            last_delivery: state.last_delivery,
            failure: state.failure,
            failed_since: state.failed_since,
        };
        drop(state);
        Ok(SubscribeResult {
            id: webhook.id.clone(),
            refresh_before,
            cursor,
            truncated,
            status: Some(status),
        })
    }
}

impl WriteResult for SubscribeResult {
    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        let time = |time: SystemTime| humantime::format_rfc3339_millis(time).to_string();
        object
            .str("id", &self.id)
            .value("refreshBefore", &self.refresh_before.map(time))
            .str("cursor", &self.cursor)
            .value("truncated", &self.truncated);
        let Some(DeliveryStatus { last_delivery, failure, failed_since }) = &self.status else { return };
        object.object("deliveryStatus", |status| {
            status
                .raw("active", "true")
                .value("lastDeliveryAt", &last_delivery.map(time))
                .value("lastError", &failure.map(DeliveryFailure::as_str));
            status.opt_str("failedSince", failed_since.map(time).as_deref());
        });
    }
}

impl DeliveryStatus {
    fn of(reached: &Reached) -> Self {
        Self {
            last_delivery: reached.last_delivery.map(of_millis),
            failure: reached.failure.as_deref().and_then(DeliveryFailure::parse),
            failed_since: reached.failed_since.map(of_millis),
        }
    }
}

/// A time of the clock as one of this process.
fn instant_of(time: SystemTime) -> Instant {
    Instant::now() + time.duration_since(SystemTime::now()).unwrap_or_default()
}
