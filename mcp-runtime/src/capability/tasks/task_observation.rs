//! Watches a task from its creation to its end, if someone wants to know: a span, and a line of the audit log.

use std::{net::IpAddr, sync::Arc, time::Instant};

use tracing::{Instrument as _, Span, field::Empty};

use super::{TaskPermit, TaskSummary};
use crate::{
    core::{
        arguments::BoxFuture,
        connection::{Principal, RequestContext},
        dispatch::{error_type, milliseconds, record_error, trace_of, wants_spans},
        reason::Reason,
        server::{Server, WeakServer},
    },
    gate::telemetry::TaskTotal,
};

/// A call that continues as a task, from then on to its end.
pub(super) struct TaskObservation {
    span: Span,
    server: WeakServer,
    /// Held until the end is recorded: a server that stops waits for it.
    permit: Arc<TaskPermit>,
    started: Instant,
    tool: Box<str>,
    caller: Option<Arc<Principal>>,
    address: Option<IpAddr>,
    trace: Option<String>,
}

impl TaskPermit {
    /// Watches the task, which has been created, if requests are watched.
    pub(super) fn observe(
        self: &Arc<Self>,
        server: &Server,
        request: &RequestContext,
        traceparent: Option<&str>,
        tool: &str,
    ) -> Option<TaskObservation> {
        if !server.counts_or_audits() && !wants_spans() {
            return None;
        }
        server.telemetry().begin_task();
        let span = make_task_span(tool, self.task.id_for_logs(), traceparent);
        let RequestContext { caller, address, .. } = request;
        Some(TaskObservation {
            trace: trace_of(&span, traceparent),
            span,
            server: server.downgrade(),
            permit: self.clone(),
            started: Instant::now(),
            tool: tool.into(),
            caller: caller.clone(),
            address: *address,
        })
    }
}

/// The span of a task. It outlives the request's, so that it is a child of it only for exporters: subscribers keep a span
/// open for as long as its children.
fn make_task_span(tool: &str, task: &str, traceparent: Option<&str>) -> Span {
    if !wants_spans() {
        return Span::none();
    }
    let request = Span::current();
    let span = tracing::info_span!(
        target: "mcp_runtime::request",
        parent: None,
        "mcp.server.task",
        "otel.kind" = "internal",
        "otel.name" = &*format!("task {tool}"),
        "otel.status_code" = Empty,
        "mcp.task.id" = task,
        "mcp.task.outcome" = Empty,
        "gen_ai.operation.name" = "execute_tool",
        "gen_ai.tool.name" = tool,
        "rpc.response.status_code" = Empty,
        "error.type" = Empty,
        "mcp.error.reason" = Empty,
        "trace_id" = traceparent.and_then(|trace| trace.split('-').nth(1)),
    );
    #[cfg(feature = "otel")]
    crate::gate::telemetry::set_parent(&span, &request);
    span.follows_from(request.id());
    span
}

impl TaskObservation {
    /// Runs the task in its span, and records how it ends.
    pub(super) fn watch(self, task: BoxFuture<()>) -> BoxFuture<()> {
        Box::pin(async move {
            task.instrument(self.span.clone()).await;
            self.end();
        })
    }

    fn end(&self) {
        let Self { span, permit, .. } = self;
        let TaskSummary { outcome, code, reason } = permit.task.summary();
        let duration = self.started.elapsed();
        span.record("mcp.task.outcome", outcome);
        let code_text = code.map(|code| code.to_string());
        let error = match outcome {
            "completed" => None,
            "cancelled" | "expired" | "lost" => Some(outcome.into()),
            _ => error_type(code, outcome, reason),
        };
        record_error(span, error.as_deref(), code_text.as_deref(), reason);
        let reason = reason.map(Reason::as_str);
        let Some(server) = self.server.upgrade() else { return };
        server.telemetry().end_task(&TaskTotal {
            tool: &self.tool,
            outcome,
            error: error.as_deref(),
            reason,
            duration,
        });
        let Some(log) = server.audit() else { return };
        log.write("task", &|line| {
            line.str("kind", "tool").str("item", &self.tool).str("task", permit.task.id_for_logs());
            line.str("outcome", outcome).opt_str("reason", reason);
            if let Some(code) = code {
                line.value("code", &code);
            }
            log.write_caller(line, self.caller.as_deref(), self.address);
            line.opt_str("trace", self.trace.as_deref());
            line.value("ms", &milliseconds(duration));
        });
    }
}
