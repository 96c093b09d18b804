//! Calls that continue as tasks, and `tasks/get`, `tasks/update` and `tasks/cancel`.
//!
//! See the [Tasks extension](https://github.com/modelcontextprotocol/ext-tasks).

use std::{borrow::Cow, collections::HashMap, future::poll_fn, pin::pin, sync::Arc};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    Request,
    item_call::SuspendedCall,
    request::required_text,
    response::{PendingReply, Reply, Response, ResultBody, encode_result},
};
use crate::{
    arguments::BoxFuture,
    blocking::{CallPermit, WithPermits},
    connection::principal_digest,
    context::{Context, Suspension},
    invoke::for_current_call,
    jsonrpc::{Meta, ProtocolError},
    protocol::{MISSING_CLIENT_CAPABILITY, Revision, TASKS_EXTENSION},
    server::{Identity, Server, WeakServer},
    spawn::spawn,
    task::{FinalReply, KnownTask, TaskEnd, TaskPermit},
};

/// Whether the client declares the extension, which it does in each request.
pub(super) fn declares_tasks(meta: &Meta<'_>) -> bool {
    #[derive(Deserialize)]
    struct DeclaredExtensions<'a> {
        #[serde(borrow, default)]
        extensions: HashMap<Cow<'a, str>, &'a RawValue>,
    }
    let declared =
        meta.capabilities.and_then(|raw| serde_json::from_str::<DeclaredExtensions<'_>>(raw.get()).ok());
    let settings = declared.and_then(|declared| declared.extensions.get(TASKS_EXTENSION).copied());
    settings.is_some_and(|settings| settings.get().starts_with('{'))
}

/// `-32021`: the request needs the extension.
pub(super) fn tasks_not_declared() -> Reply {
    let text = format!("the client does not declare `{TASKS_EXTENSION}`, which this request needs");
    let data = json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
    Reply::bad_request(ProtocolError::new(MISSING_CLIENT_CAPABILITY, text).with_data(data))
}

/// The outcome of a task: the reply that its call would have got.
struct TaskOutcome {
    reply: Reply,
    revision: Revision,
    identity: Arc<Identity>,
}

impl FinalReply for TaskOutcome {
    fn error(&self) -> Option<&ProtocolError> {
        self.reply.outcome.as_ref().err()
    }

    fn is_tool_error(&self) -> bool {
        matches!(&self.reply.outcome, Ok(ResultBody::Tool { result, .. }) if result.is_error())
    }

    fn write_result(&self, out: &mut Vec<u8>) {
        if let Ok(body) = &self.reply.outcome {
            encode_result(out, body, self.revision, &self.identity);
        }
    }
}

/// The function of a tool continues as a task; its request is answered with the task.
pub(crate) struct ContinueAsTask;

impl Suspension for ContinueAsTask {
    fn ends_run(&self) -> bool {
        false
    }

    fn respond(self: Box<Self>, mut call: Box<dyn SuspendedCall>) -> Response {
        let Some(server) = call.server() else { return Reply::server_dropped().into() };
        // dropping the server ends its tasks
        call.leave_request();
        let (context, threads) = (call.context().clone(), call.threads());
        let call_context = context.clone();
        let reply: BoxFuture<Reply> = Box::pin(async move {
            let permit = match server.create_task(&context).await {
                Ok(permit) => permit,
                Err(error) => return error.into(),
            };
            let created = ResultBody::TaskCreated(permit.task.clone());
            let observation = server.observe_task(&context, call.binding().name.into(), &permit);
            let task: BoxFuture<()> = Box::pin(run_task(server.downgrade(), permit, call));
            spawn(for_current_call(match observation {
                None => task,
                Some(observation) => observation.watch(task),
            }));
            created.into()
        });
        Response::Pending(PendingReply::new(&call_context, WithPermits::with_threads(reply, threads)))
    }
}

impl Server {
    /// Creates a task, which clients can find from now on.
    async fn create_task(&self, context: &Context) -> Result<Arc<TaskPermit>, ProtocolError> {
        let permit =
            self.tasks().start(principal_digest(context.caller()), context.inner().request.owner())?;
        permit.save().await?;
        context.client_requests().become_task(permit.task.clone());
        Ok(Arc::new(permit))
    }
}

/// Runs a task's function to its end.
async fn run_task(server: WeakServer, permit: Arc<TaskPermit>, mut call: Box<dyn SuspendedCall>) {
    let task = permit.task.clone();
    let context = call.context().clone();
    // a blocking thread of the function holds the permit until it ends
    call.hold_permit(CallPermit::Task(permit.clone()));
    let function = async {
        let finished = {
            let mut body = pin!(async {
                if let Some(semaphore) = context.task_semaphore()
                    // the semaphore is never closed
                    && let Ok(permit) = semaphore.acquire_owned().await
                {
                    call.hold_permit(CallPermit::Concurrency(permit));
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
                TaskEnd::Replied(Arc::new(TaskOutcome { reply, revision, identity }))
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

/// What a request does with its task.
enum TaskAction {
    Get,
    /// With the raw JSON of each response.
    Update(Vec<(String, Box<str>)>),
    Cancel,
}

impl Server {
    pub(super) fn get_task(&self, request: Request<'_>) -> Result<Response, Reply> {
        let id = task_id(&request)?;
        Ok(self.act_on_task(&request, id, TaskAction::Get))
    }

    pub(super) fn update_task(&self, request: Request<'_>) -> Result<Response, Reply> {
        let id = task_id(&request)?;
        let responses =
            request.params.input_responses.map(RawValue::get).filter(|json| json.starts_with('{'));
        let responses: Option<HashMap<Cow<'_, str>, &RawValue>> =
            responses.and_then(|json| serde_json::from_str(json).ok());
        let responses = responses
            .ok_or_else(|| ProtocolError::invalid_params("`inputResponses` is missing, or not an object"))?;
        let responses =
            responses.into_iter().map(|(key, value)| (key.into_owned(), value.get().into())).collect();
        Ok(self.act_on_task(&request, id, TaskAction::Update(responses)))
    }

    pub(super) fn cancel_task(&self, request: Request<'_>) -> Result<Response, Reply> {
        let id = task_id(&request)?;
        Ok(self.act_on_task(&request, id, TaskAction::Cancel))
    }

    fn act_on_task(&self, request: &Request<'_>, id: String, action: TaskAction) -> Response {
        let server = self.clone();
        let owner = principal_digest(request.context.caller.as_deref());
        Response::Pending(PendingReply::without_call(async move {
            let task = server.tasks().find(&id, owner.as_deref()).await;
            task.and_then(|task| action.apply(task)).unwrap_or_else(Into::into)
        }))
    }
}

/// The id of the task that a request names.
///
/// # Errors
/// The client does not declare the extension, or the id is missing.
fn task_id(request: &Request<'_>) -> Result<String, Reply> {
    if !declares_tasks(&request.params.meta) {
        return Err(tasks_not_declared());
    }
    Ok(required_text(request.params.task_id, "taskId")?.into_owned())
}

impl TaskAction {
    fn apply(self, task: Option<KnownTask>) -> Result<Reply, ProtocolError> {
        let Some(task) = task else {
            return Err(ProtocolError::invalid_params(
                "unknown task: `taskId` is wrong, or the task has expired",
            ));
        };
        match (self, task) {
            (Self::Get, KnownTask::Running(task)) => {
                task.extend();
                return Ok(ResultBody::Task(task).into());
            }
            (Self::Get, KnownTask::Stored(record)) => {
                return Ok(ResultBody::StoredTask(Box::new(record)).into());
            }
            (Self::Update(responses), KnownTask::Running(task)) => {
                task.extend();
                task.deliver_responses(responses);
            }
            (Self::Cancel, KnownTask::Running(task)) => task.stop(TaskEnd::Cancelled),
            (Self::Update(_) | Self::Cancel, KnownTask::Stored(record)) if record.is_running() => {
                return Err(ProtocolError::internal(
                    "the task runs in another process\nroute requests by `Mcp-Name`, which repeats `taskId`",
                ));
            }
            // the task has ended: a late response or cancellation has no effect
            (Self::Update(_) | Self::Cancel, KnownTask::Stored(_)) => {}
        }
        Ok(ResultBody::Empty.into())
    }
}
