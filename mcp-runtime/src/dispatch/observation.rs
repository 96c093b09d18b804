//! Watches a request from its arrival to its reply, if someone wants to know: a span, a duration, a line of the audit log.
//! What is watched is a value: the request's reply is pending for as long as it lives, and a reply that never comes is a
//! cancelled one.

use std::{borrow::Cow, net::IpAddr, sync::Arc, time::Instant};

use serde_json::{Map, Value, value::RawValue};
use tracing::{Span, field::Empty};

use super::{
    Request,
    lifecycle::Handshake,
    response::{Refusal, Reply, Response, ResultBody},
    router::wants_spans,
    subscriptions::ListenStream,
};
use crate::{
    audit::AuditLog,
    connection::{Access, Principal},
    context::is_traceparent,
    jsonrpc::{Object, decode_string, write_array, write_string},
    prompt::PromptEntry,
    protocol::{Method, Revision},
    resource::ResourceEntry,
    schema::truncate,
    server::{Registry, Server},
    telemetry::{OTHER, RequestEnd},
    tool::ToolEntry,
};

/// Names of arguments in one line of the audit log, at most.
const MAX_NAMES: usize = 64;

/// In place of the value of a secret argument.
const SECRET: &str = "[secret]";

/// The item that a request is about.
enum ObservedItem {
    /// The method has none.
    None,
    Tool(Arc<ToolEntry>),
    Prompt(Arc<PromptEntry>),
    Resource(Arc<ResourceEntry>),
    /// A file of a skill.
    File,
    /// There is none of that name, for this caller or for any.
    Missing {
        kind: &'static str,
        hidden: bool,
    },
}

/// A request that is being answered.
pub(crate) struct Observation {
    span: Span,
    server: Server,
    started: Instant,
    method: &'static str,
    revision: Revision,
    transport: Option<&'static str>,
    item: ObservedItem,
    audited: Option<Box<AuditedCall>>,
    ended: bool,
}

/// What a line of the audit log has besides how the call ended.
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
    /// Answers one request, but not `subscriptions/listen`, and watches it.
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
    pub(super) fn observe_listen(&self, request: Request<'_>) -> Result<ListenStream, Reply> {
        let observation = Observation::start(self, request);
        let entered = observation.span.clone().entered();
        let opened = self.route_listen(request);
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
        negotiate: impl FnOnce() -> (Reply, Option<Handshake>),
    ) -> (Reply, Option<Handshake>) {
        if !self.is_observed() {
            return negotiate();
        }
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
        );
        let started = Instant::now();
        self.telemetry().begin();
        let (reply, handshake) = span.in_scope(negotiate);
        let revision = handshake.as_ref().map_or(Revision::LATEST_LEGACY, |handshake| handshake.revision);
        span.record("mcp.protocol.version", revision.as_str());
        let error = reply.outcome.as_ref().err().map(|error| error.code.to_string());
        if let Some(error) = error.as_deref() {
            span.record("error.type", error)
                .record("rpc.response.status_code", error)
                .record("otel.status_code", "ERROR");
        }
        self.telemetry().end(&RequestEnd {
            method: "initialize",
            tool: None,
            prompt: None,
            error: error.as_deref(),
            revision: revision.as_str(),
            transport: None,
            duration: started.elapsed(),
        });
        (reply, handshake)
    }
}

impl Observation {
    fn start(server: &Server, request: Request<'_>) -> Self {
        let method = Method::of_name(request.method).map_or(OTHER, |method| method.name);
        let item = ObservedItem::find(&server.registry(), &request);
        let transport = request.context.connection.as_ref().and_then(|connection| connection.transport());
        server.telemetry().begin();
        let mut observation = Self {
            span: Span::none(),
            server: server.clone(),
            started: Instant::now(),
            method,
            revision: request.revision,
            transport,
            item,
            audited: None,
            ended: false,
        };
        let traceparent = traceparent(&request);
        observation.span = observation.make_span(&request, traceparent.as_deref());
        if let Some(log) = server.audit()
            && observation.is_call()
        {
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
        let (tool, prompt) = (self.item.tool(), self.item.prompt());
        let name = match tool.or(prompt) {
            Some(name) => Cow::Owned(format!("{} {name}", self.method)),
            None => Cow::Borrowed(self.method),
        };
        let is_http = self.transport == Some("tcp");
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
            "gen_ai.tool.call.arguments" = Empty,
            "jsonrpc.request.id" = request.id.trim_matches('"'),
            "rpc.response.status_code" = Empty,
            "error.type" = Empty,
            "network.transport" = self.transport,
            "network.protocol.name" = is_http.then_some("http"),
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
                &*without_secrets(arguments, self.item.secrets()).to_string(),
            );
        }
        #[cfg(feature = "otel")]
        if let Some(traceparent) = traceparent {
            let state = request.params.meta.other("tracestate").and_then(decode_string);
            crate::telemetry::set_remote_parent(&span, traceparent, state.as_deref());
        }
        span
    }

    fn describe_call(&self, log: &AuditLog, request: &Request<'_>, traceparent: Option<&str>) -> AuditedCall {
        let secrets = self.item.secrets();
        let json = request.params.arguments.map_or("{}", RawValue::get);
        let mut arguments = Vec::new();
        // of an item that is not there, nothing says which arguments are secret
        if log.values && !matches!(self.item, ObservedItem::Missing { .. }) {
            arguments = without_secrets(json, secrets).to_string().into_bytes();
        } else {
            let names: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
            let names = names.keys().take(MAX_NAMES);
            write_array(&mut arguments, names, |out, name| write_string(out, truncate(name)));
        }
        let named = request.params.name.or(request.params.uri).and_then(decode_string);
        let name = match &self.item {
            // the secret is in the URI
            ObservedItem::Resource(entry) if !secrets.is_empty() => Some(entry.uri.clone()),
            _ => named.map(|name| truncate(&name).to_owned()),
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
        let code = reply.outcome.as_ref().err().map(|error| error.code);
        let (outcome, error) = match &reply.outcome {
            Ok(body) if body.is_tool_error() => ("tool_error", Some("tool_error".into())),
            Ok(ResultBody::InputRequired { .. }) => ("input_required", None),
            Ok(ResultBody::Other(result)) if result.started_task().is_some() => ("task", None),
            Ok(_) => ("ok", None),
            Err(error) if reply.refusal.is_some() => ("refused", Some(Cow::Owned(error.code.to_string()))),
            Err(error) => ("error", Some(Cow::Owned(error.code.to_string()))),
        };
        let task = match &reply.outcome {
            Ok(ResultBody::Other(result)) => result.started_task(),
            _ => None,
        };
        self.record(outcome, error.as_deref(), code, reply.refusal, task);
    }

    fn record(
        &self,
        outcome: &str,
        error: Option<&str>,
        code: Option<i64>,
        refusal: Option<Refusal>,
        task: Option<&str>,
    ) {
        let duration = self.started.elapsed();
        if !self.span.is_disabled() {
            if let Some(task) = task {
                self.span.record("mcp.task.id", task);
            }
            if let Some(error) = error {
                self.span.record("error.type", error).record("otel.status_code", "ERROR");
            }
            if let Some(code) = code {
                self.span.record("rpc.response.status_code", &*code.to_string());
            }
        }
        self.server.telemetry().end(&RequestEnd {
            method: self.method,
            tool: self.item.tool(),
            prompt: self.item.prompt(),
            error,
            revision: self.revision.as_str(),
            transport: self.transport,
            duration,
        });
        let (Some(log), Some(call)) = (self.server.audit(), &self.audited) else { return };
        let reason = match (&self.item, refusal) {
            (ObservedItem::Missing { hidden: true, .. }, Some(Refusal::UnknownItem)) => Some("hidden"),
            (_, refusal) => refusal.map(Refusal::as_str),
        };
        log.write("call", |line| {
            line.str("method", self.method)
                .str("kind", self.item.kind())
                .opt_str("item", call.name.as_deref());
            line.key("arguments").extend_from_slice(&call.arguments);
            line.str("outcome", outcome).opt_str("reason", reason).opt_str("task", task);
            if let Some(code) = code {
                line.value("code", &code);
            }
            write_caller(line, call.caller.as_deref(), call.address);
            line.raw("request", &call.id).opt_str("trace", call.trace.as_deref());
            line.value("ms", &milliseconds(duration));
        });
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.ended {
            self.record("cancelled", Some("cancelled"), None, None, None);
        }
    }
}

/// The trace that a span is part of: as it is exported, or else as the client has named it.
pub(crate) fn trace_of(span: &Span, traceparent: Option<&str>) -> Option<String> {
    #[cfg(feature = "otel")]
    let exported = crate::telemetry::trace_id(span);
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

/// Writes who has sent a request, as far as it is known.
pub(crate) fn write_caller(line: &mut Object<'_>, caller: Option<&Principal>, address: Option<IpAddr>) {
    if let Some(caller) = caller {
        line.str("issuer", caller.issuer()).str("subject", caller.subject());
    }
    line.opt_str("address", address.map(|address| address.to_string()).as_deref());
}

impl Server {
    /// Records a request that was refused on a connection before its method was looked at; why is `busy` or `stopping`.
    pub(crate) fn record_refused_message(&self, reason: &str, caller: Option<&Principal>) {
        if let Some(log) = self.audit() {
            log.write("refused", |line| {
                line.str("outcome", "refused").str("reason", reason);
                write_caller(line, caller, None);
            });
        }
    }

    /// Records a request that was refused over HTTP before its method was looked at.
    #[cfg(feature = "http")]
    pub(crate) fn record_refusal(&self, status: u16, caller: Option<&Principal>, address: Option<IpAddr>) {
        self.telemetry().refuse(status);
        if let Some(log) = self.audit() {
            log.write("refused", |line| {
                line.str("outcome", "refused").value("status", &status);
                write_caller(line, caller, address);
            });
        }
    }
}

impl ObservedItem {
    /// The item that a request names. Dispatch looks it up as well: whether a request is watched does not change how it
    /// is answered.
    fn find(registry: &Registry, request: &Request<'_>) -> Self {
        let named = |raw: Option<&RawValue>| raw.and_then(decode_string).unwrap_or_default().into_owned();
        let missing = |kind, hidden| Self::Missing { kind, hidden };
        match request.method {
            "tools/call" => {
                let name = named(request.params.name);
                match registry.tools.find(&name, request.access()) {
                    Ok(entry) => Self::Tool(entry.clone()),
                    Err(_) => missing("tool", registry.tools.iter().any(|tool| tool.name() == name)),
                }
            }
            "prompts/get" => {
                let name = named(request.params.name);
                match registry.prompts.find(&name, request.access()) {
                    Ok(entry) => Self::Prompt(entry.clone()),
                    Err(_) => {
                        missing("prompt", registry.prompts.iter().any(|prompt| prompt.item.name == name))
                    }
                }
            }
            "resources/read" => {
                let uri = named(request.params.uri);
                if request.revision.is_modern() && registry.skills.find(&uri, request.access()).is_ok() {
                    return Self::File;
                }
                match registry.resource(&uri, request.access()) {
                    Ok((entry, _)) => Self::Resource(entry.clone()),
                    Err(_) => missing("resource", registry.resource(&uri, Access::TRUSTED).is_ok()),
                }
            }
            _ => Self::None,
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
            Self::Prompt(entry) => Some(&entry.item.name),
            _ => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::None => "",
            Self::Tool(_) => "tool",
            Self::Prompt(_) => "prompt",
            Self::Resource(_) | Self::File => "resource",
            Self::Missing { kind, .. } => kind,
        }
    }

    /// The names of secret arguments.
    fn secrets(&self) -> &[String] {
        match self {
            Self::Tool(entry) => &entry.spec.item.secrets,
            Self::Prompt(entry) => &entry.item.secrets,
            Self::Resource(entry) => &entry.item.secrets,
            Self::None | Self::File | Self::Missing { .. } => &[],
        }
    }
}

/// Arguments without the values of those that are secret. Names are compared as a model may misspell them.
fn without_secrets(json: &str, secrets: &[String]) -> Value {
    let plain = |name: &str| {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    let secrets: Vec<_> = secrets.iter().map(|name| plain(name)).collect();
    let mut arguments: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
    for (_, value) in arguments.iter_mut().filter(|(name, _)| secrets.contains(&plain(name))) {
        *value = SECRET.into();
    }
    Value::Object(arguments)
}

/// The trace that a request is part of: its own, or that of its HTTP request.
fn traceparent<'a>(request: &Request<'a>) -> Option<Cow<'a, str>> {
    let in_meta = request.params.meta.other("traceparent").and_then(decode_string);
    in_meta.filter(|text| is_traceparent(text)).or_else(|| {
        let header = request.context.connection.as_ref()?.header("traceparent")?;
        is_traceparent(header).then(|| Cow::Owned(header.to_owned()))
    })
}
