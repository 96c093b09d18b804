//! Which change notifications a server declares: none, unless something can publish changes.

use super::fixture::{builder, item, tool};
use crate::prelude::*;

fn silent() -> ServerBuilder {
    mcp_runtime::server!().resource::<item>()
}

fn declared(capabilities: &Value) -> [&Value; 4] {
    [
        &capabilities["tools"]["listChanged"],
        &capabilities["prompts"]["listChanged"],
        &capabilities["resources"]["listChanged"],
        &capabilities["resources"]["subscribe"],
    ]
}

#[tokio::test]
async fn without_a_handle_nothing_is_declared() {
    let server = serve(silent());
    assert_eq!(server.capabilities().await, json!({ "resources": {} }));
    let wanted = json!({ "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["item://1"] });
    assert_eq!(server.listen(wanted).await.acknowledged(), &json!({}));
    let legacy = server.legacy(Revision::V2025_06_18);
    assert_eq!(legacy.capabilities().await, json!({ "resources": {} }));
    legacy.request("resources/subscribe", json!({ "uri": "item://1" })).await.expect_code(-32601);
}

#[tokio::test]
async fn a_handle_declares_changes_of_everything_offered() {
    let server = serve(builder());
    let yes = &json!(true);
    assert_eq!(declared(&server.capabilities().await), [yes; 4]);
    let mut server = server;
    for revision in LEGACY {
        server = server.legacy(revision);
        assert_eq!(declared(&server.capabilities().await), [yes; 4], "{revision}");
    }
}

#[tokio::test]
async fn every_use_of_a_handle_counts_for_items_of_every_kind_since_it_can_add_them() {
    /// May publish changes
    #[mcp_tool]
    fn perhaps(server: Option<&ServerHandle>) -> bool {
        server.is_some()
    }
    let expected = json!({
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "tools": { "listChanged": true },
    });

    let by_function = serve(silent().tool::<perhaps>());
    by_function.call("perhaps", json!({})).await.expect_text("true");
    assert_eq!(by_function.capabilities().await, expected);

    let (sender, receiver) = std::sync::mpsc::channel();
    let given = serve(silent().with_handle(move |handle| sender.send(handle).unwrap()));
    assert_eq!(given.capabilities().await, expected);
    receiver.recv().unwrap().add(tool("late")).unwrap();
    assert_eq!(given.list_tools().await.len(), 1);

    let mounted = serve(mcp_runtime::server!().mount("inner", silent().with_handle(drop)));
    assert_eq!(mounted.capabilities().await, expected);

    let server = silent().build().unwrap();
    let _handle = server.handle();
    assert_eq!(TestServer::of(&server).capabilities().await, expected);
}

#[tokio::test]
async fn without_sessions_legacy_clients_get_no_notifications() {
    let server = HttpServer::start(builder().http(|http| http.stateless())).await;
    let hello = HttpRequest::initialize("2025-11-25").send(server.address).await.json();
    assert_eq!(declared(&hello["result"]["capabilities"]), [&Value::Null; 4]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "item://1" } });
    let reply = HttpRequest::post(body.to_string()).send(server.address).await;
    assert_eq!((reply.status, reply.code()), (200, -32601));
    let modern = HttpRequest::modern(1, "server/discover", json!({})).send(server.address).await.json();
    assert_eq!(declared(&modern["result"]["capabilities"]), [&json!(true); 4]);
}
