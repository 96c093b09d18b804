//! The client as a program sees it: one method for each request of the protocol.

use std::{fmt, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    listed_items::{PromptInfo, ResourceInfo, TemplateInfo, ToolInfo},
    lists::require,
    pending_request::PendingCall,
    result_types::{CallResult, ReadResult, RenderedPrompt, Suggestions},
    rounds::CompleteReply,
    task_handle::{RunningToolTask, created_task},
    typed_item::TypedItem,
};
use crate::{
    client::{
        Error,
        connect::{
            client_builder::ClientBuilder,
            shared_client::{CallOptions, Connection, SharedClient, params},
            target::IntoTarget,
        },
        exchange::{ListedKind, RequestParams, prompt_arguments},
        large_text::parse_text,
        link::ServerLink,
        operation::{Operation, OperationKind},
        receive::{change_stream::ResourceSubscription, handlers::ChangeEvent},
    },
    core::{
        arguments::BoxFuture,
        protocol::{HEADER_MISMATCH, LogLevel, Revision},
    },
};

/// A connection to a server; clones share it.
#[derive(Clone)]
pub struct Client(Arc<OpenClient>);

struct OpenClient {
    shared: Arc<SharedClient>,
}

impl Drop for OpenClient {
    fn drop(&mut self) {
        // the process of a server ends in the background, gracefully where the runtime goes on
        self.shared.token.cancel();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connection = self.shared().connection().ok();
        let server = connection.as_ref().map(|connection| connection.server.name.as_str());
        f.debug_struct("Client").field("server", &server).finish_non_exhaustive()
    }
}

/// The target of a completion: an argument of a prompt, or a variable of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionOf<'a> {
    /// An argument of the prompt with this name.
    Prompt(&'a str),
    /// A variable of the template with this URI.
    Template(&'a str),
}

impl Client {
    /// Connects to a server: a command line, a URL, a `Command`, `(reader, writer)`, or `&Server` in this process.
    ///
    /// It finds out which revision the server has, and lists nothing.
    ///
    /// # Errors
    /// The server cannot be reached or started, or has no revision that this client has.
    pub fn connect(target: impl IntoTarget) -> BoxFuture<Result<Self, Error>> {
        ClientBuilder::new().connect(target)
    }

    /// Options, and functions that answer the server's requests.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(in crate::client) fn of_shared(shared: Arc<SharedClient>) -> Self {
        Self(Arc::new(OpenClient { shared }))
    }

    pub(in crate::client) fn shared(&self) -> &Arc<SharedClient> {
        &self.0.shared
    }

    pub(super) fn request<T, F, Fut>(&self, send: F) -> PendingCall<T>
    where
        F: FnOnce(Arc<SharedClient>, CallOptions) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, Error>> + Send + 'static,
    {
        PendingCall::new(self.shared(), OperationKind::Call, send)
    }

    /// Ends the connection for all clones. A child process has ended when this returns, after four seconds at most.
    #[doc(alias("shutdown", "disconnect", "cancel"))]
    pub async fn close(&self) {
        self.shared().close().await;
    }

    /// Whether the connection has ended, and no request opens it again.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.shared().can_continue()
    }

    /// The revision that is used.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.shared().connection().ok().map(|connection| connection.revision)
    }

    /// The name and version of the server, as it says itself.
    #[must_use]
    pub fn server_info(&self) -> (String, String) {
        let connection = self.shared().connection();
        connection.map_or_else(
            |_| Default::default(),
            |connection| (connection.server.name.clone(), connection.server.version.clone()),
        )
    }

    /// The server's instructions for models.
    #[must_use]
    pub fn instructions(&self) -> Option<String> {
        self.shared().connection().ok()?.server.instructions.clone()
    }

    /// The server's capabilities, as it declared them.
    #[must_use]
    pub fn capabilities(&self) -> Value {
        self.shared().connection().map_or(Value::Null, |connection| connection.server.capabilities.clone())
    }

    /// Whether the server declares a capability: `tools`, `resources.subscribe`, or an extension's name.
    #[must_use]
    pub fn supports(&self, capability: &str) -> bool {
        self.shared().connection().is_ok_and(|connection| connection.server.declares(capability))
    }

    /// The id of the server's process, if it has one.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.shared().connection().ok()?.link.process()?.id
    }

    /// The end of what the server's process has written to stderr, at most 64 KiB.
    #[must_use]
    pub fn stderr(&self) -> String {
        let connection = self.shared().connection().ok();
        connection.and_then(|connection| Some(connection.link.process()?.stderr())).unwrap_or_default()
    }

    /// The server's tools, of all pages. Over HTTP those are left out that clients must not call.
    #[doc(alias("list_tools"))]
    pub fn tools(&self) -> PendingCall<Vec<ToolInfo>> {
        self.list(ListedKind::Tools, ToolInfo::new)
    }

    /// The server's resources, of all pages.
    #[doc(alias("list_resources"))]
    pub fn resources(&self) -> PendingCall<Vec<ResourceInfo>> {
        self.list(ListedKind::Resources, ResourceInfo::new)
    }

    /// The server's templates of resources, of all pages.
    #[doc(alias("list_resource_templates", "resource_templates"))]
    pub fn templates(&self) -> PendingCall<Vec<TemplateInfo>> {
        self.list(ListedKind::Templates, TemplateInfo::new)
    }

    /// The server's prompts, of all pages.
    #[doc(alias("list_prompts"))]
    pub fn prompts(&self) -> PendingCall<Vec<PromptInfo>> {
        self.list(ListedKind::Prompts, PromptInfo::new)
    }

    pub(in crate::client) fn list<T: Send + 'static>(
        &self,
        kind: ListedKind,
        parse: fn(Arc<Value>) -> Option<T>,
    ) -> PendingCall<Vec<T>> {
        PendingCall::new(self.shared(), OperationKind::List, move |shared, options| async move {
            let entries = shared.list(kind, options.refresh, &options).await?;
            Ok(entries.into_iter().filter_map(parse).collect())
        })
    }

    /// Calls a tool with these arguments: a struct, a map, `json!({..})`, or `()` for none. A call that the server goes on
    /// with as a task is driven to its end; dropping the future, or the end of its [time](PendingCall::timeout), cancels the
    /// task.
    ///
    /// ```no_run
    /// # async fn example(client: &mcp_runtime::client::Client) -> Result<(), mcp_runtime::client::Error> {
    /// #[derive(serde::Serialize)]
    /// struct Search<'a> {
    ///     path: &'a str,
    ///     pattern: &'a str,
    /// }
    ///
    /// let found = client.call("search_files", Search { path: "/data", pattern: "tea" }).await?.ok()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("call_tool", "invoke", "execute"))]
    pub fn call(&self, tool: impl Into<String>, arguments: impl Serialize) -> PendingCall<CallResult> {
        self.call_with(tool.into(), to_arguments(arguments))
    }

    fn call_with(&self, tool: String, arguments: Result<Value, Error>) -> PendingCall<CallResult> {
        self.request(move |shared, options| async move {
            let (json, task) =
                call_tool(&shared, &tool, tool_params(&tool, arguments?)?, None, &options).await?;
            if let Some(task) = task {
                return Box::pin(task.result()).await;
            }
            let schema = shared.tools.output_schema(&tool).await;
            parse_text(json, move |json| CallResult::parse(json, schema)).await
        })
    }

    /// A tool, resource or prompt of this program's own code, wherever it runs: its arguments and results are checked by
    /// the compiler.
    ///
    /// ```
    /// use mcp_runtime::{client::Client, prelude::*};
    ///
    /// /// Adds two numbers.
    /// #[mcp_tool]
    /// fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// #[mcp_runtime::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let server = mcp_runtime::server!().tool::<add>().build()?;
    ///     let client = Client::connect(&server).await?;
    ///     let sum: i64 = client.typed::<add>().call((1, 2)).await?;
    ///     assert_eq!(sum, 3);
    ///     Ok(())
    /// }
    /// ```
    // rustc shows the next line to those who pass the function as a value
    pub fn typed<T>(&self /* write `.typed::<name>()` */) -> TypedItem<T> {
        TypedItem::new(self.clone())
    }

    /// Calls a tool as a task, and returns when the server has begun it.
    ///
    /// The error [`Error::Unsupported`] says that the server did not make a task of it; its result is lost. A server of
    /// 2025-11-25 is asked only if it and the tool allow tasks, and the error says that they do not.
    pub fn call_task(
        &self,
        tool: impl Into<String>,
        arguments: impl Serialize,
    ) -> PendingCall<RunningToolTask> {
        let (tool, arguments) = (tool.into(), to_arguments(arguments));
        self.request(move |shared, options| async move {
            let arguments = arguments?;
            let connection = shared.connection()?;
            let is_legacy = !connection.revision.is_modern();
            if is_legacy && !can_be_task(&shared, &connection, &tool, &options).await? {
                return Err(Error::unsupported(format!("`{tool}` as a task")));
            }
            let task = is_legacy.then(|| json!({}));
            let (_, task) = call_tool(&shared, &tool, tool_params(&tool, arguments)?, task, &options).await?;
            let task = task.ok_or_else(|| Error::unsupported(format!("`{tool}` as a task")))?;
            Ok(task.outlives_call())
        })
    }

    /// Reads a resource, which may be kept for as long as the server allows.
    #[doc(alias("read_resource"))]
    pub fn read(&self, uri: impl Into<String>) -> PendingCall<ReadResult> {
        let uri = uri.into();
        self.request(move |shared, options| async move {
            let (json, _) = shared.read(&uri, None, &options).await?;
            parse_text(json, ReadResult::parse).await
        })
    }

    /// Fills in a prompt. Arguments are text; other values become their JSON, and one that is null is absent.
    #[doc(alias("get_prompt"))]
    pub fn prompt(&self, name: impl Into<String>, arguments: impl Serialize) -> PendingCall<RenderedPrompt> {
        let (name, arguments) = (name.into(), to_arguments(arguments));
        self.request(move |shared, options| async move {
            let arguments = arguments?;
            require(&*shared.connection()?, "prompts")?;
            let mut members = json!({ "name": name });
            if arguments.is_object() {
                members["arguments"] = prompt_arguments(arguments);
            }
            let reply = shared.request("prompts/get", params(members), &options).await?;
            parse_text(reply.json, RenderedPrompt::parse).await
        })
    }

    /// Values for an argument that begins with `text`.
    pub fn complete(
        &self,
        of: &CompletionOf<'_>,
        argument: impl Into<String>,
        text: impl Into<String>,
    ) -> PendingCall<Suggestions> {
        let reference = match of {
            CompletionOf::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
            CompletionOf::Template(uri) => json!({ "type": "ref/resource", "uri": uri }),
        };
        let argument = json!({ "name": argument.into(), "value": text.into() });
        self.request(move |shared, options| async move {
            require(&*shared.connection()?, "completions")?;
            let members = json!({ "ref": reference, "argument": argument });
            let reply = shared.request("completion/complete", params(members), &options).await?;
            parse_text(reply.json, Suggestions::parse).await
        })
    }

    /// Finds out whether the server answers.
    pub fn ping(&self) -> PendingCall<()> {
        self.request(move |shared, options| async move {
            // 2026-07-28 has no `ping`, and every server answers this
            let method = if shared.connection()?.revision.is_modern() { "server/discover" } else { "ping" };
            shared.request(method, params(json!({})), &options).await.map(drop)
        })
    }

    /// Sets which log messages the server sends: those of this level, and more severe ones.
    pub fn set_level(&self, level: LogLevel) -> PendingCall<()> {
        self.request(move |shared, options| async move {
            let connection = shared.connection()?;
            if !connection.revision.is_modern() {
                require(&connection, "logging")?;
                let members = json!({ "level": level.as_str() });
                shared.request("logging/setLevel", params(members), &options).await?;
            }
            shared.set_log_level(level);
            Ok(())
        })
    }

    /// Sends any request, of the protocol or of an extension, and returns its result; input that the server requires is
    /// given.
    pub fn send(&self, method: impl Into<String>, members: Value) -> PendingCall<Value> {
        PendingCall::any(self.shared(), method.into(), params(members))
    }

    /// Calls `f` whenever the resource changes, with [`ChangeEvent::Resource`], and when changes may have been missed or no
    /// more follow, with [`Lost`](ChangeEvent::Lost), [`Restored`](ChangeEvent::Restored) and [`Ended`](ChangeEvent::Ended),
    /// until the subscription is dropped. The function must not block.
    ///
    /// # Errors
    /// The server does not support subscriptions, or not to this resource.
    pub async fn subscribe(
        &self,
        uri: &str,
        f: impl Fn(ChangeEvent) + Send + Sync + 'static,
    ) -> Result<ResourceSubscription, Error> {
        let operation = Operation::new(OperationKind::Call, None, &self.shared().options);
        let options = CallOptions::of(operation.clone());
        operation.run(self.shared().subscribe(uri, Arc::new(f), &options)).await
    }

    /// Notifies a legacy server that the folders of `on_roots` have changed; later ones ask when they need them.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn roots_changed(&self) -> Result<(), Error> {
        if self.shared().connection()?.revision.is_modern() {
            return Ok(());
        }
        self.shared().notify("notifications/roots/list_changed", &Map::new()).await
    }

    /// Forgets the user: the access and refresh tokens of this server, also in the store, and what is kept of lists and
    /// resources. The next request that requires a token authorizes the client again; its registration stays.
    ///
    /// # Errors
    /// The tokens cannot be removed from the store, or the server is not used over streamable HTTP.
    #[cfg(feature = "client-oauth")]
    #[doc(alias("logout", "sign_out"))]
    pub async fn forget_authorization(&self) -> Result<(), Error> {
        let shared = self.shared();
        let ServerLink::Http(link) = &*shared.connection()?.link else {
            return Err(Error::unsupported("authorization over this transport"));
        };
        link.forget_authorization().await?;
        shared.forget_what_is_kept();
        Ok(())
    }

    /// Adds definitions of tools, as `tools/list` has them, so that calls over HTTP have the headers that the tools
    /// require without a list. The server's own definitions replace them.
    ///
    /// # Errors
    /// A definition is not valid; then none is added.
    pub fn add_known_tools(&self, definitions: impl IntoIterator<Item = Value>) -> Result<(), Error> {
        self.shared().tools.add(definitions)
    }

    /// Forgets the definitions of all tools.
    pub fn clear_known_tools(&self) {
        self.shared().tools.clear();
    }
}

/// Whether the server makes tasks of calls in the way of 2025-11-25, the only revision that has it.
fn declares_tasks(connection: &Connection) -> bool {
    connection.revision == Revision::V2025_11_25 && connection.server.declares("tasks.requests.tools.call")
}

/// Whether a server of 2025-11-25 and its tool allow that the call becomes a task; a tool that is not known is looked up.
async fn can_be_task(
    shared: &Arc<SharedClient>,
    connection: &Connection,
    tool: &str,
    options: &CallOptions,
) -> Result<bool, Error> {
    if !declares_tasks(connection) {
        return Ok(false);
    }
    if !shared.tools.contains(tool) {
        Box::pin(shared.list(ListedKind::Tools, false, &options.of_same_call())).await?;
    }
    Ok(matches!(shared.tools.task_support(tool).as_deref(), Some("required" | "optional")))
}

/// The program's arguments as JSON.
///
/// # Errors
/// They have no JSON, such as a map whose keys are not text.
fn to_arguments(arguments: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(arguments)
        .map_err(|error| Error::invalid(format!("the arguments are not JSON: {error}")))
}

/// The params of a call with these arguments, an object or null.
fn tool_params(tool: &str, arguments: Value) -> Result<RequestParams, Error> {
    let mut members = Map::new();
    members.insert("name".to_owned(), tool.into());
    match arguments {
        Value::Null => {}
        Value::Object(_) => drop(members.insert("arguments".to_owned(), arguments)),
        other => return Err(Error::invalid(format!("the arguments of `{tool}` are not an object: {other}"))),
    }
    Ok(members.into())
}

/// Calls a tool with these params: the JSON of its result, also if the server goes on with the call as a task.
pub(super) async fn call_tool_raw(
    shared: &Arc<SharedClient>,
    params: RequestParams,
    options: &CallOptions,
) -> Result<String, Error> {
    let tool = params.members.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    match call_tool(shared, &tool, params, None, options).await? {
        (_, Some(task)) => Box::pin(task.result_json()).await,
        (json, None) => Ok(json),
    }
}

/// The result of the task in the JSON of the result of `tools/call`.
pub(super) async fn result_of_task(
    shared: &Arc<SharedClient>,
    params: &RequestParams,
    json: String,
    options: &CallOptions,
) -> Result<String, Error> {
    let tool = params.members.get("name").and_then(Value::as_str).unwrap_or_default();
    match created_task(shared, tool, &json, true, options)? {
        Some(task) => Box::pin(task.result_json()).await,
        None => Ok(json),
    }
}

/// Calls a tool, once more with new headers if the server finds that some are missing: the JSON of the result, and the task
/// if that is one.
async fn call_tool(
    shared: &Arc<SharedClient>,
    tool: &str,
    mut params: RequestParams,
    task: Option<Value>,
    options: &CallOptions,
) -> Result<(String, Option<RunningToolTask>), Error> {
    let connection = shared.connection()?;
    require(&connection, "tools")?;
    // a tool of 2025-11-25 may be one that must be called as a task
    let required =
        declares_tasks(&connection) && shared.tools.task_support(tool).as_deref() == Some("required");
    let task = task.or_else(|| required.then(|| json!({})));
    // boxed: every call would have room for it otherwise
    let with_progress = (options.progress.is_none() && shared.inbox.handlers.progress.is_some())
        .then(|| Box::new(CallOptions { progress: Some(shared.expect_progress(None)), ..options.clone() }));
    let options = with_progress.as_deref().unwrap_or(options);
    let asks_for_task = task.is_some();
    if let Some(task) = task {
        params.members.insert("task".to_owned(), task);
    }
    // headers are a matter of HTTP
    let again = connection.link.is_http().then(|| params.clone());
    let mut result = shared.request("tools/call", params, options).await;
    if let Some(again) = again
        && result.as_ref().err().and_then(Error::code) == Some(HEADER_MISMATCH)
    {
        Box::pin(shared.list(ListedKind::Tools, true, &options.of_same_call())).await?;
        result = shared.request("tools/call", again, options).await;
    }
    let CompleteReply { json, is_task, .. } = result?;
    let task =
        if is_task || asks_for_task { created_task(shared, tool, &json, is_task, options)? } else { None };
    Ok((json, task))
}
