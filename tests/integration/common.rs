//! Helpers that compare replies as exact JSON.

use mcp_runtime::{
    Revision, ServerBuilder,
    testing::{Reply, TestServer},
};
use serde_json::Value;

/// The legacy revisions, oldest first.
pub(crate) const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// A modern in-memory client of a server that is built from `builder`.
#[track_caller]
pub(crate) fn serve(builder: ServerBuilder) -> TestServer {
    match TestServer::new(builder) {
        Ok(server) => server,
        Err(error) => panic!("{error:?}"),
    }
}

/// The message of the build error.
#[track_caller]
pub(crate) fn build_error(builder: ServerBuilder) -> String {
    match builder.build() {
        Ok(_) => panic!("the server was built"),
        Err(error) => format!("{error:?}"),
    }
}

/// A result without the members that every modern result has, after checking that they are present.
#[track_caller]
pub(crate) fn result(reply: &Reply) -> Value {
    let mut result = reply.value().clone();
    let map = result.as_object_mut().unwrap_or_else(|| panic!("not a result: {reply}"));
    assert_eq!(map.remove("resultType"), Some("complete".into()), "{reply}");
    let Some(Value::Object(mut meta)) = map.remove("_meta") else { panic!("no `_meta`: {reply}") };
    let info = meta.remove("io.modelcontextprotocol/serverInfo");
    assert!(info.is_some_and(|info| info["name"].is_string() && info["version"].is_string()), "{reply}");
    if !meta.is_empty() {
        map.insert("_meta".into(), Value::Object(meta));
    }
    result
}

/// The only entry of `tools/list`.
pub(crate) async fn only_tool(server: &TestServer) -> Value {
    match server.list_tools().await.as_slice() {
        [one] => one.clone(),
        other => panic!("not one tool: {other:?}"),
    }
}

/// The schema of one argument of the only tool.
pub(crate) async fn property(server: &TestServer, name: &str) -> Value {
    only_tool(server).await["inputSchema"]["properties"][name].clone()
}

/// The text of a failed call.
#[track_caller]
pub(crate) fn failure(reply: &Reply) -> String {
    assert_eq!(reply.value()["isError"], true, "{reply}");
    reply.text()
}

/// Code and message of a JSON-RPC error.
#[track_caller]
pub(crate) fn refusal(reply: &Reply) -> (i64, String) {
    match reply.error() {
        Some(error) => (error.code, error.message),
        None => panic!("not an error: {reply}"),
    }
}
