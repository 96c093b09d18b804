//! Spans in OpenTelemetry: the parent that a client names, and the trace that a span is part of. They get there as `tracing`
//! spans, by the layer of `tracing-opentelemetry`.

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

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
