//! The methods. A subscription is identified by its contents when it is made, renewed or ended, so that a client that has
//! lost track of its subscriptions does no harm by asking again.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use url::Url;

use super::{
    LIFETIMES, Webhooks,
    delivery::control_id,
    endpoint::{DeliveryFailure, Message},
    leader::OTHER_VERSION,
    record::{Progress, StoredWebhook, VerifiedEndpoint, WebhookKey, digest},
    secret::Secret,
};
use crate::{
    capability::events::{
        Delivery, Events,
        call::{EventCall, EventRequest},
        error::{callback_endpoint, needs_caller, resource_exhausted, unknown_subscription},
        poll::integer,
        subscription::EventSubscription,
    },
    core::{
        admission::Owner,
        connection::{Principal, StoredPrincipal, principal_digest},
        crypto::{hex, random_id},
        dispatch::{PendingReply, Reply, Request, Response, ResultBody, WriteResult},
        jsonrpc::{Object, ProtocolError},
        protocol::Revision,
        server::{Entry as _, Registry, Server},
        store::{Condition, Found, StoreError, Updated},
    },
    schema::canonical,
};

/// The longest URL of an endpoint.
const MAX_URL: usize = 2_048;
/// Bytes of one subscription in the store.
const MAX_RECORD: usize = 64 << 10;
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
struct SubscribeResult {
    id: Box<str>,
    /// `None` if it does not expire.
    refresh_before: Option<SystemTime>,
    cursor: String,
    truncated: bool,
    /// What a renewed subscription has reached.
    reached: Option<Progress>,
}

fn invalid(text: impl Into<String>) -> ProtocolError {
    ProtocolError::invalid_params(text.into())
}

/// The identity of a subscription: the caller, the URL, the event and its arguments.
fn key_of(caller: &Principal, url: &Url, name: &str, arguments: &str) -> WebhookKey {
    let caller = principal_digest(Some(caller)).unwrap_or_default();
    digest(&["subscription", &caller, url.as_str(), name, &canonical(arguments)])
}

fn wire_delivery(request: &Request<'_>) -> Result<WireDelivery, ProtocolError> {
    let raw = request.params.get("delivery").map_or("null", |raw| raw.get());
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
        let lifetime = match integer(request.params.get_or_null("ttlMs"), "ttlMs")? {
            Some(lifetime) => AskedLifetime::Of(Duration::from_millis(lifetime)),
            None if request.params.get_or_null("ttlMs").is_some() => AskedLifetime::Unlimited,
            None => AskedLifetime::OfServer,
        };
        let subscribe = Subscribe { webhooks: self, caller, lifetime, url, secret };
        EventCall::start(server, request, entry, arguments, subscribe)
    }

    /// Answers `events/unsubscribe`: also of an event that the caller may not have any more.
    pub(super) fn unsubscribe(self: Arc<Self>, request: Request<'_>) -> Result<Response, Reply> {
        let Some(caller) = &request.context.caller else { return Err(needs_caller()) };
        let name = request.name()?;
        let arguments = request.arguments()?;
        let url = self.endpoint(&wire_delivery(&request)?)?;
        let key = key_of(caller, &url, &name, arguments);
        Ok(Response::Pending(PendingReply::without_call(async move {
            match self.end(&key).await {
                Ok(true) => ResultBody::Empty.into(),
                Ok(false) => unknown_subscription().into(),
                Err(error) => store_failed(&error).into(),
            }
        })))
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
        let Subscribe { webhooks, caller, url, secret, .. } = &self.own;
        let failed = |error: StoreError| store_failed(&error);
        webhooks.lead(&self.server);
        let key = key_of(caller, url, self.entry.name(), &self.arguments);
        let is_known = match webhooks.records.find(&key).await.map_err(failed)? {
            Found::Value(found) => found.record.is_alive(),
            Found::Nothing => false,
            Found::OtherVersion => return Err(store_failed(&OTHER_VERSION.into())),
        };
        let id = self.id(&key);
        if !is_known {
            self.verify(&id).await?;
        }
        let (mut subscription, mut truncated) = EventSubscription::open(
            &self.server,
            &self.entry,
            self.subscriber.clone(),
            &self.arguments,
            given,
            self.cursor.as_deref(),
        );
        if !is_known && self.cursor.is_some() {
            truncated |= subscription.skip_older(&self.server, self.max_age)?;
        }
        let refresh_before = self.grant();
        let sent = StoredWebhook {
            id: id.into(),
            name: self.entry.name().into(),
            url: url.as_str().into(),
            arguments: self.arguments.clone(),
            caller: StoredPrincipal::new(caller),
            owner: self.owner.as_str().clone(),
            secret: secret.clone(),
            previous: None,
            expires: refresh_before,
            since: SystemTime::now(),
            progress: Progress::at(subscription.position),
            told_gaps: 0,
            has_ended: false,
            is_revoked: false,
        };
        let exhausted = || resource_exhausted("subscriptions", "too many subscriptions by webhook");
        if serde_json::to_vec(&sent).map_or(usize::MAX, |bytes| bytes.len()) > MAX_RECORD {
            return Err(exhausted());
        }
        let delivered = webhooks.find(&key);
        // of one that is renewed
        let mut has_gap = None;
        let put = |record: &mut StoredWebhook| {
            has_gap = None;
            if !record.is_alive() {
                *record = sent.clone();
            } else if record.since != sent.since {
                let delivered = delivered.as_ref().filter(|webhook| webhook.since == record.since);
                has_gap = Some(record.renew(&sent, delivered.map(|webhook| webhook.progress())));
            }
            true
        };
        let stored = match webhooks.records.update_or_create(&key, sent.clone(), put).await.map_err(failed)? {
            Updated::Stored(stored) => stored,
            Updated::Full => return Err(exhausted()),
            _ => return Err(store_failed(&OTHER_VERSION.into())),
        };
        webhooks.list(&key, has_gap.is_none()).await.map_err(failed)?;
        let progress = stored.record.progress.clone();
        webhooks.tell(&self.server, &key, stored);
        Ok(SubscribeResult {
            id: sent.id,
            refresh_before,
            cursor: subscription.cursor(&self.server, &progress.position)?,
            truncated: has_gap.unwrap_or(truncated),
            reached: has_gap.map(|_| progress),
        })
    }

    /// `id` on the wire: the same for the same subscription, on every replica.
    fn id(&self, key: &WebhookKey) -> String {
        format!("sub_{}", hex(self.server.keys().keyed_digest(ID_PURPOSE, key.as_bytes())))
    }

    /// Checks that the endpoint wants messages of this principal, unless it has said so.
    async fn verify(&self, id: &str) -> Result<(), ProtocolError> {
        let caller = principal_digest(Some(&self.own.caller)).unwrap_or_default();
        let endpoint = digest(&["endpoint", &caller, self.own.url.as_str()]);
        let verified = &self.own.webhooks.verified;
        if verified.get(&endpoint).await.map_err(|error| store_failed(&error))?.is_some() {
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
        let record = VerifiedEndpoint { owner: self.owner.as_str().clone() };
        // it is verified again if this fails
        let _written = verified.put(&endpoint, &record, Condition::Always).await;
        Ok(())
    }

    /// Until when the subscription lasts: not longer than the authentication of its caller. Without an expiry only where it
    /// survives the process.
    fn grant(&self) -> Option<SystemTime> {
        let is_durable = self.own.webhooks.store.is_shared();
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
}

impl WriteResult for SubscribeResult {
    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        let time = |time: SystemTime| humantime::format_rfc3339_millis(time).to_string();
        object
            .str("id", &self.id)
            .value("refreshBefore", &self.refresh_before.map(time))
            .str("cursor", &self.cursor)
            .value("truncated", &self.truncated);
        let Some(Progress { last_delivery, failure, failed_since, .. }) = &self.reached else { return };
        object.object("deliveryStatus", |status| {
            status
                .raw("active", "true")
                .value("lastDeliveryAt", &last_delivery.map(time))
                .value("lastError", &failure.map(DeliveryFailure::as_str));
            status.opt_str("failedSince", failed_since.map(time).as_deref());
        });
    }
}
