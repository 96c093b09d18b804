//! One request: its parameters, the context that a function gets for it, the checks that every request passes, whatever its
//! method, and what answers the method.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use serde_json::value::RawValue;

use super::{
    response::{PendingReply, Reply, Response, ResultBody},
    subscriptions::NotificationStream,
};
use crate::core::{
    admission::RateReached,
    arguments::BoxFuture,
    client_request::CallBinding,
    connection::{Access, ClientData, RequestContext},
    context::{ClientRequests, Context, ContextInner, Delivery, Retry, has_forwarder},
    extensions::Extensions,
    jsonrpc::{JsonRpcMessage, Meta, Params, ProtocolError, decode_string, is_valid_id, parse},
    maybe_ready::MaybeReady,
    protocol::{self, LogLevel, META_LOG_LEVEL, Method, OPEN_STREAMS, Revision},
    reason::Reason,
    server::Server,
    sync::Mutex,
    tool::ToolEntry,
};

/// A request on its way through dispatch.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// Raw JSON.
    pub(crate) id: &'a str,
    pub(crate) params: &'a Params<'a>,
    /// The whole message.
    text: &'a str,
    pub(crate) revision: Revision,
    pub(crate) context: &'a RequestContext,
}

/// Whether requests of a method wait, or are refused, while the server is busy. A ping checks whether the server is alive.
pub(crate) fn is_limited(method: &str) -> bool {
    method != "ping"
}

/// Whether a function may send requests to its client.
pub(crate) enum ClientRequestPolicy {
    /// With what came back from earlier requests of the same call.
    Allowed(Option<Arc<Retry>>),
    Forbidden,
}

impl<'a> Request<'a> {
    /// The request in a message; `None` for notifications and responses.
    pub(crate) fn from_message(
        message: &'a JsonRpcMessage<'a>,
        revision: Revision,
        context: &'a RequestContext,
    ) -> Option<Self> {
        let (id, method) = (message.id()?, message.method()?);
        Some(Self { method, id, params: message.params(), text: message.text(), revision, context })
    }

    /// The `tools/call` of a call that has left its request before, which has only its `_meta` still.
    #[cfg(feature = "tasks")]
    pub(crate) fn resumed(params: &'a Params<'a>, context: &'a RequestContext) -> Self {
        Self { method: "tools/call", id: "0", params, text: "", revision: Revision::LATEST, context }
    }

    /// The same in another context.
    pub(super) fn with_context(self, context: &'a RequestContext) -> Self {
        Self { context, ..self }
    }

    /// The same with other parameters.
    pub(super) fn with_params(self, params: &'a Params<'a>) -> Self {
        Self { params, ..self }
    }

    /// Whether it is answered with a stream of notifications.
    pub(crate) fn opens_stream(&self) -> bool {
        self.revision.is_modern() && OPEN_STREAMS.contains(&self.method)
    }

    /// The items that it may see and call.
    pub(crate) fn access(&self) -> Access<'a> {
        let RequestContext { caller, access_rules, .. } = self.context;
        // if the server identifies callers, it has rules, and a request without a caller has no scopes
        Access { caller: caller.as_deref(), rules: access_rules.as_deref() }
    }

    /// The parameter `name`, which the method requires.
    pub(crate) fn name(&self) -> Result<Cow<'a, str>, ProtocolError> {
        required_text(self.params.name, "name")
    }

    /// The parameter `uri`, which the method requires.
    pub(crate) fn uri(&self) -> Result<Cow<'a, str>, ProtocolError> {
        required_text(self.params.uri, "uri")
    }

    /// The parameter `arguments`, raw JSON of an object; one without members if it is absent.
    pub(crate) fn arguments(&self) -> Result<&'a str, ProtocolError> {
        let arguments = self.params.arguments.map_or("{}", RawValue::get);
        if arguments.starts_with('{') {
            Ok(arguments)
        } else {
            Err(ProtocolError::invalid_params("`arguments` is not an object"))
        }
    }

    /// The context of this request, for an item with that state.
    pub(crate) fn make_context(
        &self,
        server: &Server,
        state: &Arc<Extensions>,
        policy: ClientRequestPolicy,
    ) -> Context {
        let (delivery, retry) = match policy {
            ClientRequestPolicy::Allowed(retry) if self.revision.is_modern() => {
                (Delivery::InputRequired, retry)
            }
            ClientRequestPolicy::Allowed(_) => {
                match self.context.connection.as_ref().and_then(|connection| connection.unreachable_reason())
                {
                    Some(why) => (Delivery::Unavailable(why), None),
                    None => (Delivery::Connection, None),
                }
            }
            ClientRequestPolicy::Forbidden => {
                let why = "only tools, resources and prompts can send requests to the client";
                (Delivery::Unavailable(why), None)
            }
        };
        let meta = &self.params.meta;
        Context::new(ContextInner {
            revision: self.revision,
            state: state.clone(),
            request: self.context.clone(),
            client: self.client(),
            meta: meta.to_json(),
            progress: meta.progress_token.map(|token| crate::core::context::ProgressToken::new(token.get())),
            // an unknown level has been refused by `check`
            log_level: self.log_level().unwrap_or_default(),
            cancel: crate::core::context::CallCancellation::default(),
            client_requests: ClientRequests::new(delivery, retry),
            continuation: OnceLock::new(),
            suspension: Mutex::default(),
            settings: server.settings().clone(),
            parent: None,
        })
    }

    /// The minimum level of the log messages that this request subscribes to.
    fn log_level(&self) -> Result<Option<LogLevel>, ProtocolError> {
        match self.params.meta.log_level {
            Some(raw) if self.revision.is_modern() => parse_level(raw, META_LOG_LEVEL).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether its call is to be the current one of its thread, as [`invoke::start`](crate::core::invoke::start) says.
    pub(crate) fn is_current(&self, server: &Server) -> bool {
        self.forwards_events(server) || self.reports_as_caller(server)
    }

    /// Whether updates that the function reports may be those of its caller.
    fn reports_as_caller(&self, server: &Server) -> bool {
        server.differs_by_caller() && self.context.caller.is_some()
    }

    /// Whether `tracing` events of the function are sent to its client, so that they must be attributed to the call.
    fn forwards_events(&self, server: &Server) -> bool {
        server.settings().logging
            && has_forwarder()
            && if self.revision.is_modern() {
                self.params.meta.log_level.is_some()
            } else {
                self.context.session().is_some_and(|session| session.level().is_some())
            }
    }

    /// The client's declarations about itself.
    pub(super) fn client(&self) -> ClientData {
        if !self.revision.is_modern() {
            return self.context.client.clone();
        }
        let owned = |raw: Option<&RawValue>| raw.map(|raw| Arc::from(raw.get()));
        let meta = &self.params.meta;
        ClientData { info: owned(meta.client_info), capabilities: owned(meta.capabilities) }
    }

    /// The state that the client sends along when it retries a call; `None` if this is not a retry.
    pub(crate) fn retry<'b>(
        &self,
        server: &Server,
        call: impl FnOnce() -> CallBinding<'b>,
    ) -> Result<Option<Arc<Retry>>, Reply> {
        let is_retry = || ["inputResponses", "requestState"].iter().any(|key| self.params.get(key).is_some());
        if !self.revision.is_modern() || !is_retry() {
            return Ok(None);
        }
        let retry = self.read_retry(server, &call());
        retry.map(Some).map_err(|error| Reply::from(error).because(Reason::State))
    }

    /// Checks what every request must satisfy, whatever its method.
    pub(super) fn check(&self) -> Result<(), Reply> {
        let meta = &self.params.meta;
        if self.revision.is_modern() {
            check_modern_meta(meta)?;
        }
        if meta.progress_token.is_some_and(|token| !is_valid_id(token)) {
            let text = format!(
                "`progressToken` is neither a string nor an integer of at most {} bytes",
                crate::core::jsonrpc::MAX_ID_BYTES
            );
            return Err(ProtocolError::invalid_params(text).into());
        }
        self.log_level()?;
        Ok(())
    }
}

/// The text of a parameter that the method requires.
pub(crate) fn required_text<'a>(raw: Option<&'a RawValue>, key: &str) -> Result<Cow<'a, str>, ProtocolError> {
    let raw = raw.ok_or_else(|| ProtocolError::invalid_params(format!("`{key}` is missing")))?;
    decode_string(raw).ok_or_else(|| ProtocolError::invalid_params(format!("`{key}` is not a string")))
}

/// The level named by a parameter; `key` is its name, for errors.
pub(super) fn parse_level(raw: &RawValue, key: &str) -> Result<LogLevel, ProtocolError> {
    decode_string(raw).and_then(|name| name.parse().ok()).ok_or_else(|| {
        let levels = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        ProtocolError::invalid_params(format!("`{key}` is not a log level\nuse one of {levels}"))
    })
}

/// Since 2026-07-28 every request declares the version and the client's capabilities.
fn check_modern_meta(meta: &Meta<'_>) -> Result<(), Reply> {
    let missing = |key: &str| {
        let text = format!("`_meta` lacks `{key}`\nevery request of 2026-07-28 carries its own metadata");
        Err(Reply::bad_request(ProtocolError::invalid_params(text)))
    };
    if meta.version.is_none() {
        return missing(protocol::META_PROTOCOL_VERSION);
    }
    match meta.capabilities {
        None => missing(protocol::META_CLIENT_CAPABILITIES),
        Some(raw) if raw.get().starts_with('{') => Ok(()),
        Some(_) => {
            let text = format!("`{}` in `_meta` is not an object", protocol::META_CLIENT_CAPABILITIES);
            Err(Reply::bad_request(ProtocolError::invalid_params(text)))
        }
    }
}

/// Whether a method lists items that additions may have.
fn is_list_of_items(method: &str) -> bool {
    matches!(method, "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list")
}

/// Whether the program's subscriber wants the spans of requests.
pub(crate) fn wants_spans() -> bool {
    tracing::span_enabled!(target: "mcp_runtime::request", tracing::Level::INFO, "otel.kind")
}

impl Server {
    /// Answers one request, but none that opens a stream.
    pub(super) fn answer(&self, request: Request<'_>) -> Response {
        if self.is_observed() {
            self.observe(request)
        } else {
            self.route(request).unwrap_or_else(Response::Ready)
        }
    }

    /// Answers `subscriptions/listen`, or another request that opens a stream.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(super) fn answer_with_stream(&self, request: Request<'_>) -> Result<NotificationStream, Reply> {
        if self.is_observed() { self.observe_stream(request) } else { self.route_stream(request) }
    }

    /// Whether requests are watched: by an observer, or the program's subscriber wants their spans.
    pub(crate) fn is_observed(&self) -> bool {
        !self.observers().is_empty() || wants_spans()
    }

    pub(super) fn route_stream(&self, request: Request<'_>) -> Result<NotificationStream, Reply> {
        if !request.context.rate_taken {
            self.take_rate_at_once(|| request.context.owner()).map_err(|reached| Reply::limited(&reached))?;
        }
        request.check()?;
        if request.method == "subscriptions/listen" {
            self.listen(request)
        } else {
            self.open_stream(request)
        }
    }

    pub(super) fn route(&self, request: Request<'_>) -> Result<Response, Reply> {
        if !request.context.rate_taken && request.method != "ping" {
            match self.take_rate(|| request.context.owner()) {
                MaybeReady::Ready(taken) => taken.map_err(|reached| Reply::limited(&reached))?,
                MaybeReady::Pending(taking) => return Ok(self.route_once_taken(request, taking)),
            }
        }
        request.check()?;
        let waits = || !request.context.has_waited && self.awaits_items();
        if is_list_of_items(request.method) && waits() {
            return Ok(self.route_with_first_items(request));
        }
        match self.route_by_method(request) {
            // the item may be one of those that come
            Err(reply) if reply.reason == Some(Reason::Unknown) && waits() => {
                Ok(self.route_with_first_items(request))
            }
            routed => routed,
        }
    }

    fn route_by_method(&self, request: Request<'_>) -> Result<Response, Reply> {
        let registry = &self.registry();
        match request.method {
            // in every revision
            "tools/call" if self.offers_tools(registry) => return self.call_tool(request, registry),
            "tools/list" if self.offers_tools(registry) => {
                return registry.tools.list(self, request, "tools", ToolEntry::write);
            }
            _ => {}
        }
        // a method of another revision is an unknown method
        if !Method::of_name(request.method).is_some_and(|method| method.is_in(request.revision)) {
            return Err(Reply::unknown_method(request.method));
        }
        match request.method {
            "server/discover" => Ok(self.discover(request).into()),
            "logging/setLevel" if self.settings().logging => self.set_level(request),
            "ping" => Ok(Reply::from(ResultBody::Empty).into()),
            method => match registry.capabilities.of_method(method) {
                Some(capability) => capability.clone().answer(self, registry, request),
                None => Err(Reply::unknown_method(method)),
            },
        }
    }

    /// Answers a request of which another process decides whether its client may send it.
    #[cold]
    fn route_once_taken(&self, request: Request<'_>, taking: BoxFuture<Result<(), RateReached>>) -> Response {
        let context = RequestContext { rate_taken: true, ..request.context.clone() };
        self.route_later(request, context, taking)
    }

    /// Answers a request once the first items of additions are there.
    #[cold]
    fn route_with_first_items(&self, request: Request<'_>) -> Response {
        let context = RequestContext { has_waited: true, rate_taken: true, ..request.context.clone() };
        let server = self.clone();
        let first_items = async move {
            server.first_items().await;
            Ok(())
        };
        self.route_later(request, context, Box::pin(first_items))
    }

    /// Answers a request after something that may refuse it.
    #[cold]
    fn route_later(
        &self,
        request: Request<'_>,
        context: RequestContext,
        first: BoxFuture<Result<(), RateReached>>,
    ) -> Response {
        let (server, text, revision) = (self.clone(), Box::<str>::from(request.text), request.revision);
        Response::Pending(PendingReply::without_call(async move {
            if let Err(reached) = first.await {
                return Reply::limited(&reached);
            }
            let response = match parse(text.as_bytes()) {
                Ok(message) => match Request::from_message(&message, revision, &context) {
                    Some(request) => server.route(request).unwrap_or_else(Response::Ready),
                    None => Reply::from(ProtocolError::internal("the message is not a request")).into(),
                },
                Err(malformed) => Reply::from(malformed.error).into(),
            };
            response.get().await
        }))
    }
}
