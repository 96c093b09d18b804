//! A server that publishes changes, and a client that subscribes to them over any transport.

use crate::prelude::*;

/// A resource
#[mcp_resource(uri = "HTTP://Example.org/one")]
fn one() -> &'static str {
    "one"
}

/// A template
#[mcp_resource(uri = "item://{id}")]
pub(super) fn item(id: u32) -> String {
    id.to_string()
}

/// A resource that needs a scope
#[mcp_resource(uri = "secret://one", scopes("secret"))]
fn secret() -> &'static str {
    "secret"
}

/// A prompt
#[mcp_prompt]
fn greet() -> &'static str {
    "Greet."
}

/// Publishes a change: of a list by its name, or of a resource
#[mcp_tool]
fn publish(what: String, server: &ServerHandle) -> &'static str {
    match what.as_str() {
        "tools" => server.tools_changed(),
        "prompts" => server.prompts_changed(),
        "resources" => server.resources_changed(),
        uri => server.resource_updated(uri),
    }
    "published"
}

/// A server with all of the above.
pub(super) fn builder() -> ServerBuilder {
    Server::builder("publisher", "1.0.0")
        .discover_in(module_path!())
        // a caller over HTTP has one scope, its name
        .http(|http| {
            http.caller(|parts| {
                let user = x_user(parts)?;
                Some(user.clone().with_scopes([user.subject()]))
            })
        })
}

/// A tool made at run time.
pub(super) fn tool(name: &str) -> ToolDef {
    ToolDef::builder(name).handler(|_: ToolCall| async { "done" })
}

/// The request for a listen stream.
pub(super) fn listening(id: &str, filter: &Value) -> HttpRequest {
    HttpRequest::modern(id, "subscriptions/listen", json!({ "notifications": filter }))
}

/// A modern client with an open listen stream.
pub(super) struct Listener {
    pub(super) acknowledged: Value,
    client: Client,
}

impl Listener {
    pub(super) async fn open(server: &Server, transport: Transport, filter: Value) -> Self {
        let mut client = Client::connect(server, transport, Revision::LATEST, json!({}), no_requests).await;
        Self { acknowledged: client.listen(filter).await, client }
    }

    /// The next notification, which must carry the subscription's id: its method, and its URI if it has one.
    pub(super) async fn next(&mut self) -> (String, Option<String>) {
        let message = self.client.next_message().await;
        let params = &message["params"];
        assert_eq!(params["_meta"], json!({ SUBSCRIPTION: self.client.subscription() }), "{message}");
        let method = message["method"].as_str().unwrap_or_else(|| panic!("no notification: {message}"));
        (method.to_owned(), params["uri"].as_str().map(str::to_owned))
    }

    pub(super) async fn expect_updated(&mut self, uri: &str) {
        assert_eq!(self.next().await, ("notifications/resources/updated".into(), Some(uri.into())));
    }
}
