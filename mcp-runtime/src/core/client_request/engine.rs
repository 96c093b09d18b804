//! Sends a request from a running function to its client and awaits the response, over whichever [`Delivery`] the call
//! has. A request is sent once per key and call; a malformed response is requested again, at most [`MAX_ATTEMPTS`] times.

use std::{
    future::{pending, poll_fn},
    pin::Pin,
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::request_state::ReturnedResponse;
use crate::{
    core::{
        connection::PendingResponse,
        context::{
            ClientFeature, ClientRequestError, ClientRequestState, ClientRequests, Context, Delivery,
            InputRequest, InputResponse, PendingRequest, RawJson, RequestState, TaskHandle,
        },
        dispatch::await_input,
        jsonrpc::{Object, notification, null_is_absent},
        protocol::Revision,
    },
    schema::sort_by,
};

/// Times that a malformed response is requested again.
const MAX_ATTEMPTS: u8 = 3;

/// The future that the builders of client requests become when they are awaited.
pub(super) type ResponseFuture<'c, T> =
    Pin<Box<dyn Future<Output = Result<T, ClientRequestError>> + Send + 'c>>;

/// The input that a call needs from its client before its function can continue.
pub(crate) enum InputRequired {
    /// The client does not declare these.
    Missing(Vec<ClientFeature>),
    /// The client must respond to these; it brings the state back when it retries the call.
    Requests(Vec<PendingRequest>, Box<RequestState>),
}

/// How a request continues after it was registered.
enum Disposition {
    /// The retry brought this response; this many before it were malformed.
    Returned(RawJson, u8),
    /// Only a retry can bring the response: the call ends.
    Suspend,
    Send,
    AddToTask(Arc<dyn TaskHandle>),
}

impl PendingRequest {
    /// Identifies the request across retries.
    pub(crate) fn digest(&self) -> String {
        let hash =
            Sha256::new().chain_update(self.method).chain_update([0]).chain_update(&self.params).finalize();
        URL_SAFE_NO_PAD.encode(&hash[..16])
    }

    /// Writes the request as a member of `inputRequests`.
    pub(crate) fn write_to(&self, requests: &mut Object<'_>) {
        let mut request = Object::new(requests.escaped_key(&self.key));
        request.str("method", self.method).key("params").extend_from_slice(&self.params);
        request.end();
    }
}

/// Adds `_meta` to the params of a request; only 2025-11-25 defines it there.
pub(super) fn with_meta(mut params: Vec<u8>, meta: &Map<String, Value>, revision: Revision) -> Vec<u8> {
    if revision == Revision::V2025_11_25 && !meta.is_empty() && params.pop() == Some(b'}') {
        let mut own = Vec::new();
        let mut object = Object::new(&mut own);
        object.value("_meta", meta);
        object.end();
        match params.as_slice() {
            [b'{'] => params = own,
            _ => {
                params.push(b',');
                params.extend_from_slice(&own[1..]);
            }
        }
    }
    params
}

impl ClientRequestState {
    pub(super) fn claim_key(&mut self, key: &str) -> Result<(), ClientRequestError> {
        if self.keys.insert(key.into()) {
            Ok(())
        } else {
            let reason = "another client request or `once` of this call has its key\ngive each its own";
            Err(ClientRequestError::Unfit { key: key.into(), reason: reason.to_owned() })
        }
    }

    /// Adds a request to the next `input_required` result.
    fn suspend(&mut self, request: &PendingRequest, attempts: u8) {
        let sent = InputRequest { digest: request.digest(), attempts };
        self.pending.push((request.clone(), sent));
    }
}

impl ClientRequests {
    /// The result that the call must end with: its function awaits responses that only a retry can bring, or that need
    /// capabilities which the client does not declare.
    pub(crate) fn take_input_required(&self) -> InputRequired {
        let mut state = self.lock();
        if !state.missing.is_empty() {
            let mut missing = std::mem::take(&mut state.missing);
            sort_by(&mut missing, Ord::cmp);
            return InputRequired::Missing(missing);
        }
        let mut next = state.retry.as_ref().map(|retry| retry.carry_over()).unwrap_or_default();
        next.round_trips = next.round_trips.saturating_add(1);
        next.responses.extend(state.responses.drain());
        next.saved.extend(state.saved.drain());
        let mut requests = Vec::new();
        for (request, sent) in state.pending.drain(..) {
            // an earlier response was malformed, or belonged to another request with this key
            next.responses.remove(&*request.key);
            next.requests.insert(request.key.to_string(), sent);
            requests.push(request);
        }
        InputRequired::Requests(requests, Box::new(next))
    }

    fn register(
        &self,
        request: &PendingRequest,
        is_supported: bool,
    ) -> Result<Disposition, ClientRequestError> {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.claim_key(&request.key)?;
        let in_place = match &state.delivery {
            Delivery::Unavailable(why) => return Err(ClientRequestError::Unavailable(why)),
            Delivery::Connection if !is_supported => {
                return Err(ClientRequestError::Unsupported(request.requires));
            }
            Delivery::Connection => return Ok(Disposition::Send),
            Delivery::Task(task) => Some(Arc::clone(task)),
            Delivery::InputRequired => None,
        };
        if !is_supported {
            // 2026-07-28 defines an error for this, which the function cannot swallow
            if !state.missing.contains(&request.requires) {
                state.missing.push(request.requires);
            }
            return Ok(Disposition::Suspend);
        }
        if let Some(task) = in_place {
            return Ok(Disposition::AddToTask(task));
        }
        let returned = match &state.retry {
            Some(retry) => retry.find_response(&request.key, &request.digest()),
            None => ReturnedResponse::default(),
        };
        Ok(match returned {
            ReturnedResponse { value: Some(value), attempts } => Disposition::Returned(value, attempts),
            ReturnedResponse { value: None, attempts } => {
                state.suspend(request, attempts);
                Disposition::Suspend
            }
        })
    }
}

impl Context {
    fn register(&self, request: &PendingRequest) -> Result<Disposition, ClientRequestError> {
        self.client_requests().register(request, self.supports(request.requires))
    }

    /// Sends a request and awaits the client's raw result; `decode` reads it, or says what is wrong with it.
    pub(super) async fn request_client<T>(
        &self,
        request: PendingRequest,
        decode: impl Fn(&str) -> Result<T, String> + Send,
    ) -> Result<T, ClientRequestError> {
        if let Delivery::Unavailable(why) = self.client_requests().lock().delivery {
            return Err(ClientRequestError::Unavailable(why));
        }
        // in a separate task it could neither end the call nor be dropped with it
        if !self.is_current() {
            let reason = "it was sent outside of the call\nsend client requests from the annotated function itself, not from a spawned task";
            return Err(ClientRequestError::Unfit { key: request.key, reason: reason.to_owned() });
        }
        match self.register(&request)? {
            Disposition::Suspend => {
                self.suspend(await_input());
                pending().await
            }
            Disposition::Returned(raw, attempts) => match decode(raw.get()) {
                Ok(value) => {
                    let response = InputResponse { digest: request.digest(), value: raw };
                    self.client_requests().lock().responses.insert(request.key.into(), response);
                    Ok(value)
                }
                Err(reason) => {
                    let attempts = next_attempt(&request, attempts, reason)?;
                    self.client_requests().lock().suspend(&request, attempts);
                    self.suspend(await_input());
                    pending().await
                }
            },
            Disposition::Send => {
                let mut sent = SentRequest::send(self, request)?;
                let _wait = self.client_requests().begin_wait();
                let limit = self.inner().settings.client_request_timeout;
                timeout(limit, sent.receive(decode)).await.unwrap_or_else(|_elapsed| {
                    sent.cancel("no answer came in time");
                    Err(ClientRequestError::TimedOut(sent.request.key.clone()))
                })
            }
            Disposition::AddToTask(task) => {
                let _wait = self.client_requests().begin_wait();
                let mut attempts = 0;
                loop {
                    let Ok(raw) = task.request_input(&request).await else {
                        return Err(ClientRequestError::Disconnected(request.key));
                    };
                    match decode(&raw) {
                        Ok(value) => return Ok(value),
                        Err(reason) => attempts = next_attempt(&request, attempts, reason)?,
                    }
                }
            }
        }
    }

    /// Adds a request to the `input_required` result of a call whose function has failed for want of its response;
    /// does nothing for a legacy client. `decode` gives the error that rules out another request.
    pub(super) fn require_response(
        &self,
        request: &PendingRequest,
        decode: impl FnOnce(&str) -> Result<Option<ClientRequestError>, String>,
    ) -> Result<(), ClientRequestError> {
        let attempts = match self.register(request)? {
            Disposition::Suspend => {
                self.suspend(await_input());
                return Ok(());
            }
            Disposition::Send => return Ok(()),
            Disposition::AddToTask(_) => {
                return Err(ClientRequestError::Unavailable("the call has become a task"));
            }
            Disposition::Returned(raw, attempts) => match decode(raw.get()) {
                Ok(Some(error)) => return Err(error),
                Ok(None) => 0,
                Err(reason) => next_attempt(request, attempts, reason)?,
            },
        };
        self.client_requests().lock().suspend(request, attempts);
        self.suspend(await_input());
        Ok(())
    }
}

/// Counts a malformed response.
fn next_attempt(request: &PendingRequest, attempts: u8, reason: String) -> Result<u8, ClientRequestError> {
    let key = &request.key;
    if attempts >= MAX_ATTEMPTS {
        return Err(ClientRequestError::MalformedMessage { key: key.clone(), reason });
    }
    tracing::debug!(key = &**key, reason, "malformed response to a client request: requesting it again");
    Ok(attempts + 1)
}

/// A JSON-RPC request on the client's connection; dropping it without a response cancels it there.
struct SentRequest<'c> {
    context: &'c Context,
    request: PendingRequest,
    response: PendingResponse,
    is_open: bool,
}

/// The error member of a response.
#[derive(Deserialize)]
struct ErrorResponse {
    #[serde(default, deserialize_with = "null_is_absent")]
    code: i64,
    #[serde(default, deserialize_with = "null_is_absent")]
    message: String,
}

impl<'c> SentRequest<'c> {
    fn send(context: &'c Context, request: PendingRequest) -> Result<Self, ClientRequestError> {
        let response = send(context, &request)?;
        Ok(Self { context, request, response, is_open: true })
    }

    /// Awaits a result that can be decoded.
    async fn receive<T>(
        &mut self,
        decode: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ClientRequestError> {
        let mut attempts = 0;
        loop {
            match decode(&self.receive_raw().await?) {
                Ok(value) => return Ok(value),
                Err(reason) => attempts = next_attempt(&self.request, attempts, reason)?,
            }
            self.response = send(self.context, &self.request)?;
            self.is_open = true;
        }
    }

    async fn receive_raw(&mut self) -> Result<Box<str>, ClientRequestError> {
        let response = poll_fn(|cx| self.response.poll(cx)).await;
        self.is_open = false;
        let key = || self.request.key.clone();
        match response {
            Some(Ok(result)) => Ok(result),
            Some(Err(error)) => {
                let ErrorResponse { code, message } = serde_json::from_str(&error).unwrap_or_else(|_| {
                    ErrorResponse { code: 0, message: "it sent a malformed error".to_owned() }
                });
                Err(ClientRequestError::Refused { key: key(), code, message })
            }
            None => Err(ClientRequestError::Disconnected(key())),
        }
    }

    /// Notifies the client that it need not respond.
    fn cancel(&mut self, reason: &str) {
        if std::mem::take(&mut self.is_open)
            && let Some(connection) = &self.context.inner().request.connection
        {
            connection.notify(notification("notifications/cancelled", |params| {
                params.raw("requestId", self.response.id()).str("reason", reason);
            }));
        }
    }
}

impl Drop for SentRequest<'_> {
    fn drop(&mut self) {
        self.cancel("the call that needed the answer is over");
    }
}

fn send(context: &Context, request: &PendingRequest) -> Result<PendingResponse, ClientRequestError> {
    let sent = match &context.inner().request.connection {
        Some(connection) => connection.request(request.method, &request.params),
        None => Err("the call has no connection"),
    };
    sent.map_err(ClientRequestError::Unavailable)
}
