//! `tasks/get`, `tasks/update` and `tasks/cancel`, what the server declares of tasks, and subscriptions to them.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    KnownTask, Replicas, RunningTask, StoredTask, TaskEnd, TaskOptions, TaskRecord, Tasks,
    replica::unknown_task,
};
use crate::core::{
    arguments::BoxFuture,
    changes::Filter,
    connection::principal_digest,
    dispatch::{PendingReply, Reply, Request, Response, ResultBody, WriteResult, required_text},
    item::BuildError,
    jsonrpc::{Meta, Object, ProtocolError, null_is_absent},
    protocol::{MISSING_CLIENT_CAPABILITY, Revision, TASKS_EXTENSION},
    server::{Assembly, Capability, Declared, ItemDefaults, Lasting, Registry, Server},
};

impl Lasting for Tasks {
    fn open(assembly: &mut Assembly<'_>) -> Arc<Self> {
        let ItemDefaults { options, hub, store, .. } = assembly.rules;
        let own = options.of_capabilities.get::<TaskOptions>().cloned().unwrap_or_default();
        let share_percent = options.limits.share_percent;
        let replicas = store.is_shared().then(|| Replicas::new(store, &own, share_percent, hub.clone()));
        let replicas = replicas.transpose().unwrap_or_else(|error| {
            let text = format!("the operating system provides no randomness: {error}");
            assembly.errors.push(BuildError::new(text));
            None
        });
        Self::new(own, replicas, share_percent, hub.clone())
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

    fn answer(
        self: Arc<Self>,
        server: &Server,
        _: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        self.begin(server);
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

    fn subscribe_by_id(
        self: Arc<Self>,
        ids: Vec<String>,
        owner: Option<Arc<str>>,
        filter: Arc<Filter>,
    ) -> BoxFuture<Result<Vec<String>, Reply>> {
        Box::pin(async move {
            let mut subscribed = Vec::new();
            for id in ids {
                let is_subscribed = match &self.replicas {
                    None => self.running(&id, owner.as_deref()).is_some_and(|task| task.subscribe(&filter)),
                    Some(replicas) => replicas.subscribe(&id, owner.as_deref(), &filter).await?,
                };
                if is_subscribed {
                    subscribed.push(id);
                }
            }
            Ok(subscribed)
        })
    }

    fn serve(self: Arc<Self>, server: &Server) {
        self.begin(server);
    }

    fn wait_until_idle(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(async move { Self::wait_until_idle(&self).await })
    }

    fn stop(&self) {
        Self::stop(self);
    }

    fn settle(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(async move { Self::settle(&self).await })
    }
}

/// Whether the client declares the extension, which it does in each request.
pub(super) fn declares_tasks(meta: &Meta<'_>) -> bool {
    #[derive(Deserialize)]
    struct DeclaredExtensions<'a> {
        #[serde(borrow, default, deserialize_with = "null_is_absent")]
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

/// The action of a request on its task.
enum TaskAction {
    Get,
    /// With the raw JSON of each response.
    Update(Vec<(String, Box<str>)>),
    Cancel,
}

impl Tasks {
    fn act(self: Arc<Self>, request: &Request<'_>, id: String, action: TaskAction) -> Response {
        let owner = principal_digest(request.context.caller.as_deref());
        if self.replicas.is_none() {
            return action.apply(self.find(&id, owner.as_deref())).unwrap_or_else(Into::into).into();
        }
        Response::Pending(PendingReply::without_call(async move {
            let Some(replicas) = &self.replicas else { return unknown_task().into() };
            let owner = owner.as_deref();
            let done = match action {
                TaskAction::Get => {
                    let found = replicas.get(&id, owner).await;
                    return found.map_or_else(|reply| reply, |task| TaskResult::Shared(id, task).into());
                }
                TaskAction::Update(responses) => replicas.respond(&self, &id, owner, responses).await,
                TaskAction::Cancel => replicas.cancel(&self, &id, owner).await,
            };
            done.map_or_else(|reply| reply, |()| ResultBody::Empty.into())
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
        let task = task.ok_or_else(unknown_task)?;
        match (self, task) {
            (Self::Get, KnownTask::Running(task)) => {
                task.extend();
                return Ok(TaskResult::Running(task).into());
            }
            (Self::Get, KnownTask::Ended(record)) => {
                return Ok(TaskResult::Ended(record).into());
            }
            (Self::Update(responses), KnownTask::Running(task)) => {
                task.extend();
                task.deliver_responses(responses);
            }
            (Self::Cancel, KnownTask::Running(task)) => task.stop(TaskEnd::Cancelled),
            // the task has ended: a late response or cancellation has no effect
            (Self::Update(_) | Self::Cancel, KnownTask::Ended(_)) => {}
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
    /// A task that has ended.
    Ended(TaskRecord),
    /// A task that replicas share, with its id.
    Shared(String, StoredTask),
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
            Self::Running(_) | Self::Ended(_) | Self::Shared(..) => "complete",
        }
    }

    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        match self {
            Self::Created(task) => task.write_summary(object),
            Self::Running(task) => task.write_full(object),
            Self::Ended(record) => object.raw_members(object_members(&record.json)),
            Self::Shared(id, task) => task.write(id, object),
        }
    }

    fn started_task(&self) -> Option<&str> {
        match self {
            Self::Created(task) => Some(task.id_for_logs()),
            Self::Running(_) | Self::Ended(_) | Self::Shared(..) => None,
        }
    }
}

/// The members of an object, both as raw JSON.
fn object_members(object: &str) -> &[u8] {
    let inner = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.map(str::trim).unwrap_or_default().as_bytes()
}
