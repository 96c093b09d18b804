//! Tests of servers in memory: messages are encoded as on the wire, without a process or a socket.

mod changes;
#[cfg(feature = "contract")]
mod contract;
#[cfg(feature = "events")]
mod events;
#[cfg(feature = "auth")]
mod issuer;
mod reply;
#[cfg(feature = "shared")]
mod shared_check;
#[cfg(feature = "tasks")]
mod tasks;

use std::{any::Any, fmt, sync::Arc};

use serde_json::{Map, Value, json};

use changes::ChangeSource;
pub use changes::Changes;
#[cfg(feature = "contract")]
pub use contract::{ChangeClass, Contract, ContractChange, ContractChanges, ContractCheck};
#[cfg(feature = "auth")]
pub use issuer::TestIssuer;
pub use reply::Reply;
#[cfg(feature = "shared")]
pub use shared_check::check_shared;

use crate::{
    client::exchange::{ListedKind, MemoryClient, MemoryReply, prompt_arguments},
    core::{
        admission::Owner,
        changes::ListChanges,
        client_error::private_causes,
        connection::Principal,
        protocol::{INTERNAL_ERROR, Revision},
        server::{Result, Server, ServerBuilder},
    },
};

/// A client and a server in one process, for tests.
///
/// It uses 2026-07-28 by default, and requests progress on every call. Dropping the future of a call cancels the call.
///
/// ```
/// use mcp_runtime::{prelude::*, testing::TestServer};
/// use serde_json::json;
///
/// /// Adds two numbers.
/// #[mcp_tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mcp_runtime::Result<()> {
/// let server = TestServer::new(mcp_runtime::server!().tool::<add>())?;
/// server.call("add", json!({ "a": 1, "b": 2 })).await.expect_text("3");
/// server.call("add", json!({ "a": 1 })).await.expect_failure("b");
/// # Ok(())
/// # }
/// ```
pub struct TestServer {
    client: MemoryClient,
}

impl TestServer {
    /// Builds the server and connects to it.
    ///
    /// # Errors
    /// As [`ServerBuilder::build`].
    pub fn new(builder: ServerBuilder) -> Result<Self> {
        Ok(Self::of(&builder.build()?))
    }

    /// Connects to a server.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        Self { client: MemoryClient::modern(server.clone()) }
    }

    /// Uses 2026-07-28 from now on.
    #[must_use]
    pub fn modern(self) -> Self {
        Self { client: self.client.with_revision(Revision::LATEST) }
    }

    /// Uses this revision from now on, with `initialize` unless it is 2026-07-28.
    ///
    /// ```
    /// # use mcp_runtime::{Revision, testing::TestServer};
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = TestServer::new(mcp_runtime::server!())?.legacy(Revision::V2025_03_26);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn legacy(self, revision: Revision) -> Self {
        Self { client: self.client.with_revision(revision) }
    }

    /// Declares these client capabilities, and responds to client requests: `answers` gets `method` on the wire and
    /// `params`, and returns the result, or the message of an error.
    ///
    /// A call that returns `input_required` is retried with the responses until it completes. With a legacy
    /// revision, an error message becomes the [error](crate::client_request::ClientRequestError) of the function's
    /// request. In 2026-07-28,
    /// [`inputResponses`](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr) contain only
    /// results, and a host without a result abandons the call: the reply is then the `input_required` result.
    ///
    /// ```
    /// # use mcp_runtime::testing::TestServer;
    /// # use serde_json::json;
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = TestServer::new(mcp_runtime::server!())?
    ///     .answering(json!({ "elicitation": {} }), |method, params| {
    ///         assert_eq!(method, "elicitation/create");
    ///         Ok(json!({ "action": "accept", "content": { "name": "Ada" } }))
    ///     });
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn answering(
        self,
        capabilities: Value,
        answers: impl Fn(&str, &Value) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self { client: self.client.with_answers(capabilities, Arc::new(answers)) }
    }

    /// Sends the next requests as this caller, or as an anonymous one: as over HTTP, items with scopes that the caller
    /// lacks are hidden, and sessions and tasks belong to the caller.
    ///
    /// Without this the client is trusted, like the host of a server on stdio. The server's own
    /// [`caller`](crate::config::HttpOptions::caller) function is not called.
    ///
    /// ```
    /// # use mcp_runtime::{Principal, prelude::*, testing::TestServer};
    /// # use serde_json::json;
    /// /// Who is calling?
    /// #[mcp_tool]
    /// fn whoami(ctx: &Context) -> Option<String> {
    ///     ctx.caller().map(|caller| caller.subject().to_owned())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let server = TestServer::new(mcp_runtime::server!().tool::<whoami>())?;
    /// let server = server.caller(Principal::new("https://example.com", "ada"));
    /// server.call("whoami", json!({})).await.expect_text("ada");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn caller(mut self, caller: impl Into<Option<Principal>>) -> Self {
        self.client.connection.set_caller(caller.into().map(Arc::new));
        self
    }

    /// Sends the next requests with this value, as if middleware had put it into them; functions take it as `&T`.
    /// If the value identifies the caller, also pass its principal to [`caller`](Self::caller).
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        Arc::make_mut(&mut self.client.connection.context.extensions).insert(value);
        self
    }

    /// Sends the next requests with this HTTP header, for [`Context::header`](crate::Context::header).
    ///
    /// The headers of the protocol itself have no effect in memory.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.client.connection.headers).push((name.into(), value.into()));
        self
    }

    /// Calls a tool.
    ///
    /// ```
    /// # use mcp_runtime::{Server, testing::TestServer, tool::{ToolCall, ToolDef}};
    /// # use serde_json::json;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let slow = ToolDef::builder("slow").handler(|call: ToolCall| async move {
    ///     call.context.progress(1.0).total(2.0).send();
    ///     "done"
    /// });
    /// let server = TestServer::new(Server::builder("docs", "1.0.0").add(slow))?;
    ///
    /// let reply = server.call("slow", json!({})).await;
    /// reply.expect_text("done");
    /// assert_eq!(reply.notifications()[0]["params"]["total"], 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        let mut params = json!({ "name": tool, "_meta": { "progressToken": "test" } });
        if !arguments.is_null() {
            params["arguments"] = arguments;
        }
        self.request("tools/call", params).await
    }

    /// Reads a resource.
    pub async fn read(&self, uri: &str) -> Reply {
        self.request("resources/read", json!({ "uri": uri, "_meta": { "progressToken": "test" } })).await
    }

    /// Gets a prompt; arguments that are not strings are sent as their JSON text, and those that are null are not sent.
    pub async fn prompt(&self, name: &str, arguments: Value) -> Reply {
        let mut params = json!({ "name": name, "_meta": { "progressToken": "test" } });
        if !arguments.is_null() {
            params["arguments"] = prompt_arguments(arguments);
        }
        self.request("prompts/get", params).await
    }

    /// Completes an argument of a prompt, or of a resource template if `of` contains `:/`.
    ///
    /// The result's `completion.values` are the suggestions.
    pub async fn complete(&self, of: &str, argument: &str, value: &str) -> Reply {
        let reference = if of.contains(":/") {
            json!({ "type": "ref/resource", "uri": of })
        } else {
            json!({ "type": "ref/prompt", "name": of })
        };
        let params = json!({ "ref": reference, "argument": { "name": argument, "value": value } });
        self.request("completion/complete", params).await
    }

    /// Every entry of `tools/list`, from all of its pages.
    ///
    /// # Panics
    /// The server refuses the request; so do the other lists.
    pub async fn list_tools(&self) -> Vec<Value> {
        self.list(ListedKind::Tools).await
    }

    /// Every entry of `resources/list`, from all of its pages.
    pub async fn list_resources(&self) -> Vec<Value> {
        self.list(ListedKind::Resources).await
    }

    /// Every entry of `resources/templates/list`, from all of its pages.
    pub async fn list_templates(&self) -> Vec<Value> {
        self.list(ListedKind::Templates).await
    }

    /// Every entry of `prompts/list`, from all of its pages.
    pub async fn list_prompts(&self) -> Vec<Value> {
        self.list(ListedKind::Prompts).await
    }

    async fn list(&self, kind: ListedKind) -> Vec<Value> {
        let listed = match self.ready().await {
            Ok(()) => self.client.list(kind).await.map_err(Reply::from),
            Err(reply) => Err(reply),
        };
        listed.unwrap_or_else(|reply| panic!("`{}` was refused: {reply}", kind.method()))
    }

    /// Subscribes to changes: `filter` is `notifications` on the wire of `subscriptions/listen`.
    ///
    /// A legacy client sends `resources/subscribe` for each of the URIs instead.
    ///
    /// ```
    /// use mcp_runtime::{ServerHandle, prelude::*, testing::TestServer};
    /// use serde_json::json;
    ///
    /// /// Fills the cup.
    /// #[mcp_tool]
    /// fn fill(server: &ServerHandle) {
    ///     server.resource_updated("cup://mine");
    /// }
    ///
    /// /// The cup.
    /// #[mcp_resource(uri = "cup://mine")]
    /// fn cup() -> &'static str {
    ///     "full"
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let server = TestServer::new(mcp_runtime::server!().tool::<fill>().resource::<cup>())?;
    /// let mut changes = server.listen(json!({ "resourceSubscriptions": ["cup://mine"] })).await;
    /// server.call("fill", json!({})).await.expect_ok();
    /// assert_eq!(changes.next().await["params"]["uri"], "cup://mine");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// The server refuses the request.
    pub async fn listen(&self, filter: Value) -> Changes {
        match self.open_changes(filter).await {
            Ok(changes) => changes,
            Err(reply) => panic!("`subscriptions/listen` was refused: {reply}"),
        }
    }

    /// Sends any request; members of `_meta` that the revision requires are added where they are missing.
    pub async fn request(&self, method: &str, params: Value) -> Reply {
        if let Err(reply) = self.ready().await {
            return reply;
        }
        let (reply, causes) = private_causes::collect(self.client.request(method, params)).await;
        Reply { reply, causes }
    }

    /// `capabilities` on the wire of the server.
    pub async fn capabilities(&self) -> Value {
        self.client.discover().await["capabilities"].take()
    }
}

impl TestServer {
    /// Makes the state of the server, as transports do before the first message.
    ///
    /// # Errors
    /// The reply with the error.
    async fn ready(&self) -> Result<(), Reply> {
        self.client.connection.server.made_state().make().await.map_err(|error| {
            let error = json!({ "code": INTERNAL_ERROR, "message": &*error });
            let message = json!({ "jsonrpc": "2.0", "id": 0, "error": error });
            Reply::from(MemoryReply { message, notifications: Vec::new() })
        })
    }

    /// Subscribes to the changes of the filter.
    ///
    /// # Errors
    /// The reply with the error.
    async fn open_changes(&self, filter: Value) -> Result<Changes, Reply> {
        if !self.client.revision().is_modern() {
            return Ok(self.subscribe_legacy(&filter).await);
        }
        let params = Map::from_iter([("notifications".to_owned(), filter)]);
        let mut changes = self.open_stream("subscriptions/listen", params).await?;
        changes.receive_acknowledgement();
        Ok(changes)
    }

    async fn open_stream(&self, method: &str, params: Map<String, Value>) -> Result<Changes, Reply> {
        self.ready().await?;
        let subscription = self.client.listen(method, params).map_err(Reply::from)?;
        Ok(Changes::new(ChangeSource::Stream(Box::new(subscription)), Value::Null))
    }

    /// Subscribes a legacy client, which sends one request for each resource.
    async fn subscribe_legacy(&self, filter: &Value) -> Changes {
        let offered = self.client.connection.server.list_changes();
        let lists: ListChanges = offered.iter().filter(|list| filter[list.member()] == true).collect();
        let subscriptions = self.client.connection.server.hub().filter(lists, &Owner::local());
        let mut acknowledged = json!({});
        for list in lists.iter() {
            acknowledged[list.member()] = true.into();
        }
        let uris = filter["resourceSubscriptions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut accepted = Vec::new();
        for uri in uris.iter().filter_map(Value::as_str) {
            let reply = self.request("resources/subscribe", json!({ "uri": uri })).await;
            if !reply.is_error() && subscriptions.subscribe(uri).is_ok() {
                accepted.push(uri);
            }
        }
        if !accepted.is_empty() {
            acknowledged["resourceSubscriptions"] = accepted.into();
        }
        let context = &self.client.connection.context;
        match self.client.connection.server.hub().subscribe(
            subscriptions,
            context.caller.clone(),
            context.access_rules.clone(),
            &context.owner(),
        ) {
            Some(subscriber) => Changes::new(ChangeSource::Session(subscriber), acknowledged),
            None => panic!("the server has too many subscribers"),
        }
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("revision", &self.client.revision()).finish_non_exhaustive()
    }
}
