//! A call that continues as a task: its request is answered with the task, and its function runs on in the background.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, atomic::Ordering},
};

use super::{
    RunningTask, StoredCall, StoredTask, TaskPermit, Tasks,
    capability::{TaskResult, declares_tasks, tasks_not_declared},
    record::{RetriedCall, StoredEnd, raw_json},
    running_task::TaskSummary,
};
use crate::core::{
    arguments::{BoxFuture, HandlerResult, pending},
    blocking::{CallPermit, run_blocking},
    client_error::for_current_call,
    connection::{RequestContext, StoredPrincipal, principal_digest},
    context::{
        ClientRequests, Context, Continuation, Delivery, RequestState, Retry, Suspension, TaskHandle,
        is_traceparent,
    },
    dispatch::{PendingReply, Reply, Request, Response, SuspendedCall, encode_result},
    error::Failure,
    gates::{Gates, Stage},
    jsonrpc::{Meta, Params, ProtocolError},
    observer::EndOutcome,
    protocol::Revision,
    server::{Assembly, Entry as _, Identity, ItemSource, RegisteredItem, Server, WeakServer},
    spawn::spawn,
    store::{Versioned, log_store_error},
    tool::{TaskMode, ToolEntry},
};

/// The names of the types that its functions take from requests, where middleware puts them.
fn request_types(item: &RegisteredItem) -> Vec<&'static str> {
    let ItemSource::Annotated(linked) = &item.source else { return Vec::new() };
    let named = linked.0.named().into_iter().flat_map(|(_, takes)| takes);
    let injects = linked.descriptor().injects.iter().copied().chain(named);
    injects
        .filter(|inject| {
            item.requested.contains(&inject.target()) && !inject.is_provided_by_state(&item.state)
        })
        .map(|inject| inject.name())
        .collect()
}

/// Why another replica cannot run the function of a tool again.
fn restart_errors(item: &RegisteredItem, tool: &ToolEntry) -> Vec<String> {
    let mut errors = Vec::new();
    match tool.spec.task {
        None => errors.push("it has `.restart_task()`, and its calls do not become tasks\nadd `.task(TaskMode::Capable)`".to_owned()),
        Some(TaskMode::Manual) => errors.push(
            "its task cannot be restarted, since the function begins in the call, which is over then\nuse `TaskMode::Capable`".to_owned(),
        ),
        Some(_) => {}
    }
    if tool.spec.hints.idempotent != Some(true) {
        let text = "its task may be restarted, so that the function runs twice, and it is not `idempotent`\nadd that hint if a second run changes nothing more, or remove `restart`";
        errors.push(text.to_owned());
    }
    for ty in request_types(item) {
        errors.push(format!(
            "its task may be restarted, and it takes `&{ty}`, which middleware puts into requests and a restart does not have\n\
             remove `restart`, or take what the function needs from `&Principal`, state or an argument"
        ));
    }
    errors
}

/// How the calls of a tool become tasks, if they do.
pub(crate) fn open_for_tool(
    assembly: &mut Assembly<'_>,
    item: &RegisteredItem,
    tool: &ToolEntry,
) -> Option<Arc<dyn Continuation>> {
    let restarts = tool.spec.restarts_task;
    if restarts {
        let errors = restart_errors(item, tool).into_iter();
        assembly.errors.extend(errors.map(|text| tool.spec.build_error(text)));
    }
    let mode = tool.spec.task?;
    let gates = tool.spec.item.gates.clone();
    let tasks = assembly.open(Tasks::open);
    tasks.may_restart.fetch_or(restarts, Ordering::Relaxed);
    Some(Arc::new(TasksOfTool { tasks, mode, restarts, gates }))
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
struct TasksOfTool {
    tasks: Arc<Tasks>,
    mode: TaskMode,
    restarts: bool,
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
        let continues = ContinueAsTask { tasks: self.tasks.clone(), gates, restarts: self.restarts };
        context.suspend(Suspension { ends_run: false, respond: Box::new(|call| continues.respond(call)) });
    }

    fn prepare(self: Arc<Self>, context: &Context) {
        context.allow_continuation(self);
    }
}

/// A call that was a task of another process.
struct ResumedTask(Arc<RunningTask>);

impl Continuation for ResumedTask {
    fn admit(&self, _: &Meta<'_>, _: Revision) -> Result<bool, ProtocolError> {
        Ok(true)
    }

    fn starts_at_once(&self) -> bool {
        true
    }

    /// It has left its request before.
    fn suspend(&self, _: &Context) {}

    fn prepare(self: Arc<Self>, context: &Context) {
        context.client_requests().become_task(self.0.clone());
    }

    fn is_resumed(&self) -> bool {
        true
    }
}

/// The function of a tool continues as a task.
struct ContinueAsTask {
    tasks: Arc<Tasks>,
    /// The gates that the call enters outside of its request.
    gates: Option<Arc<Gates>>,
    /// Whether another replica may run the function again.
    restarts: bool,
}

impl ContinueAsTask {
    /// Answers the request of a call with its task.
    fn respond(self, mut call: Box<SuspendedCall>) -> Response {
        let Some(server) = call.server() else { return Reply::server_dropped().into() };
        // dropping the server ends its tasks
        call.leave_request();
        let Self { tasks, gates, restarts } = self;
        tasks.begin(&server);
        let stored = (restarts && tasks.store.is_shared()).then(|| Box::new(stored_call(&call)));
        let context = call.context().clone();
        let call_context = context.clone();
        let reply: BoxFuture<Reply> = Box::pin(async move {
            let (permit, copy) = match tasks.create(&context, stored).await {
                Ok(created) => created,
                Err(reply) => return reply,
            };
            let created = TaskResult::created(permit.task.id.clone(), copy.record.clone());
            let request = &context.inner().request;
            let traceparent = context.traceparent();
            let observation = permit.observe(&server, request, traceparent.as_deref(), call.binding().name);
            let task: BoxFuture<()> = Box::pin(run_task(server.downgrade(), permit, copy, gates, call));
            spawn(for_current_call(match observation {
                None => task,
                Some(observation) => observation.watch(task),
            }));
            created.into()
        });
        Response::Pending(PendingReply::new(call_context, reply))
    }
}

impl ClientRequests {
    /// Delivers all further requests through a task.
    pub(crate) fn become_task(&self, task: Arc<dyn TaskHandle>) {
        self.lock().delivery = Delivery::Task(task);
    }
}

impl Context {
    /// Allows the call to continue outside of its request.
    pub(crate) fn allow_continuation(&self, continuation: Arc<dyn Continuation>) {
        // set once: a context belongs to one call
        let _result = self.call().continuation.set(continuation);
    }
}

impl SuspendedCall {
    /// Lets the server be dropped while the function goes on.
    pub(crate) fn leave_request(&mut self) {
        self.kept_alive = None;
    }

    /// Holds permits as long as the function runs, on a thread or not.
    pub(crate) fn hold(&mut self, permits: Vec<CallPermit>) {
        self.running.hold(permits);
    }
}

impl Tasks {
    /// Creates the task of a call, which clients can find from now on; with `call`, another replica may run it again.
    async fn create(
        self: &Arc<Self>,
        context: &Context,
        call: Option<Box<StoredCall>>,
    ) -> Result<(Arc<TaskPermit>, Versioned<StoredTask>), Reply> {
        let permit = self.start(principal_digest(context.caller()), &context.inner().request.owner())?;
        if let Some(mut call) = call {
            // with what earlier round trips of the call have brought
            let state = context.client_requests().lock();
            let retry = state.retry.as_ref();
            let earlier = retry.map(|retry| retry.carry_over()).unwrap_or_default();
            call.saved = earlier.saved.into_iter().chain(state.saved.clone()).collect();
            // nothing identifies responses without a state, so that they are never used
            call.consumed = state.consumed || retry.is_some_and(|retry| !retry.is_identified());
            let responses = earlier.responses.into_iter().chain(state.responses.clone()).collect();
            permit.task.allow_restart(call, responses);
        }
        let created = self.create_record(&permit.task).await;
        let copy = created.map_err(|error| {
            log_store_error(&error, "a task cannot be saved");
            Reply::unavailable("the task cannot be saved\ntry again later")
        })?;
        context.client_requests().become_task(permit.task.clone());
        Ok((Arc::new(permit), copy))
    }
}

/// The state that another process needs to run a call again.
fn stored_call(call: &SuspendedCall) -> StoredCall {
    let (binding, context) = (call.binding(), call.context().inner());
    let request = &context.request;
    let retried = call.context().client_requests().lock().retry.as_ref().and_then(|retry| {
        let RequestState { call_id, started, expires, .. } = retry.state.as_ref()?;
        Some(RetriedCall { id: call_id.clone(), started: *started, expires: *expires })
    });
    StoredCall {
        tool: binding.name.to_owned(),
        arguments: binding.arguments.to_owned(),
        meta: context.meta.as_deref().map(str::to_owned),
        caller: request.caller.as_deref().map(StoredPrincipal::new),
        has_rules: request.access_rules.is_some(),
        address: request.address,
        saved: std::collections::BTreeMap::new(),
        keys: Vec::new(),
        retried,
        consumed: false,
        losses: 0,
    }
}

/// Runs a task's function to its end.
async fn run_task(
    server: WeakServer,
    permit: Arc<TaskPermit>,
    copy: Versioned<StoredTask>,
    gates: Option<Arc<Gates>>,
    mut call: Box<SuspendedCall>,
) {
    let context = call.context().clone();
    // a blocking thread of the function holds the permit until it ends
    call.hold(vec![CallPermit::Outside(permit.clone())]);
    let function = async {
        let body = async {
            if let Some(gates) = gates {
                let caller = call.context().inner().request.owner();
                // queues refuse no one
                call.hold(gates.enter(Stage::Outside, &caller).get().await.unwrap_or_default());
            }
            call.finish().await
        };
        if !run_function(server, &permit.task, context.revision(), body).await {
            context.inner().cancel.cancel();
        }
    };
    tokio::join!(function, permit.keep_record(copy));
}

/// Runs the function of a task until it has ended or is stopped; whether it has ended.
async fn run_function(
    server: WeakServer,
    task: &RunningTask,
    revision: Revision,
    body: impl Future<Output = Reply> + Send,
) -> bool {
    let finished = {
        let mut body = pin!(body);
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
    let ended = finished.zip(server.upgrade());
    let has_ended = ended.is_some();
    match ended {
        Some((reply, server)) => end_with(task, &reply, revision, server.identity()),
        None => task.cancel(),
    }
    has_ended
}

/// Ends a task with the reply that its call would have got.
fn end_with(task: &RunningTask, reply: &Reply, revision: Revision, identity: &Identity) {
    match &reply.outcome {
        Err(error) => task.end(TaskSummary::failed(error.code, reply.reason), |record| record.fail(error)),
        Ok(body) => {
            let outcome = if body.is_tool_error() { EndOutcome::ToolError } else { EndOutcome::Completed };
            let mut json = Vec::with_capacity(256);
            encode_result(&mut json, body, revision, identity);
            // the JSON writer produces UTF-8 only
            let result = StoredEnd::Result(raw_json(String::from_utf8(json).unwrap_or_default()));
            task.end(TaskSummary::new(outcome, reply.reason), |record| record.finish(result, None));
        }
    }
}

/// Runs the function of a task again, whose process has stopped.
pub(super) fn run_again(
    server: &Server,
    permit: Arc<TaskPermit>,
    entry: Arc<ToolEntry>,
    copy: Versioned<StoredTask>,
) -> BoxFuture<()> {
    let Some(call) = copy.record.restart.as_deref().cloned() else { return Box::pin(std::future::ready(())) };
    let meta = call.meta.as_deref().unwrap_or("{}");
    let params = format!("{{\"_meta\":{meta}}}");
    let request = RequestContext {
        caller: call.caller.as_ref().map(|caller| Arc::new(caller.principal())),
        access_rules: call.has_rules.then(|| server.access_rules().clone()),
        address: call.address,
        rate_taken: true,
        ..RequestContext::default()
    };
    let traceparent = serde_json::from_str::<Params<'_>>(&params).ok().and_then(|params| {
        let trace: String = serde_json::from_str(params.meta.other("traceparent")?.get()).ok()?;
        is_traceparent(&trace).then_some(trace)
    });
    let observation = permit.observe(server, &request, traceparent.as_deref(), entry.name());
    let (weak, owner) = (server.downgrade(), request.owner());
    let task: BoxFuture<()> = Box::pin(async move {
        let function = async {
            let body = async {
                let entered = match entry.spec.item.gates.clone() {
                    // queues refuse no one
                    Some(gates) => gates.enter(Stage::Outside, &owner).get().await.unwrap_or_default(),
                    None => Vec::new(),
                };
                let continuation = Arc::new(ResumedTask(permit.task.clone()));
                let retry = call.retried.map(|RetriedCall { id, started, expires }| {
                    let state = RequestState { call_id: id, started, expires, ..RequestState::default() };
                    Arc::new(Retry { state: Some(state), ..Retry::default() })
                });
                let response = {
                    let Some(server) = weak.upgrade() else { return Reply::server_dropped() };
                    let Ok(params) = serde_json::from_str(&params) else {
                        return ProtocolError::internal("the request cannot be read any more").into();
                    };
                    server.resume_tool(
                        Request::resumed(&params, &request),
                        entry,
                        call.arguments,
                        continuation,
                        retry,
                    )
                };
                match response {
                    Response::Ready(reply) => reply,
                    Response::Pending(mut pending) => {
                        pending.hold(vec![CallPermit::Outside(permit.clone())]);
                        pending.hold(entered);
                        pending.await
                    }
                }
            };
            // dropped before its end, the function is cancelled
            run_function(weak.clone(), &permit.task, Revision::LATEST, body).await
        };
        tokio::join!(function, permit.keep_record(copy));
    });
    match observation {
        None => task,
        Some(observation) => observation.watch(task),
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
