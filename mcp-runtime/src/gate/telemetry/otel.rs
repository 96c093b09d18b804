//! Metrics by the API of OpenTelemetry, so that the program's exporters get them, and the parent of a span that a client
//! names. Spans themselves get there as `tracing` spans, by the layer of `tracing-opentelemetry`.

use std::{fmt, sync::OnceLock, time::Duration};

use opentelemetry::{
    Context, KeyValue, global,
    metrics::{Counter, Histogram},
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::{BUCKETS, RequestEnd, STORE_BUCKETS, TaskTotal};

/// The instruments of one server.
#[derive(Default)]
pub(super) struct Instruments {
    /// Made with the first request, since the program may set its meter provider after it has built the server.
    made: OnceLock<Durations>,
}

struct Durations {
    operations: Histogram<f64>,
    sessions: Histogram<f64>,
    tasks: Histogram<f64>,
    #[cfg(feature = "auth")]
    issuers: Histogram<f64>,
    refused: Counter<u64>,
    store: Histogram<f64>,
}

impl Instruments {
    fn durations(&self) -> &Durations {
        self.made.get_or_init(|| {
            let meter = global::meter("mcp-runtime");
            let histogram = |name: &'static str, description: &'static str| {
                let histogram = meter.f64_histogram(name).with_unit("s").with_description(description);
                histogram.with_boundaries(BUCKETS.to_vec()).build()
            };
            Durations {
                operations: histogram(
                    "mcp.server.operation.duration",
                    "Time from the arrival of an MCP request until its result was ready.",
                ),
                sessions: histogram(
                    "mcp.server.session.duration",
                    "How long MCP sessions and connections lasted.",
                ),
                tasks: histogram(
                    "mcp.server.task.duration",
                    "Time from the creation of an MCP task until its end.",
                ),
                #[cfg(feature = "auth")]
                issuers: histogram(
                    "mcp.server.authorization.duration",
                    "Time that an authorization server took to answer for keys or about a token.",
                ),
                refused: meter
                    .u64_counter("mcp.server.refused_requests")
                    .with_unit("{request}")
                    .with_description("Requests that were refused before their method was looked at.")
                    .build(),
                store: meter
                    .f64_histogram("mcp.server.store.operation.duration")
                    .with_unit("s")
                    .with_description("How long operations of the shared store took.")
                    .with_boundaries(STORE_BUCKETS.to_vec())
                    .build(),
            }
        })
    }

    pub(super) fn end(&self, request: &RequestEnd<'_>) {
        let mut attributes = Vec::with_capacity(12);
        attributes.push(KeyValue::new("mcp.method.name", request.method));
        attributes.push(KeyValue::new("mcp.protocol.version", request.revision));
        let optional = [
            ("network.transport", request.network.transport),
            ("network.protocol.name", request.network.protocol()),
            ("network.protocol.version", request.network.version),
            ("mcp.error.reason", request.reason),
        ];
        attributes.extend(optional.iter().filter_map(|(key, value)| Some(KeyValue::new(*key, (*value)?))));
        if let Some(resource) = request.resource {
            attributes.push(KeyValue::new("mcp.resource.uri_template", resource.to_owned()));
        }
        if let Some(code) = request.code {
            attributes.push(KeyValue::new("rpc.response.status_code", code.to_owned()));
        }
        if let Some(tool) = request.tool {
            attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
            attributes.push(KeyValue::new("gen_ai.tool.name", tool.to_owned()));
        }
        if let Some(prompt) = request.prompt {
            attributes.push(KeyValue::new("gen_ai.prompt.name", prompt.to_owned()));
        }
        if let Some(event) = request.event {
            attributes.push(KeyValue::new("mcp.event.name", event.to_owned()));
        }
        if let Some(error) = request.error {
            attributes.push(KeyValue::new("error.type", error.to_owned()));
        }
        self.durations().operations.record(request.duration.as_secs_f64(), &attributes);
    }

    pub(super) fn end_session(
        &self,
        transport: Option<&'static str>,
        revision: &'static str,
        lasted: Duration,
    ) {
        let mut attributes = vec![KeyValue::new("mcp.protocol.version", revision)];
        attributes.extend(transport.map(|transport| KeyValue::new("network.transport", transport)));
        self.durations().sessions.record(lasted.as_secs_f64(), &attributes);
    }
}

impl Instruments {
    pub(super) fn refuse(&self, status: Option<u16>, reason: &'static str) {
        let mut attributes = vec![KeyValue::new("mcp.error.reason", reason)];
        let status = status.map(|status| KeyValue::new("http.response.status_code", i64::from(status)));
        attributes.extend(status);
        self.durations().refused.add(1, &attributes);
    }

    pub(super) fn end_task(&self, task: &TaskTotal<'_>) {
        let mut attributes = vec![
            KeyValue::new("gen_ai.tool.name", task.tool.to_owned()),
            KeyValue::new("mcp.task.outcome", task.outcome),
        ];
        attributes.extend(task.error.map(|error| KeyValue::new("error.type", error.to_owned())));
        attributes.extend(task.reason.map(|reason| KeyValue::new("mcp.error.reason", reason)));
        self.durations().tasks.record(task.duration.as_secs_f64(), &attributes);
    }

    pub(super) fn end_store_operation(&self, [operation, outcome]: [&'static str; 2], duration: Duration) {
        let attributes = [KeyValue::new("operation", operation), KeyValue::new("outcome", outcome)];
        self.durations().store.record(duration.as_secs_f64(), &attributes);
    }

    #[cfg(feature = "auth")]
    pub(super) fn ask_issuer(&self, [issuer, question, outcome]: [&str; 3], duration: Duration) {
        let attributes = [("issuer", issuer), ("question", question), ("outcome", outcome)]
            .map(|(key, value)| KeyValue::new(key, value.to_owned()));
        self.durations().issuers.record(duration.as_secs_f64(), &attributes);
    }
}

impl fmt::Debug for Instruments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Instruments")
    }
}

/// Makes a span, which has not been entered yet, a child of the client's; `traceparent` is well-formed.
pub(crate) fn set_remote_parent(span: &Span, traceparent: &str, tracestate: Option<&str>) {
    let mut parts = traceparent.split('-').skip(1);
    let mut next = || parts.next().unwrap_or_default();
    let (Ok(trace), Ok(parent), Ok(flags)) =
        (TraceId::from_hex(next()), SpanId::from_hex(next()), u8::from_str_radix(next(), 16))
    else {
        return;
    };
    let state = tracestate.and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
    let remote = SpanContext::new(trace, parent, TraceFlags::new(flags), true, state);
    // that of HTTP middleware, say: what it traces is not a part of the client's operation
    let ambient = Context::current().span().span_context().clone();
    if ambient.is_valid() {
        span.add_link(ambient);
    }
    // fails if the program's subscriber exports no spans
    let _not_exported = span.set_parent(Context::new().with_remote_span_context(remote));
}

/// Makes a span, which has not been entered yet, a child of another one for exporters, without keeping that open.
pub(crate) fn set_parent(span: &Span, parent: &Span) {
    // fails if the program's subscriber exports no spans
    let _not_exported = span.set_parent(parent.context());
}

/// The trace that a span is part of, if it is exported.
pub(crate) fn trace_id(span: &Span) -> Option<String> {
    let context = span.context();
    let context = context.span().span_context().clone();
    context.is_valid().then(|| context.trace_id().to_string())
}
