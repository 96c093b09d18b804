//! The methods: a subscription is made, renewed or ended by what it is, so that a client that has lost count of its own
//! does no harm by asking again.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use url::Url;

use super::{
    Webhook, WebhookKey, WebhookState, Webhooks,
    delivery::{Deliverer, control_id},
    endpoint::Message,
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
        connection::{Principal, principal_digest},
        crypto::random_id,
        dispatch::{Reply, Request, Response, WriteResult},
        jsonrpc::{Object, ProtocolError},
        protocol::Revision,
        server::{Registry, Server},
        spawn::spawn,
        webhook_secret::Secret,
    },
};

/// The longest URL of an endpoint.
const MAX_URL: usize = 2_048;
/// What ids of subscriptions are derived for.
const ID_PURPOSE: &str = "events/subscription";

/// The wire's `delivery`.
#[derive(Deserialize)]
struct WireDelivery {
    mode: Option<String>,
    url: Option<String>,
    secret: Option<String>,
}

/// What only `events/subscribe` has.
#[derive(Clone)]
struct Subscribe {
    webhooks: Arc<Webhooks>,
    caller: Arc<Principal>,
    lifetime: Option<Duration>,
    url: Url,
    secret: Secret,
}

/// The result of `events/subscribe`.
#[derive(Debug)]
struct SubscribeResult {
    webhook: Arc<Webhook>,
    refresh_before: SystemTime,
    cursor: String,
    truncated: bool,
    is_renewed: bool,
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

/// What a subscription is: who, where, what and with which arguments.
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
        let lifetime = integer(request.params.ttl_ms, "ttlMs")?.map(Duration::from_millis);
        let subscribe = Subscribe { webhooks: self, caller, lifetime, url, secret };
        Ok(call.start(request, subscribe))
    }

    /// Answers `events/unsubscribe`: also of an event that the caller may not have any more.
    pub(super) fn unsubscribe(&self, _: &Server, request: &Request<'_>) -> Result<Response, Reply> {
        let Some(caller) = &request.context.caller else { return Err(needs_caller()) };
        let name = request.name()?;
        let arguments = match request.params.arguments.map(|raw| raw.get()) {
            None | Some("null") => "{}",
            Some(arguments) => arguments,
        };
        let url = self.endpoint(&wire_delivery(request)?)?;
        let Some(webhook) = self.find(&key_of(caller, &url, &name, arguments)) else {
            return Err(unknown_subscription().into());
        };
        webhook.token.cancel();
        self.remove(&webhook);
        Ok(EmptyResult.into_reply().into())
    }
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
        if let Some(webhook) = self.own.webhooks.find(&key) {
            return self.renew(webhook, given);
        }
        let exhausted = || resource_exhausted("subscriptions", "too many subscriptions by webhook");
        let permit = self.own.webhooks.shares.try_acquire(&self.owner, 1).ok_or_else(exhausted)?;
        let digest = self.server.keys().keyed_digest(ID_PURPOSE, &key);
        let id: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = format!("sub_{id}");
        self.verify(&id).await?;
        let (mut subscription, mut truncated) = EventSubscription::open(
            &self.server,
            &self.entry,
            self.subscriber.clone(),
            &self.arguments,
            given.clone(),
            self.cursor.as_deref(),
        );
        subscription.begin(&self.server).await?;
        if self.cursor.is_some() {
            truncated |= subscription.skip_older(&self.server, self.max_age)?;
        }
        let (expires, refresh_before) = self.grant();
        let webhook = Arc::new(Webhook {
            key,
            id: id.into(),
            name: self.entry.name().into(),
            url: self.own.url.clone(),
            owner: self.owner.clone(),
            state: crate::core::sync::Mutex::new(WebhookState {
                caller: self.own.caller.clone(),
                secret: self.own.secret.clone(),
                previous: None,
                expires,
                watermark: subscription.position.clone(),
                gap: false,
                truncated: false,
                last_delivery: None,
                failure: None,
                failed_since: None,
            }),
            gap_recorded: tokio::sync::Notify::new(),
            renewed: tokio::sync::Notify::new(),
            token: self.own.webhooks.token.child_token(),
            _permit: permit,
        });
        {
            let mut table = self.own.webhooks.table.lock();
            match table.by_key.get(&key).filter(|known| !known.token.is_cancelled()).cloned() {
                // another request was faster
                Some(known) => {
                    drop(table);
                    return self.renew(known, given);
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
            webhook: webhook.clone(),
            subscription,
        };
        spawn(deliverer.run());
        Ok(SubscribeResult { webhook, refresh_before, cursor, truncated, is_renewed: false })
    }

    /// Checks that the endpoint wants messages of this principal, unless it has said so.
    async fn verify(&self, id: &str) -> Result<(), ProtocolError> {
        let caller = principal_digest(Some(&self.own.caller)).unwrap_or_default();
        let endpoint = digest(&["endpoint", &caller, self.own.url.as_str()]);
        if self.own.webhooks.is_verified(&endpoint) {
            return Ok(());
        }
        let host = self.own.url.host_str().unwrap_or_default();
        if self.own.webhooks.challenges.take(&Owner::principal(host.into())).is_err() {
            let text = "too many challenges for this host; try again in a minute";
            return Err(resource_exhausted("challenges", text));
        }
        let random = |_| ProtocolError::internal("the operating system provides no randomness");
        let challenge = random_id().map_err(random)?;
        let message_id = control_id("verification").ok_or_else(|| random(getrandom::Error::UNEXPECTED))?;
        let mut body = Vec::new();
        let mut object = Object::new(&mut body);
        object.str("type", "verification").str("challenge", &challenge);
        object.end();
        let secrets = [Some(self.own.secret.clone()), None];
        let message = Message { id: &message_id, subscription: id, body: &body, secrets };
        let answered =
            self.own.webhooks.endpoints.challenge(&self.own.url, &self.owner, message, &challenge).await;
        answered.map_err(|failure| callback_endpoint(failure.as_str()))?;
        self.own.webhooks.set_verified(endpoint);
        Ok(())
    }

    /// Until when the subscription lasts: not longer than the authentication of its caller.
    fn grant(&self) -> (Instant, SystemTime) {
        let most = self.own.webhooks.limits.lifetime;
        let asked = self.own.lifetime.unwrap_or(most).clamp(super::SHORTEST_LIFETIME, most);
        let now = SystemTime::now();
        let left = self.own.caller.expires().map(|expires| expires.duration_since(now).unwrap_or_default());
        let lifetime = asked.min(left.unwrap_or(asked));
        (Instant::now() + lifetime, now + lifetime)
    }

    fn renew(&self, webhook: Arc<Webhook>, given: Arc<str>) -> Result<SubscribeResult, ProtocolError> {
        let (expires, refresh_before) = self.grant();
        let (watermark, truncated) = {
            let mut state = webhook.state.lock();
            if state.secret != self.own.secret {
                let previous = std::mem::replace(&mut state.secret, self.own.secret.clone());
                state.previous = Some((previous, Instant::now() + super::ROTATION));
            }
            state.caller = self.own.caller.clone();
            state.expires = expires;
            (state.watermark.clone(), std::mem::take(&mut state.truncated))
        };
        webhook.renewed.notify_one();
        let (subscriber, arguments) = (self.subscriber.clone(), &self.arguments);
        let (subscription, _) =
            EventSubscription::open(&self.server, &self.entry, subscriber, arguments, given, None);
        let cursor = subscription.cursor(&self.server, &watermark)?;
        Ok(SubscribeResult { webhook, refresh_before, cursor, truncated, is_renewed: true })
    }
}

impl WriteResult for SubscribeResult {
    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        let time = |time: SystemTime| humantime::format_rfc3339_millis(time).to_string();
        object
            .str("id", &self.webhook.id)
            .str("refreshBefore", &time(self.refresh_before))
            .str("cursor", &self.cursor)
            .value("truncated", &self.truncated);
        if !self.is_renewed {
            return;
        }
        let state = self.webhook.state.lock();
        object.object("deliveryStatus", |status| {
            status
                .raw("active", "true")
                .value("lastDeliveryAt", &state.last_delivery.map(time))
                .value("lastError", &state.failure.map(super::DeliveryFailure::as_str));
            status.opt_str("failedSince", state.failed_since.map(time).as_deref());
        });
    }
}
