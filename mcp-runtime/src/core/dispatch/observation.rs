//! Watches a request from its arrival to its reply, if someone wants to know: a span, a duration, a line of the audit log.
//! An observation is a value: the request's reply is pending for as long as it lives, and a reply that never comes counts as
//! a cancelled one.

use std::{borrow::Cow, net::IpAddr, sync::Arc, time::Instant};

use serde_json::{Map, Value, value::RawValue};
use tracing::{Span, field::Empty};

use super::{
    Request,
    lifecycle::Handshake,
    request::wants_spans,
    response::{Reply, Response, ResultBody},
    subscriptions::NotificationStream,
};
use crate::{
    core::{
        connection::{AccessError, ClientConnection, Principal},
        context::is_traceparent,
        jsonrpc::decode_string,
        protocol::{INTERNAL_ERROR, Method, Revision},
        reason::Reason,
        server::{Entry as _, Registry, Server},
        tool::ToolEntry,
    },
    gate::{
        audit::AuditLog,
        telemetry::{Network, OTHER, RequestEnd},
    },
};

/// Bytes of a request's id in a line of the audit log, at most.
const MAX_ID: usize = 256;

/// In place of the value of a secret argument.
const SECRET: &str = "[secret]";

/// The item that a request is about.
pub(crate) enum ObservedItem {
    /// The method has none.
    None,
    Tool(Arc<ToolEntry>),
    /// An entry of a capability.
    Other(Arc<dyn ObservedEntry>),
    /// A resource that is not registered, such as a file of a skill.
    Unregistered,
    /// No item has that name, for this caller or for any.
    Missing {
        kind: &'static str,
        hidden: bool,
        /// The scopes that the caller lacks.
        scopes: Vec<String>,
    },
}

/// An item of a capability, as logs have it.
pub(crate) trait ObservedEntry: Send + Sync {
    fn kind(&self) -> &'static str;

    /// The name of a prompt.
    fn prompt(&self) -> Option<&str> {
        None
    }

    /// The name of an event.
    fn event(&self) -> Option<&str> {
        None
    }

    /// The URI of a resource or template.
    fn uri(&self) -> Option<&str> {
        None
    }

    /// The names of secret arguments.
    fn secrets(&self) -> &[String];
}

/// A request that is being answered.
pub(crate) struct Observation {
    span: Span,
    server: Server,
    started: Instant,
    method: &'static str,
    revision: Revision,
    network: Network,
    item: ObservedItem,
    audited: Option<Box<AuditedCall>>,
    ended: bool,
}

/// The members of an audit log's line besides the outcome of the call.
struct AuditedCall {
    /// The name or URI that the client sent, if it is not secret.
    name: Option<String>,
    /// JSON: names, or an object with values.
    arguments: Vec<u8>,
    caller: Option<Arc<Principal>>,
    address: Option<IpAddr>,
    /// Raw JSON.
    id: Box<str>,
    trace: Option<String>,
}

impl Server {
    /// Answers one request, but none that opens a stream, and watches it.
    pub(super) fn observe(&self, request: Request<'_>) -> Response {
        let observation = Observation::start(self, request);
        let response = {
            let _entered = observation.span.enter();
            self.route(request).unwrap_or_else(Response::Ready)
        };
        match response {
            Response::Ready(reply) => {
                observation.end(&reply);
                Response::Ready(reply)
            }
            Response::Pending(mut pending) => {
                pending.observe(Box::new(observation));
                Response::Pending(pending)
            }
        }
    }

    /// Opens a subscription, and watches whether it is refused; how long it lasts says nothing.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(super) fn observe_stream(&self, request: Request<'_>) -> Result<NotificationStream, Reply> {
        let observation = Observation::start(self, request);
        let entered = observation.span.clone().entered();
        let opened = self.route_stream(request);
        drop(entered);
        match &opened {
            Ok(_) => observation.end(&Reply::from(ResultBody::Empty)),
            Err(refusal) => observation.end(refusal),
        }
        opened
    }

    /// Answers `initialize`, and watches it if someone wants to know.
    pub(super) fn observe_initialize(
        &self,
        connection: Option<&dyn ClientConnection>,
        negotiate: impl FnOnce() -> (Reply, Option<Handshake>),
    ) -> (Reply, Option<Handshake>) {
        if !self.is_observed() {
            return negotiate();
        }
        let (network, host) = (Network::of(connection), host_of(connection));
        let span = tracing::info_span!(
            target: "mcp_runtime::request",
            "mcp.server.request",
            "otel.kind" = "server",
            "otel.name" = "initialize",
            "otel.status_code" = Empty,
            "mcp.method.name" = "initialize",
            "mcp.protocol.version" = Empty,
            "rpc.response.status_code" = Empty,
            "error.type" = Empty,
            "mcp.error.reason" = Empty,
            "network.transport" = network.transport,
            "network.protocol.name" = network.protocol(),
            "network.protocol.version" = network.version,
            "server.address" = host.map(|(host, _)| host),
            "server.port" = host.and_then(|(_, port)| port),
        );
        let started = Instant::now();
        self.telemetry().begin();
        let (reply, handshake) = span.in_scope(negotiate);
        let revision = handshake.as_ref().map_or(Revision::LATEST_LEGACY, |handshake| handshake.revision);
        span.record("mcp.protocol.version", revision.as_str());
        let code = reply.outcome.as_ref().err().map(|error| error.code);
        let code_text = code.map(|code| code.to_string());
        let error = error_type(code, "error", reply.reason);
        record_error(&span, error.as_deref(), code_text.as_deref(), reply.reason);
        self.telemetry().end(&RequestEnd {
            method: "initialize",
            tool: None,
            prompt: None,
            event: None,
            resource: None,
            error: error.as_deref(),
            reason: reply.reason.map(Reason::as_str),
            code: code_text.as_deref(),
            revision: revision.as_str(),
            network,
            duration: started.elapsed(),
        });
        if let Some(reason) = reply.reason.filter(|reason| reason.is_refusal()) {
            self.record_refusal(&RefusedRequest::new(reason), None, None);
        }
        (reply, handshake)
    }
}

impl Observation {
    fn start(server: &Server, request: Request<'_>) -> Self {
        let method = Method::of_name(request.method).map_or(OTHER, |method| method.name);
        let item = ObservedItem::find(&server.registry(), &request);
        let network = Network::of(request.context.connection.as_deref());
        server.telemetry().begin();
        let mut observation = Self {
            span: Span::none(),
            server: server.clone(),
            started: Instant::now(),
            method,
            revision: request.revision,
            network,
            item,
            audited: None,
            ended: false,
        };
        let traceparent = traceparent(&request);
        observation.span = observation.make_span(&request, traceparent.as_deref());
        if let Some(log) = server.audit() {
            observation.audited =
                Some(Box::new(observation.describe_call(log, &request, traceparent.as_deref())));
        }
        observation
    }

    /// The span that the request is answered in.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// Whether the request calls an item.
    fn is_call(&self) -> bool {
        !matches!(self.item, ObservedItem::None)
    }

    fn make_span(&self, request: &Request<'_>, traceparent: Option<&str>) -> Span {
        if !wants_spans() {
            return Span::none();
        }
        let (tool, prompt, event) = (self.item.tool(), self.item.prompt(), self.item.event());
        let name = match tool.or(prompt).or(event) {
            Some(name) => Cow::Owned(format!("{} {name}", self.method)),
            None => Cow::Borrowed(self.method),
        };
        let host = host_of(request.context.connection.as_deref());
        let address = request.context.address.map(|address| address.to_string());
        let span = tracing::info_span!(
            target: "mcp_runtime::request",
            "mcp.server.request",
            "otel.kind" = "server",
            "otel.name" = &*name,
            "otel.status_code" = Empty,
            "mcp.method.name" = self.method,
            "mcp.protocol.version" = self.revision.as_str(),
            "mcp.session.id" = Empty,
            "mcp.task.id" = Empty,
            "gen_ai.operation.name" = tool.map(|_| "execute_tool"),
            "gen_ai.tool.name" = tool,
            "gen_ai.prompt.name" = prompt,
            "mcp.event.name" = event,
            "mcp.resource.uri" = self.item.fixed_uri(),
            "mcp.resource.uri_template" = self.item.template(),
            "gen_ai.tool.call.arguments" = Empty,
            "jsonrpc.request.id" = request.id.trim_matches('"'),
            "rpc.response.status_code" = Empty,
            "error.type" = Empty,
            "mcp.error.reason" = Empty,
            "network.transport" = self.network.transport,
            "network.protocol.name" = self.network.protocol(),
            "network.protocol.version" = self.network.version,
            "server.address" = host.map(|(host, _)| host),
            "server.port" = host.and_then(|(_, port)| port),
            "client.address" = address,
            "trace_id" = traceparent.and_then(|trace| trace.split('-').nth(1)),
            "parent_span_id" = traceparent.and_then(|trace| trace.split('-').nth(2)),
        );
        if span.is_disabled() {
            return span;
        }
        if let Some(session) = request.context.session().and_then(|session| session.digest()) {
            span.record("mcp.session.id", &*session);
        }
        if self.server.telemetry().arguments && tool.is_some() {
            let arguments = request.params.arguments.map_or("{}", RawValue::get);
            span.record(
                "gen_ai.tool.call.arguments",
                &*Value::Object(without_secrets(arguments, self.item.secrets())).to_string(),
            );
        }
        #[cfg(feature = "otel")]
        if let Some(traceparent) = traceparent {
            let state = request.params.meta.other("tracestate").and_then(decode_string);
            crate::gate::telemetry::set_remote_parent(&span, traceparent, state.as_deref());
        }
        span
    }

    fn describe_call(
        &self,
        log: &dyn AuditLog,
        request: &Request<'_>,
        traceparent: Option<&str>,
    ) -> AuditedCall {
        let secrets = self.item.secrets();
        let json = request.params.arguments.map_or("{}", RawValue::get);
        let arguments = match self.is_call() {
            false => Vec::new(),
            // of an item that is not there, nothing says which arguments are secret
            true if log.has_values() && !matches!(self.item, ObservedItem::Missing { .. }) => {
                log.values_of(&without_secrets(json, secrets))
            }
            true => log.names_of(&serde_json::from_str(json).unwrap_or_default()),
        };
        let named = request.params.name.or(request.params.uri).and_then(decode_string);
        let name = match &self.item {
            // the secret is in the URI
            ObservedItem::Other(entry) if !secrets.is_empty() && entry.uri().is_some() => {
                entry.uri().map(str::to_owned)
            }
            _ => named.map(Cow::into_owned),
        };
        AuditedCall {
            name,
            arguments,
            caller: request.context.caller.clone(),
            address: request.context.address,
            id: request.id.into(),
            trace: trace_of(&self.span, traceparent),
        }
    }

    /// The request has got its reply.
    pub(super) fn end(mut self, reply: &Reply) {
        self.ended = true;
        let reason = match (reply.reason, &self.item) {
            (Some(Reason::Unknown), ObservedItem::Missing { hidden: true, .. }) => Some(Reason::Hidden),
            (reason, _) => reason,
        };
        let code = reply.outcome.as_ref().err().map(|error| error.code);
        let outcome = match &reply.outcome {
            _ if reason.is_some_and(Reason::is_refusal) => "refused",
            Ok(body) if body.is_tool_error() => "tool_error",
            Ok(ResultBody::InputRequired { .. }) => "input_required",
            Ok(ResultBody::Other(result)) if result.started_task().is_some() => "task",
            Ok(_) => "ok",
            Err(_) => "error",
        };
        let task = match &reply.outcome {
            Ok(ResultBody::Other(result)) => result.started_task(),
            _ => None,
        };
        let error = error_type(code, outcome, reason);
        self.record(&RequestOutcome { outcome, error: error.as_deref(), code, reason, task });
    }

    fn record(&self, end: &RequestOutcome<'_>) {
        let RequestOutcome { outcome, error, code, reason, task } = *end;
        let duration = self.started.elapsed();
        let code_text = code.map(|code| code.to_string());
        if !self.span.is_disabled() {
            if let Some(task) = task {
                self.span.record("mcp.task.id", task);
            }
            record_error(&self.span, error, code_text.as_deref(), reason);
        }
        self.server.telemetry().end(&RequestEnd {
            method: self.method,
            tool: self.item.tool(),
            prompt: self.item.prompt(),
            event: self.item.event(),
            resource: self.item.template(),
            error,
            reason: reason.map(Reason::as_str),
            code: code_text.as_deref(),
            revision: self.revision.as_str(),
            network: self.network,
            duration,
        });
        let (Some(log), Some(call)) = (self.server.audit(), &self.audited) else { return };
        let is_call = self.is_call();
        if !is_call && outcome != "refused" {
            return;
        }
        log.write(if is_call { "call" } else { "refused" }, &|line| {
            line.str("method", self.method);
            if is_call {
                line.str("kind", self.item.kind());
            }
            if let Some(name) = &call.name {
                log.write_text(line, "item", name);
            }
            if is_call {
                line.key("arguments").extend_from_slice(&call.arguments);
            }
            line.str("outcome", outcome).opt_str("reason", reason.map(Reason::as_str)).opt_str("task", task);
            if let (Some(Reason::Scopes), ObservedItem::Missing { scopes, .. }) = (reason, &self.item) {
                log.write_text(line, "scopes", &scopes.join(" "));
            }
            if let Some(code) = code {
                line.value("code", &code);
            }
            log.write_caller(line, call.caller.as_deref(), call.address);
            if call.id.len() <= MAX_ID {
                line.raw("request", &call.id);
            } else {
                log.write_text(line, "request", &call.id);
            }
            line.opt_str("trace", call.trace.as_deref());
            line.value("ms", &milliseconds(duration));
        });
    }
}

/// How a request has ended.
struct RequestOutcome<'a> {
    outcome: &'static str,
    error: Option<&'a str>,
    code: Option<i64>,
    reason: Option<Reason>,
    task: Option<&'a str>,
}

/// The wire's error code, which the conventions ask for; in place of `-32603`, which says nothing, and of an error that is
/// in a result, the reason for it.
pub(crate) fn error_type(
    code: Option<i64>,
    outcome: &str,
    reason: Option<Reason>,
) -> Option<Cow<'static, str>> {
    let reason =
        reason.filter(|reason| !reason.is_of_function()).map(|reason| Cow::Borrowed(reason.as_str()));
    match code {
        Some(INTERNAL_ERROR) if reason.is_some() => reason,
        Some(code) => Some(code.to_string().into()),
        None if matches!(outcome, "tool_error" | "refused") => Some(reason.unwrap_or("tool_error".into())),
        None => None,
    }
}

/// Records in a span that its operation has failed, if it has.
pub(crate) fn record_error(span: &Span, error: Option<&str>, code: Option<&str>, reason: Option<Reason>) {
    let Some(error) = error else { return };
    span.record("error.type", error).record("otel.status_code", "ERROR");
    if let Some(code) = code {
        span.record("rpc.response.status_code", code);
    }
    if let Some(reason) = reason {
        span.record("mcp.error.reason", reason.as_str());
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.ended {
            let reason = Some(Reason::Cancelled);
            self.record(&RequestOutcome {
                outcome: "cancelled",
                error: Some("cancelled"),
                code: None,
                reason,
                task: None,
            });
        }
    }
}

/// The trace that a span is part of: as it is exported, or else as the client has named it.
pub(crate) fn trace_of(span: &Span, traceparent: Option<&str>) -> Option<String> {
    #[cfg(feature = "otel")]
    let exported = crate::gate::telemetry::trace_id(span);
    #[cfg(not(feature = "otel"))]
    let exported = {
        let _not_exported = span;
        None
    };
    exported.or_else(|| traceparent.and_then(|trace| trace.split('-').nth(1)).map(str::to_owned))
}

/// With microseconds as decimals.
pub(crate) fn milliseconds(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// The host and the port that are requested over HTTP.
fn host_of(connection: Option<&dyn ClientConnection>) -> Option<(&str, Option<u16>)> {
    let host = connection?.http_head()?.host?;
    let port = host.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    Some(port.map_or((host, None), |(name, port)| (name, Some(port))))
}

/// A request that was refused before its method was examined.
#[derive(Debug, Clone)]
pub(crate) struct RefusedRequest {
    pub(crate) reason: Reason,
    /// The HTTP status.
    pub(crate) status: Option<u16>,
    /// The scopes that the caller lacks.
    pub(crate) scopes: Box<str>,
    /// The caller, if only the refusal knows it.
    pub(crate) caller: Option<Arc<Principal>>,
}

impl RefusedRequest {
    pub(crate) fn new(reason: Reason) -> Self {
        Self { reason, status: None, scopes: Box::default(), caller: None }
    }
}

impl Server {
    /// Records a request that was refused before its method was examined.
    pub(crate) fn record_refusal(
        &self,
        refused: &RefusedRequest,
        caller: Option<&Principal>,
        address: Option<IpAddr>,
    ) {
        let RefusedRequest { reason, status, scopes, caller: known } = refused;
        let caller = caller.or(known.as_deref());
        self.telemetry().refuse(*status, reason.as_str());
        if let Some(log) = self.audit() {
            log.write("refused", &|line| {
                line.str("outcome", "refused").str("reason", reason.as_str());
                if !scopes.is_empty() {
                    log.write_text(line, "scopes", scopes);
                }
                if let Some(status) = status {
                    line.value("status", status);
                }
                log.write_caller(line, caller, address);
            });
        }
    }
}

impl ObservedItem {
    /// One that the caller may not call, or that is not there.
    pub(crate) fn missing(
        kind: &'static str,
        hidden: bool,
        error: &AccessError<'_>,
        request: &Request<'_>,
    ) -> Self {
        // the scopes that are missing, of an item that the caller may ask them for
        let scopes = match error {
            AccessError::MissingScopes(needed) => {
                let held = request.context.caller.as_ref().map_or(&[][..], |caller| caller.scopes());
                needed.iter().filter(|scope| !held.contains(scope)).cloned().collect()
            }
            AccessError::Unknown => Vec::new(),
        };
        Self::Missing { kind, hidden, scopes }
    }

    /// The item that a request names. Dispatch looks it up as well: whether a request is watched does not change how it
    /// is answered.
    fn find(registry: &Registry, request: &Request<'_>) -> Self {
        match request.method {
            "tools/call" => registry.tools.observed(request, Self::Tool),
            method => match registry.capabilities.of_method(method) {
                Some(capability) => capability.observed(registry, request),
                // the server has no items of that kind
                None => match method {
                    "prompts/get" => Self::missing("prompt", false, &AccessError::Unknown, request),
                    "resources/read" => Self::missing("resource", false, &AccessError::Unknown, request),
                    _ => Self::None,
                },
            },
        }
    }

    fn tool(&self) -> Option<&str> {
        match self {
            Self::Tool(entry) => Some(entry.name()),
            _ => None,
        }
    }

    fn prompt(&self) -> Option<&str> {
        match self {
            Self::Other(entry) => entry.prompt(),
            _ => None,
        }
    }

    fn event(&self) -> Option<&str> {
        match self {
            Self::Other(entry) => entry.event(),
            _ => None,
        }
    }

    /// The URI of a resource, or the template that its URI is one of.
    fn template(&self) -> Option<&str> {
        match self {
            Self::Other(entry) => entry.uri(),
            _ => None,
        }
    }

    /// The URI of a resource that is not a template.
    fn fixed_uri(&self) -> Option<&str> {
        self.template().filter(|uri| !uri.contains('{'))
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::None => "",
            Self::Tool(_) => "tool",
            Self::Other(entry) => entry.kind(),
            Self::Unregistered => "resource",
            Self::Missing { kind, .. } => kind,
        }
    }

    /// The names of secret arguments.
    fn secrets(&self) -> &[String] {
        match self {
            Self::Tool(entry) => &entry.spec.item.secrets,
            Self::Other(entry) => entry.secrets(),
            Self::None | Self::Unregistered | Self::Missing { .. } => &[],
        }
    }
}

/// Arguments without the values of those that are secret. Names are compared as a model may misspell them.
fn without_secrets(json: &str, secrets: &[String]) -> Map<String, Value> {
    let plain = |name: &str| {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    let secrets: Vec<_> = secrets.iter().map(|name| plain(name)).collect();
    let mut arguments: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
    for (_, value) in arguments.iter_mut().filter(|(name, _)| secrets.contains(&plain(name))) {
        *value = SECRET.into();
    }
    arguments
}

/// The trace that a request is part of: its own, or that of its HTTP request.
fn traceparent<'a>(request: &Request<'a>) -> Option<Cow<'a, str>> {
    let in_meta = request.params.meta.other("traceparent").and_then(decode_string);
    in_meta.filter(|text| is_traceparent(text)).or_else(|| {
        let header = request.context.connection.as_ref()?.header("traceparent")?;
        is_traceparent(header).then(|| Cow::Owned(header.to_owned()))
    })
}
