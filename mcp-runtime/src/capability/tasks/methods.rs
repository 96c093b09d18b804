//! `tasks/get`, `tasks/update` and `tasks/cancel`, what the server declares of tasks, and subscriptions to them.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{KnownTask, RunningTask, TaskEnd, TaskOptions, TaskRecord, TaskStore, Tasks};
use crate::core::{
    arguments::BoxFuture,
    changes::Filter,
    connection::principal_digest,
    dispatch::{PendingReply, Reply, Request, Response, ResultBody, WriteResult, required_text},
    jsonrpc::{Meta, Object, ProtocolError},
    protocol::{MISSING_CLIENT_CAPABILITY, Revision, TASKS_EXTENSION},
    server::{Assembly, Capability, Declared, ItemDefaults, Lasting, Registry, Server},
};

impl Lasting for Tasks {
    fn open(assembly: &mut Assembly<'_>) -> Arc<Self> {
        let ItemDefaults { options, hub, .. } = assembly.rules;
        let own = options.of_capabilities.get::<TaskOptions>().cloned().unwrap_or_default();
        let store = options.stores.of_capabilities.get::<Arc<dyn TaskStore>>().cloned();
        Self::new(own, store, options.limits.share_percent, hub.clone())
    }
}

impl Capability for Tasks {
    fn methods(&self) -> &'static [&'static str] {
        &["tasks/get", "tasks/update", "tasks/cancel"]
    }

    fn declare(&self, declared: &mut Declared) {
        if declared.revision.is_modern() {
            declared.extension(TASKS_EXTENSION, "{}");
        }
    }

    fn answer(self: Arc<Self>, _: &Server, _: &Registry, request: Request<'_>) -> Result<Response, Reply> {
        let id = task_id(&request)?;
        let action = match request.method {
            "tasks/update" => TaskAction::update(&request)?,
            "tasks/cancel" => TaskAction::Cancel,
            _ => TaskAction::Get,
        };
        Ok(self.act(&request, id, action))
    }

    fn check_subscriber(&self, request: &Request<'_>) -> Result<(), Reply> {
        if declares_tasks(&request.params.meta) { Ok(()) } else { Err(tasks_not_declared().into()) }
    }

    fn subscribe(&self, id: &str, owner: Option<&str>, filter: &Filter) -> bool {
        self.running(id, owner).is_some_and(|task| task.subscribe(filter))
    }

    fn wait_until_idle(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(async move { Self::wait_until_idle(&self).await })
    }

    fn stop(&self) {
        Self::stop(self);
    }
}

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
pub(super) fn tasks_not_declared() -> ProtocolError {
    let text = format!("the client does not declare `{TASKS_EXTENSION}`, which this request needs");
    let data = json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
    ProtocolError::new(MISSING_CLIENT_CAPABILITY, text).with_data(data)
}

/// What a request does with its task.
enum TaskAction {
    Get,
    /// With the raw JSON of each response.
    Update(Vec<(String, Box<str>)>),
    Cancel,
}

impl Tasks {
    fn act(self: Arc<Self>, request: &Request<'_>, id: String, action: TaskAction) -> Response {
        let owner = principal_digest(request.context.caller.as_deref());
        Response::Pending(PendingReply::without_call(async move {
            let task = self.find(&id, owner.as_deref()).await;
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
        return Err(tasks_not_declared().into());
    }
    Ok(required_text(request.params.task_id, "taskId")?.into_owned())
}

impl TaskAction {
    fn update(request: &Request<'_>) -> Result<Self, ProtocolError> {
        let responses =
            request.params.input_responses.map(RawValue::get).filter(|json| json.starts_with('{'));
        let responses: Option<HashMap<Cow<'_, str>, &RawValue>> =
            responses.and_then(|json| serde_json::from_str(json).ok());
        let responses = responses
            .ok_or_else(|| ProtocolError::invalid_params("`inputResponses` is missing, or not an object"))?;
        Ok(Self::Update(
            responses.into_iter().map(|(key, value)| (key.into_owned(), value.get().into())).collect(),
        ))
    }

    fn apply(self, task: Option<KnownTask>) -> Result<Reply, ProtocolError> {
        let Some(task) = task else {
            return Err(ProtocolError::invalid_params(
                "unknown task: `taskId` is wrong, or the task has expired",
            ));
        };
        match (self, task) {
            (Self::Get, KnownTask::Running(task)) => {
                task.extend();
                return Ok(TaskResult::Running(task).into());
            }
            (Self::Get, KnownTask::Stored(record)) => {
                return Ok(TaskResult::Stored(record).into());
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

/// A result that is a task.
#[derive(Debug)]
pub(super) enum TaskResult {
    /// The call continues as this task.
    Created(Arc<RunningTask>),
    /// A task that runs in this process.
    Running(Arc<RunningTask>),
    /// A task that has ended, or runs in another process.
    Stored(TaskRecord),
}

impl From<TaskResult> for Reply {
    fn from(result: TaskResult) -> Self {
        ResultBody::Other(Box::new(result)).into()
    }
}

impl WriteResult for TaskResult {
    fn result_type(&self) -> &'static str {
        match self {
            Self::Created(_) => "task",
            Self::Running(_) | Self::Stored(_) => "complete",
        }
    }

    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        match self {
            Self::Created(task) => task.write_summary(object),
            Self::Running(task) => task.write_full(object),
            Self::Stored(record) => object.raw_members(object_members(record.json())),
        }
    }

    fn started_task(&self) -> Option<&str> {
        match self {
            Self::Created(task) => Some(task.id_for_logs()),
            Self::Running(_) | Self::Stored(_) => None,
        }
    }
}

/// The members of an object, both as raw JSON.
fn object_members(object: &str) -> &[u8] {
    let inner = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.map(str::trim).unwrap_or_default().as_bytes()
}
