//! `tasks/get`, `tasks/update` and `tasks/cancel`, what the server declares of tasks, and subscriptions to them.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    TaskOptions, Tasks,
    record::{StoredEnd, StoredTask},
    running_task::id_for_logs,
};
use crate::core::{
    arguments::BoxFuture,
    changes::Filter,
    connection::principal_digest,
    dispatch::{PendingReply, Reply, Request, Response, ResultBody, WriteResult, required_text},
    jsonrpc::{Meta, Object, ProtocolError, null_is_absent},
    protocol::{MISSING_CLIENT_CAPABILITY, Revision, TASKS_EXTENSION},
    server::{Assembly, Capability, Declared, Parts, Registry, Server},
};

impl Tasks {
    pub(super) fn open(assembly: &mut Assembly<'_>) -> Arc<Self> {
        let Parts { options, hub, store, .. } = assembly.parts;
        let own = options.of_capabilities.get::<TaskOptions>().cloned().unwrap_or_else(TaskOptions::new);
        Self::new(own, store, hub.clone())
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
                if self.subscribe(&id, owner.as_deref(), &filter).await? {
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
        Box::pin(async move { self.settle_all().await })
    }
}

/// Whether the client declares the extension, which it does in each request.
pub(super) fn declares_tasks(meta: &Meta<'_>) -> bool {
    #[derive(Deserialize)]
    struct DeclaredExtensions<'a> {
        #[serde(borrow, default, deserialize_with = "null_is_absent")]
        extensions: HashMap<String, &'a RawValue>,
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
        let (owner, id) = (principal_digest(request.context.caller.as_deref()), Arc::from(id));
        Response::Pending(PendingReply::without_call(async move {
            let owner = owner.as_deref();
            let done = match action {
                TaskAction::Get => {
                    let found = self.get(&id, owner).await;
                    return found.map_or_else(|reply| reply, |record| TaskResult::new(id, record).into());
                }
                TaskAction::Update(responses) => self.respond(&id, owner, responses).await,
                TaskAction::Cancel => {
                    let cancel = |record: &mut StoredTask| {
                        record.finish(StoredEnd::Cancelled, None);
                        true
                    };
                    self.change(&id, owner, cancel).await
                }
            };
            done.map_or_else(|reply| reply, |()| ResultBody::Empty.into())
        }))
    }

    /// Delivers responses to the function; those without a request are ignored.
    async fn respond(
        self: &Arc<Self>,
        id: &Arc<str>,
        owner: Option<&str>,
        responses: Vec<(String, Box<str>)>,
    ) -> Result<(), Reply> {
        let respond = |record: &mut StoredTask| {
            let mut is_changed = false;
            for (key, response) in &responses {
                is_changed |= record.respond(key, response);
            }
            is_changed
        };
        self.change(id, owner, respond).await
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
    Ok(required_text(request.params.get("taskId"), "taskId")?.into_owned())
}

impl TaskAction {
    fn update(request: &Request<'_>) -> Result<Self, ProtocolError> {
        let responses =
            request.params.get("inputResponses").map(RawValue::get).filter(|json| json.starts_with('{'));
        let responses: Option<HashMap<String, &RawValue>> =
            responses.and_then(|json| serde_json::from_str(json).ok());
        let responses = responses
            .ok_or_else(|| ProtocolError::invalid_params("`inputResponses` is missing, or not an object"))?;
        Ok(Self::Update(responses.into_iter().map(|(key, value)| (key, value.get().into())).collect()))
    }
}

/// A result that is a task.
pub(super) struct TaskResult {
    id: Arc<str>,
    record: StoredTask,
    /// Whether the call continues as this task.
    is_new: bool,
}

impl TaskResult {
    fn new(id: Arc<str>, record: StoredTask) -> Self {
        Self { id, record, is_new: false }
    }

    /// The call continues as this task.
    pub(super) fn created(id: Arc<str>, record: StoredTask) -> Self {
        Self { id, record, is_new: true }
    }
}

impl From<TaskResult> for Reply {
    fn from(result: TaskResult) -> Self {
        ResultBody::Other(Box::new(result)).into()
    }
}

impl WriteResult for TaskResult {
    fn result_type(&self) -> &'static str {
        if self.is_new { "task" } else { "complete" }
    }

    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        self.record.write(&self.id, object);
    }

    fn started_task(&self) -> Option<&str> {
        self.is_new.then(|| id_for_logs(&self.id, &self.record))
    }
}
