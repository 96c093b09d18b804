//! Watches a task from its creation to its end, if someone wants to know: its span, and what
//! [observers](crate::core::observer) are told.

use std::{net::IpAddr, sync::Arc, time::Instant};

use tracing::{Instrument as _, Span, field::Empty};

use super::{TaskPermit, running_task::TaskSummary};
use crate::core::{
    arguments::BoxFuture,
    connection::{Principal, RequestContext},
    dispatch::{error_type, record_error, trace_of, wants_spans},
    observer::EndedTask,
    server::{Server, WeakServer},
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
        if !server.is_observed() {
            return None;
        }
        server.observers().iter().for_each(|observer| observer.task_began());
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
    crate::observers::otel::set_parent(&span, &request);
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
        span.record("mcp.task.outcome", outcome.as_str());
        let error = error_type(code, outcome, reason);
        let code = code.map(|code| code.to_string());
        record_error(span, error.as_deref(), code.as_deref(), reason);
        let Some(server) = self.server.upgrade() else { return };
        let end = EndedTask {
            tool: &self.tool,
            id: permit.task.id_for_logs(),
            outcome,
            error: error.as_deref(),
            reason,
            code: code.as_deref(),
            duration: self.started.elapsed(),
            caller: self.caller.as_deref(),
            address: self.address,
            trace: self.trace.as_deref(),
        };
        server.observers().iter().for_each(|observer| observer.task_ended(&end));
    }
}
