//! Watches a request from its arrival to its reply, if someone wants to know: its span, and what
//! [observers](crate::core::observer) are told. An observation is a value: the request's reply is pending for as long as it
//! lives, and a reply that never comes counts as a cancelled one.

use std::{borrow::Cow, net::IpAddr, time::Instant};

use serde_json::{Value, value::RawValue};
use tracing::{Span, field::Empty};

use super::{
    Request,
    lifecycle::Handshake,
    observed_item::ObservedItem,
    request::wants_spans,
    response::{Reply, Response, ResultBody},
    subscriptions::NotificationStream,
};
use crate::core::{
    connection::{ClientConnection, Principal},
    context::is_traceparent,
    jsonrpc::decode_string,
    observer::{AnyDetails, EndOutcome, EndedRequest, Network, OTHER, RefusedRequest},
    protocol::{INTERNAL_ERROR, Method, Revision},
    reason::Reason,
    server::Server,
};

/// A request that is being answered.
pub(crate) struct Observation {
    span: Span,
    server: Server,
    started: Instant,
    method: &'static str,
    revision: Revision,
    network: Network,
    item: ObservedItem,
    /// If an observer needs them.
    details: Option<AnyDetails>,
    ended: bool,
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
        let revision = Revision::LATEST_LEGACY;
        let mut observation =
            Observation::new(self, "initialize", revision, Network::of(connection), ObservedItem::None);
        observation.span = observation.make_span(connection, None, None);
        let (reply, handshake) = observation.span.in_scope(negotiate);
        if let Some(handshake) = &handshake {
            observation.revision = handshake.revision;
        }
        observation.span.record("mcp.protocol.version", observation.revision.as_str());
        observation.end(&reply);
        if let Some(reason) = reply.reason.filter(|reason| reason.is_refusal()) {
            self.record_refusal(&RefusedRequest::new(reason), None, None);
        }
        (reply, handshake)
    }

    /// Records a request that was refused before its method was examined.
    pub(crate) fn record_refusal(
        &self,
        refused: &RefusedRequest,
        caller: Option<&Principal>,
        address: Option<IpAddr>,
    ) {
        let caller = caller.or(refused.caller.as_deref());
        self.observers().iter().for_each(|observer| observer.refused(refused, caller, address));
    }
}

impl Observation {
    fn new(
        server: &Server,
        method: &'static str,
        revision: Revision,
        network: Network,
        item: ObservedItem,
    ) -> Self {
        server.observers().iter().for_each(|observer| observer.request_began());
        let server = server.clone();
        let (span, started) = (Span::none(), Instant::now());
        Self { span, server, started, method, revision, network, item, details: None, ended: false }
    }

    fn start(server: &Server, request: Request<'_>) -> Self {
        let method = Method::of_name(request.method).map_or(OTHER, |method| method.name);
        let registry = server.registry();
        // of a call that is passed on, the call that it becomes
        let forwarded = server.forwarded(&registry, &request);
        let params = forwarded.as_ref().map(|call| call.params(request.params));
        let request = params.as_ref().map_or(request, |params| request.with_params(params));
        let item = ObservedItem::find(&registry, &request);
        let connection = request.context.connection.as_deref();
        let mut observation = Self::new(server, method, request.revision, Network::of(connection), item);
        let traceparent = traceparent(&request);
        observation.span = observation.make_span(connection, Some(&request), traceparent.as_deref());
        let (item, trace) = (&observation.item, || trace_of(&observation.span, traceparent.as_deref()));
        let details = server.observers().iter().find_map(|observer| observer.details(&request, item, &trace));
        observation.details = details;
        observation
    }

    /// The span that the request is answered in.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// The span of a request, or of `initialize`, whose revision is not known yet.
    fn make_span(
        &self,
        connection: Option<&dyn ClientConnection>,
        request: Option<&Request<'_>>,
        traceparent: Option<&str>,
    ) -> Span {
        if !wants_spans() {
            return Span::none();
        }
        let [tool, prompt, event, resource] =
            ["tool", "prompt", "event", "resource"].map(|kind| self.item.name_of(kind));
        let name = match tool.or(prompt).or(event) {
            Some(name) => Cow::Owned(format!("{} {name}", self.method)),
            None => Cow::Borrowed(self.method),
        };
        let host = host_of(connection);
        let address = request.and_then(|request| request.context.address);
        let span = tracing::info_span!(
            target: "mcp_runtime::request",
            "mcp.server.request",
            "otel.kind" = "server",
            "otel.name" = &*name,
            "otel.status_code" = Empty,
            "mcp.method.name" = self.method,
            "mcp.protocol.version" = request.map(|request| request.revision.as_str()),
            "mcp.session.id" = Empty,
            "mcp.task.id" = Empty,
            "gen_ai.operation.name" = tool.map(|_| "execute_tool"),
            "gen_ai.tool.name" = tool,
            "gen_ai.prompt.name" = prompt,
            "mcp.event.name" = event,
            "mcp.resource.uri" = self.item.fixed_uri(),
            "mcp.resource.uri_template" = resource,
            "gen_ai.tool.call.arguments" = Empty,
            "jsonrpc.request.id" = request.map(|request| request.id.trim_matches('"')),
            "rpc.response.status_code" = Empty,
            "error.type" = Empty,
            "mcp.error.reason" = Empty,
            "network.transport" = self.network.transport,
            "network.protocol.name" = self.network.protocol(),
            "network.protocol.version" = self.network.version,
            "server.address" = host.map(|(host, _)| host),
            "server.port" = host.and_then(|(_, port)| port),
            "client.address" = address.map(|address| address.to_string()),
            "trace_id" = traceparent.and_then(|trace| trace.split('-').nth(1)),
            "parent_span_id" = traceparent.and_then(|trace| trace.split('-').nth(2)),
        );
        if let Some(request) = request.filter(|_| !span.is_disabled()) {
            self.record_request(&span, request, traceparent);
        }
        span
    }

    /// Records what is made for a span alone.
    fn record_request(&self, span: &Span, request: &Request<'_>, traceparent: Option<&str>) {
        if let Some(session) = request.context.session().and_then(|session| session.digest()) {
            span.record("mcp.session.id", &*session);
        }
        if self.server.options().telemetry.arguments && self.item.name_of("tool").is_some() {
            let arguments = request.params.arguments.map_or("{}", RawValue::get);
            span.record(
                "gen_ai.tool.call.arguments",
                &*Value::Object(self.item.without_secrets(arguments)).to_string(),
            );
        }
        #[cfg(feature = "otel")]
        if let Some(traceparent) = traceparent {
            let state = request.params.meta.other("tracestate").and_then(decode_string);
            crate::observers::otel::set_remote_parent(span, traceparent, state.as_deref());
        }
        #[cfg(not(feature = "otel"))]
        let _: Option<&str> = traceparent;
    }

    /// The request has got its reply.
    pub(super) fn end(mut self, reply: &Reply) {
        self.ended = true;
        let reason = self.item.reason(reply.reason);
        let code = reply.outcome.as_ref().err().map(|error| error.code);
        let task = match &reply.outcome {
            Ok(ResultBody::Other(result)) => result.started_task(),
            _ => None,
        };
        let outcome = match &reply.outcome {
            _ if reason.is_some_and(Reason::is_refusal) => EndOutcome::Refused,
            Ok(body) if body.is_tool_error() => EndOutcome::ToolError,
            Ok(ResultBody::InputRequired { .. }) => EndOutcome::InputRequired,
            Ok(_) if task.is_some() => EndOutcome::Task,
            Ok(_) => EndOutcome::Ok,
            Err(_) => EndOutcome::Error,
        };
        self.record(outcome, code, reason, task);
    }

    fn record(&self, outcome: EndOutcome, code: Option<i64>, reason: Option<Reason>, task: Option<&str>) {
        let error = error_type(code, outcome, reason);
        let code = code.map(|code| code.to_string());
        if !self.span.is_disabled() {
            if let Some(task) = task {
                self.span.record("mcp.task.id", task);
            }
            record_error(&self.span, error.as_deref(), code.as_deref(), reason);
        }
        let end = EndedRequest {
            method: self.method,
            item: &self.item,
            outcome,
            error: error.as_deref(),
            reason,
            code: code.as_deref(),
            task,
            revision: self.revision.as_str(),
            network: self.network,
            duration: self.started.elapsed(),
            details: self.details.as_deref(),
        };
        self.server.observers().iter().for_each(|observer| observer.request_ended(&end));
    }
}

/// The wire's error code, which the conventions ask for; in place of `-32603`, which says nothing, and of an error that is
/// in a result, the reason for it.
pub(crate) fn error_type(
    code: Option<i64>,
    outcome: EndOutcome,
    reason: Option<Reason>,
) -> Option<Cow<'static, str>> {
    let reason =
        reason.filter(|reason| !reason.is_of_function()).map(|reason| Cow::Borrowed(reason.as_str()));
    match code {
        Some(INTERNAL_ERROR) if reason.is_some() => reason,
        Some(code) => Some(code.to_string().into()),
        None => match outcome {
            EndOutcome::ToolError | EndOutcome::Refused => Some(reason.unwrap_or("tool_error".into())),
            EndOutcome::Cancelled | EndOutcome::Expired | EndOutcome::Lost => Some(outcome.as_str().into()),
            _ => None,
        },
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
            self.record(EndOutcome::Cancelled, None, Some(Reason::Cancelled), None);
        }
    }
}

/// The trace that a span is part of: as it is exported, or else as the client has named it.
pub(crate) fn trace_of(span: &Span, traceparent: Option<&str>) -> Option<String> {
    #[cfg(feature = "otel")]
    let exported = crate::observers::otel::trace_id(span);
    #[cfg(not(feature = "otel"))]
    let exported = {
        let _not_exported = span;
        None
    };
    exported.or_else(|| traceparent.and_then(|trace| trace.split('-').nth(1)).map(str::to_owned))
}

/// The host and the port that are requested over HTTP.
fn host_of(connection: Option<&dyn ClientConnection>) -> Option<(&str, Option<u16>)> {
    let host = connection?.http_head()?.host?;
    let port = host.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    Some(port.map_or((host, None), |(name, port)| (name, Some(port))))
}

/// The trace that a request is part of: its own, or that of its HTTP request.
fn traceparent<'a>(request: &Request<'a>) -> Option<Cow<'a, str>> {
    let in_meta = request.params.meta.other("traceparent").and_then(decode_string);
    in_meta.filter(|text| is_traceparent(text)).or_else(|| {
        let header = request.context.connection.as_ref()?.header("traceparent")?;
        is_traceparent(header).then(|| Cow::Owned(header.to_owned()))
    })
}
