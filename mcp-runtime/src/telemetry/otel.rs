//! Metrics by the API of OpenTelemetry, so that the program's exporters get them, and the parent of a span that a client
//! names. Spans themselves get there as `tracing` spans, by the layer of `tracing-opentelemetry`.

use std::{fmt, sync::OnceLock, time::Duration};

use opentelemetry::{
    Context, KeyValue, global,
    metrics::Histogram,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::{BUCKETS, RequestEnd};

/// The instruments of one server.
#[derive(Default)]
pub(super) struct Instruments {
    /// Made with the first request, since the program may set its meter provider after it has built the server.
    made: OnceLock<Durations>,
}

struct Durations {
    operations: Histogram<f64>,
    sessions: Histogram<f64>,
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
            }
        })
    }

    pub(super) fn end(&self, request: &RequestEnd<'_>) {
        let mut attributes = Vec::with_capacity(7);
        attributes.push(KeyValue::new("mcp.method.name", request.method));
        attributes.push(KeyValue::new("mcp.protocol.version", request.revision));
        if let Some(transport) = request.transport {
            attributes.push(KeyValue::new("network.transport", transport));
        }
        if let Some(tool) = request.tool {
            attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
            attributes.push(KeyValue::new("gen_ai.tool.name", tool.to_owned()));
        }
        if let Some(prompt) = request.prompt {
            attributes.push(KeyValue::new("gen_ai.prompt.name", prompt.to_owned()));
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
