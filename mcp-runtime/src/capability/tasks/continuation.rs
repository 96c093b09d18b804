//! A call that continues as a task: its request is answered with the task, and its function runs on in the background.

use std::{future::poll_fn, pin::pin, sync::Arc};

use super::{
    FinalReply, TaskEnd, TaskPermit, Tasks,
    methods::{TaskResult, declares_tasks, tasks_not_declared},
};
use crate::core::{
    arguments::{BoxFuture, HandlerResult, pending},
    blocking::{CallPermit, WithPermits, run_blocking},
    connection::principal_digest,
    context::{Context, Continuation, Suspension},
    dispatch::{PendingReply, Reply, Response, SuspendedCall, encode_result},
    error::Failure,
    gates::{Gates, Stage},
    invoke::for_current_call,
    jsonrpc::{Meta, ProtocolError},
    protocol::Revision,
    reason::Reason,
    server::{Assembly, Identity, WeakServer},
    spawn::spawn,
    tool::{TaskMode, ToolTask},
};

/// How calls of a tool become tasks. A tool that has this opens the capability on its server.
#[must_use]
pub const fn task(mode: TaskMode) -> ToolTask {
    ToolTask { mode, open: open_for_tool }
}

fn open_for_tool(
    assembly: &mut Assembly<'_>,
    mode: TaskMode,
    gates: Option<Arc<Gates>>,
) -> Arc<dyn Continuation> {
    Arc::new(TasksOfTool { tasks: assembly.open(), mode, gates })
}

/// Turns the call into a task, if it may become one.
pub async fn start_task(context: &Context) {
    context.start_task().await;
}

/// Runs a plain function on the blocking pool, as a task if the call may become one.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn blocking_task<R: Send + 'static>(
    context: Context,
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> HandlerResult<R> {
    pending(Box::new(async move {
        context.start_task().await;
        run_blocking(body).await
    }))
}

/// The tasks of one tool.
#[derive(Debug)]
struct TasksOfTool {
    tasks: Arc<Tasks>,
    mode: TaskMode,
    gates: Option<Arc<Gates>>,
}

impl Continuation for TasksOfTool {
    fn admit(&self, meta: &Meta<'_>, revision: Revision) -> Result<bool, ProtocolError> {
        if !revision.is_modern() {
            return Ok(false);
        }
        match (declares_tasks(meta), self.mode) {
            (false, TaskMode::Required) => Err(tasks_not_declared()),
            (declared, _) => Ok(declared),
        }
    }

    fn starts_at_once(&self) -> bool {
        matches!(self.mode, TaskMode::Capable | TaskMode::Required)
    }

    fn suspend(&self, context: &Context) {
        let gates = self.gates.clone().filter(|_| self.starts_at_once());
        context.suspend(ContinueAsTask { tasks: self.tasks.clone(), gates });
    }
}

/// The function of a tool continues as a task.
struct ContinueAsTask {
    tasks: Arc<Tasks>,
    /// Those that the call enters outside of its request.
    gates: Option<Arc<Gates>>,
}

impl Suspension for ContinueAsTask {
    fn ends_run(&self) -> bool {
        false
    }

    fn respond(self: Box<Self>, mut call: Box<SuspendedCall>) -> Response {
        let Some(server) = call.server() else { return Reply::server_dropped().into() };
        // dropping the server ends its tasks
        call.leave_request();
        let Self { tasks, gates } = *self;
        let (context, threads) = (call.context().clone(), call.threads());
        let call_context = context.clone();
        let reply: BoxFuture<Reply> = Box::pin(async move {
            let permit = match tasks.create(&context).await {
                Ok(permit) => permit,
                Err(error) => return error.into(),
            };
            let created = TaskResult::Created(permit.task.clone());
            let observation = permit.observe(&server, &context, call.binding().name);
            let task: BoxFuture<()> = Box::pin(run_task(server.downgrade(), permit, gates, call));
            spawn(for_current_call(match observation {
                None => task,
                Some(observation) => observation.watch(task),
            }));
            created.into()
        });
        Response::Pending(PendingReply::new(&call_context, WithPermits::with_threads(reply, threads)))
    }
}

impl Tasks {
    /// Creates the task of a call, which clients can find from now on.
    async fn create(self: &Arc<Self>, context: &Context) -> Result<Arc<TaskPermit>, ProtocolError> {
        let permit = self.start(principal_digest(context.caller()), context.inner().request.owner())?;
        permit.save().await?;
        context.client_requests().become_task(permit.task.clone());
        Ok(Arc::new(permit))
    }
}

/// Runs a task's function to its end.
async fn run_task(
    server: WeakServer,
    permit: Arc<TaskPermit>,
    gates: Option<Arc<Gates>>,
    mut call: Box<SuspendedCall>,
) {
    let task = permit.task.clone();
    let context = call.context().clone();
    // a blocking thread of the function holds the permit until it ends
    call.hold_permit(CallPermit::Outside(permit.clone()));
    let function = async {
        let finished = {
            let mut body = pin!(async {
                if let Some(gates) = gates {
                    let caller = call.context().inner().request.owner();
                    // queues refuse no one
                    let entered = gates.enter(Stage::Outside, &caller).get().await.unwrap_or_default();
                    entered.into_iter().for_each(|permit| call.hold_permit(permit));
                }
                call.finish().await
            });
            let polled = poll_fn(|cx| {
                let polled = body.as_mut().poll(cx);
                task.drop_closed_requests();
                polled
            });
            tokio::select! {
                reply = polled => Some(reply),
                () = task.wait_for_stop() => None,
            }
        };
        let end = match (finished, server.upgrade()) {
            (Some(reply), Some(server)) => {
                let (revision, identity) = (context.revision(), server.identity().clone());
                TaskEnd::Replied(Arc::new(ReplyOfCall { reply, revision, identity }))
            }
            _ => {
                context.inner().cancel.cancel();
                TaskEnd::Cancelled
            }
        };
        task.end(end);
    };
    tokio::join!(function, permit.save_changes());
}

/// The reply that the call of a task would have got.
struct ReplyOfCall {
    reply: Reply,
    revision: Revision,
    identity: Arc<Identity>,
}

impl FinalReply for ReplyOfCall {
    fn error(&self) -> Option<&ProtocolError> {
        self.reply.outcome.as_ref().err()
    }

    fn is_tool_error(&self) -> bool {
        self.reply.outcome.as_ref().is_ok_and(|body| body.is_tool_error())
    }

    fn reason(&self) -> Option<Reason> {
        self.reply.reason
    }

    fn write_result(&self, out: &mut Vec<u8>) {
        if let Ok(body) = &self.reply.outcome {
            encode_result(out, body, self.revision, &self.identity);
        }
    }
}

impl Context {
    /// Turns the call into a task: the client gets its reply now, and the function continues in the background. Returns
    /// whether the call is a task from here on.
    ///
    /// For tools with `task = manual`, which begin in the call itself: they may send client requests first and start
    /// once they know enough. Tools with `task` start automatically before their first line. It returns `false` without
    /// any effect if the client does not support tasks (all clients before 2026-07-28, and those that do not declare the
    /// extension), if the tool has no `task` option, or outside of the function that the client called; the function
    /// then continues within the call.
    ///
    /// From here on client requests are part of the task until the client responds, and progress is the task's status
    /// message.
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// Moves everything to another region.
    /// #[mcp_tool(task = manual)]
    /// async fn migrate(ctx: &Context) -> Result<String, ToolError> {
    ///     let region: String = ctx.elicit("region", "Where to?").await?;
    ///     ctx.start_task().await;
    ///     ctx.progress(1.0).message("copying").send();
    ///     Ok(format!("everything is in {region}"))
    /// }
    /// ```
    pub async fn start_task(&self) -> bool {
        self.leave_request().await
    }
}
