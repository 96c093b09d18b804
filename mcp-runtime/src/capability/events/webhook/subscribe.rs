//! The methods: a subscription is made, renewed or ended by what it is, so that a client that has lost count of its own
//! does no harm by asking again.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use url::Url;

use super::{
    Webhook, WebhookKey, WebhookState, Webhooks,
    delivery::{Deliverer, control_id},
    endpoint::Message,
    signature::Secret,
};
use crate::{
    capability::events::{
        Delivery, Events,
        entry::{EventEntry, EventSubscriber},
        error::needs_caller,
        poll::{integer, refusal},
        subscription::{EventSubscription, canonical},
    },
    core::{
        admission::Owner,
        arguments::MaybeFuture,
        client_request::CallBinding,
        connection::{Principal, principal_digest},
        context::Context,
        crypto::random_id,
        dispatch::{ItemCall, Reply, Request, Response, WriteResult},
        error::Failure,
        extensions::Extensions,
        invoke::{self, Invocation, StartOptions},
        item::ItemSpec,
        item_output::{ItemOutput, wrong_kind},
        jsonrpc::{Object, ProtocolError},
        protocol::Revision,
        server::{Registry, Server},
        spawn::spawn,
    },
};

const NOT_FOUND: i64 = -32023;
const RESOURCE_EXHAUSTED: i64 = -32025;
const CALLBACK_ENDPOINT: i64 = -32027;
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

/// One `events/subscribe`.
#[derive(Clone)]
struct Subscribe {
    server: Server,
    webhooks: Arc<Webhooks>,
    entry: Arc<EventEntry>,
    subscriber: EventSubscriber,
    caller: Arc<Principal>,
    owner: Owner,
    /// As the client has sent them.
    arguments: Arc<str>,
    cursor: Option<String>,
    max_age: Option<Duration>,
    lifetime: Option<Duration>,
    url: Url,
    secret: Secret,
}

type SubscribeOutcome = Result<SubscribeResult, ProtocolError>;

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
        let milliseconds = |raw, key| Ok::<_, ProtocolError>(integer(raw, key)?.map(Duration::from_millis));
        let subscribe = Subscribe {
            server: server.clone(),
            entry: entry.clone(),
            subscriber: EventSubscriber::of(request.context),
            caller,
            owner: request.context.owner(),
            arguments: arguments.into(),
            cursor: request.cursor()?.map(Into::into),
            max_age: milliseconds(request.params.max_age_ms, "maxAgeMs")?,
            lifetime: milliseconds(request.params.ttl_ms, "ttlMs")?,
            url,
            secret,
            webhooks: self,
        };
        Ok(server.call_item(request, subscribe))
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
            let error = ProtocolError::new(NOT_FOUND, "the subscription does not exist");
            return Err(error.with_data(json!({ "kind": "subscription" })).into());
        };
        webhook.token.cancel();
        self.remove(&webhook);
        Ok(EmptyResult.into_reply().into())
    }
}

impl Subscribe {
    async fn run(self) -> Result<SubscribeOutcome, Failure> {
        let given: Arc<str> = self.entry.given(&self.arguments)?.into();
        self.entry.check_arguments(&self.server, &self.subscriber, &given).await?;
        Ok(self.subscribe(given).await)
    }

    async fn subscribe(&self, given: Arc<str>) -> SubscribeOutcome {
        let key = key_of(&self.caller, &self.url, self.entry.name(), &self.arguments);
        if let Some(webhook) = self.webhooks.find(&key) {
            return self.renew(webhook, given);
        }
        let exhausted = || {
            let error = ProtocolError::new(RESOURCE_EXHAUSTED, "too many subscriptions by webhook");
            error.with_data(json!({ "limit": "subscriptions" }))
        };
        let permit = self.webhooks.shares.try_acquire(&self.owner, 1).ok_or_else(exhausted)?;
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
        if self.cursor.is_some() {
            truncated |= subscription.skip_older(&self.server, self.max_age)?;
        }
        let (expires, refresh_before) = self.grant();
        let webhook = Arc::new(Webhook {
            key,
            id: id.into(),
            name: self.entry.name().into(),
            url: self.url.clone(),
            owner: self.owner.clone(),
            state: crate::core::sync::Mutex::new(WebhookState {
                caller: self.caller.clone(),
                secret: self.secret.clone(),
                previous: None,
                expires,
                watermark: subscription.position,
                gap: false,
                truncated: false,
                last_delivery: None,
                failure: None,
                failed_since: None,
            }),
            gap_recorded: tokio::sync::Notify::new(),
            renewed: tokio::sync::Notify::new(),
            token: self.webhooks.token.child_token(),
            _permit: permit,
        });
        {
            let mut table = self.webhooks.table.lock();
            match table.by_key.get(&key).filter(|known| !known.token.is_cancelled()).cloned() {
                // another request was faster
                Some(known) => {
                    drop(table);
                    return self.renew(known, given);
                }
                None => drop(table.by_key.insert(key, webhook.clone())),
            }
        }
        let cursor = subscription.cursor(&self.server, subscription.position)?;
        let deliverer = Deliverer {
            server: self.server.downgrade(),
            webhooks: Arc::downgrade(&self.webhooks),
            endpoints: self.webhooks.endpoints.clone(),
            bytes: self.webhooks.bytes.clone(),
            webhook: webhook.clone(),
            subscription,
        };
        spawn(deliverer.run());
        Ok(SubscribeResult { webhook, refresh_before, cursor, truncated, is_renewed: false })
    }

    /// Checks that the endpoint wants messages of this principal, unless it has said so.
    async fn verify(&self, id: &str) -> Result<(), ProtocolError> {
        let caller = principal_digest(Some(&self.caller)).unwrap_or_default();
        let endpoint = digest(&["endpoint", &caller, self.url.as_str()]);
        if self.webhooks.is_verified(&endpoint) {
            return Ok(());
        }
        let host = self.url.host_str().unwrap_or_default();
        if self.webhooks.challenges.take(&Owner::principal(host.into())).is_err() {
            let error = ProtocolError::new(
                RESOURCE_EXHAUSTED,
                "too many challenges for this host; try again in a minute",
            );
            return Err(error.with_data(json!({ "limit": "challenges" })));
        }
        let random = |_| ProtocolError::internal("the operating system provides no randomness");
        let challenge = random_id().map_err(random)?;
        let message_id = control_id("verification").ok_or_else(|| random(getrandom::Error::UNEXPECTED))?;
        let mut body = Vec::new();
        let mut object = Object::new(&mut body);
        object.str("type", "verification").str("challenge", &challenge);
        object.end();
        let secrets = [Some(self.secret.clone()), None];
        let message = Message { id: &message_id, subscription: id, body: &body, secrets };
        let answered = self.webhooks.endpoints.challenge(&self.url, &self.owner, message, &challenge).await;
        answered.map_err(|failure| {
            let reason = failure.as_str();
            let error =
                ProtocolError::new(CALLBACK_ENDPOINT, format!("the endpoint was not verified: {reason}"));
            error.with_data(json!({ "reason": reason }))
        })?;
        self.webhooks.set_verified(endpoint);
        Ok(())
    }

    /// Until when the subscription lasts: not longer than the authentication of its caller.
    fn grant(&self) -> (Instant, SystemTime) {
        let most = self.webhooks.limits.lifetime;
        let asked = self.lifetime.unwrap_or(most).clamp(super::SHORTEST_LIFETIME, most);
        let now = SystemTime::now();
        let left = self.caller.expires().map(|expires| expires.duration_since(now).unwrap_or_default());
        let lifetime = asked.min(left.unwrap_or(asked));
        (Instant::now() + lifetime, now + lifetime)
    }

    fn renew(&self, webhook: Arc<Webhook>, given: Arc<str>) -> SubscribeOutcome {
        let (expires, refresh_before) = self.grant();
        let (watermark, truncated) = {
            let mut state = webhook.state.lock();
            if state.secret != self.secret {
                let previous = std::mem::replace(&mut state.secret, self.secret.clone());
                state.previous = Some((previous, Instant::now() + super::ROTATION));
            }
            state.caller = self.caller.clone();
            state.expires = expires;
            (state.watermark, std::mem::take(&mut state.truncated))
        };
        webhook.renewed.notify_one();
        let (subscriber, arguments) = (self.subscriber.clone(), &self.arguments);
        let (subscription, _) =
            EventSubscription::open(&self.server, &self.entry, subscriber, arguments, given, None);
        let cursor = subscription.cursor(&self.server, watermark)?;
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

impl ItemCall for Subscribe {
    fn into_owned(self) -> Arc<dyn ItemCall> {
        Arc::new(self)
    }

    fn item(&self) -> Option<&ItemSpec> {
        Some(self.entry.item())
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.function.state
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new("events/subscribe", self.entry.name(), &self.arguments)
    }

    fn start(&self, _: StartOptions, context: &dyn Fn() -> Context) -> Invocation {
        let subscribe = self.clone();
        let run = async move { subscribe.run().await.map(|outcome| ItemOutput::Other(Box::new(outcome))) };
        invoke::start_with(|| Ok(MaybeFuture::Pending(Box::pin(run))), &context(), None)
    }

    fn respond(&self, server: &Server, revision: Revision, result: Result<ItemOutput, Failure>) -> Response {
        let failure = match result {
            Ok(ItemOutput::Other(outcome)) => {
                match outcome.downcast::<SubscribeOutcome>().map(|outcome| *outcome) {
                    Ok(Ok(subscribed)) => return subscribed.into_reply().into(),
                    Ok(Err(error)) => return Reply::from(error).into(),
                    Err(_) => wrong_kind(),
                }
            }
            Ok(_) => wrong_kind(),
            Err(failure) => failure,
        };
        refusal(server, self.entry.name(), failure, revision).into()
    }
}
