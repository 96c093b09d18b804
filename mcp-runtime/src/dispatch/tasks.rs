//! Calls that continue as tasks, and `tasks/get`, `tasks/update` and `tasks/cancel`.
//!
//! See the [Tasks extension](https://github.com/modelcontextprotocol/ext-tasks).

use std::{borrow::Cow, collections::HashMap, pin::pin, sync::Arc};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    Request,
    input_required::missing_features,
    item_call::ItemCall,
    request::required_text,
    response::{PendingReply, Reply, Response, ResultBody, encode_result},
};
use crate::{
    arguments::BoxFuture,
    blocking::{CallPermit, WithPermits},
    connection::principal_digest,
    context::Context,
    invoke::{InvokeOutcome, MissingFeatures, Running, for_current_call},
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

impl Server {
    /// Continues a tool's function as a task; the reply names the task.
    pub(super) fn continue_as_task<C>(
        &self,
        call: C,
        tool: &str,
        revision: Revision,
        running: Running<C::Output>,
    ) -> PendingReply
    where
        C: ItemCall + 'static,
    {
        let (server, context) = (self.clone(), running.context().clone());
        let cancel = context.clone();
        let (threads, tool) = (running.threads(), Box::from(tool));
        let reply: BoxFuture<Reply> = Box::pin(async move {
            match server.create_task(&context).await {
                Ok(permit) => {
                    let created = ResultBody::TaskCreated(permit.task.clone());
                    // weak: dropping the server ends its tasks
                    let observation = server.observe_task(&context, tool, &permit);
                    let task: BoxFuture<()> =
                        Box::pin(run_task(server.downgrade(), permit, call, revision, running));
                    spawn(for_current_call(match observation {
                        None => task,
                        Some(observation) => observation.watch(task),
                    }));
                    created.into()
                }
                Err(error) => error.into(),
            }
        });
        PendingReply::new(&cancel, WithPermits::with_threads(reply, threads))
    }

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
async fn run_task<C>(
    server: WeakServer,
    permit: Arc<TaskPermit>,
    call: C,
    revision: Revision,
    mut running: Running<C::Output>,
) where
    C: ItemCall + 'static,
{
    let task = permit.task.clone();
    let context = running.context().clone();
    // a blocking thread of the function holds the permit until it ends
    running.hold_permits([CallPermit::Task(permit.clone())]);
    let function = async {
        let invoked = {
            let mut body = pin!(async move {
                if let Some(semaphore) = running.context().task_semaphore() {
                    // the semaphore is never closed
                    running.hold_permits(semaphore.acquire_owned().await.ok().map(CallPermit::Concurrency));
                }
                running.finish::<MissingFeatures>().await
            });
            let polled = std::future::poll_fn(|cx| {
                let polled = body.as_mut().poll(cx);
                task.drop_closed_requests();
                polled
            });
            tokio::select! {
                invoked = polled => Some(invoked),
                () = task.wait_for_stop() => None,
            }
        };
        let end = match (invoked, server.upgrade()) {
            (Some(invoked), Some(server)) => {
                let reply = match invoked {
                    InvokeOutcome::Returned(result) => call.respond(&server, revision, result).reply().await,
                    InvokeOutcome::Interrupted(MissingFeatures(features), _) => {
                        missing_features(&features, &context.client_capabilities()).into()
                    }
                };
                let identity = server.identity().clone();
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
