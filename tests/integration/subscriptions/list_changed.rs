//! Changes of lists: one notification for each batch, sent to subscribers that may see the change.

use super::fixture::{builder, listening, tool};
use crate::prelude::*;

#[tokio::test]
async fn callers_without_its_scope_are_not_notified_of_a_tool() {
    let server = builder().build().unwrap();
    let handle = server.handle();
    let served = HttpServer::of(&server).await;
    let filter = json!({ "toolsListChanged": true, "promptsListChanged": true });
    let mut streams = Vec::new();
    for user in ["admin", "guest"] {
        let request = listening("s", &filter).header("x-user", user);
        let mut events = EventStream::open(&request, served.address).await.unwrap();
        events.next().await.unwrap();
        streams.push(events);
    }
    let hidden = ToolDef::builder("hidden").scopes(["admin"]).handler(|_| async { "done" });
    handle.add(hidden).unwrap();
    handle.prompts_changed();
    let method = |message: Option<Value>| message.unwrap()["method"].clone();
    assert_eq!(method(streams[0].next().await), "notifications/tools/list_changed");
    assert_eq!(method(streams[0].next().await), "notifications/prompts/list_changed");
    assert_eq!(method(streams[1].next().await), "notifications/prompts/list_changed");
    handle.remove_tool("hidden").unwrap();
    handle.add(tool("open")).unwrap();
    assert_eq!(method(streams[1].next().await), "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_handle_does_not_keep_its_server() {
    /// Takes state and a handle
    #[mcp_tool]
    fn both(_kept: &Arc<()>, server: &ServerHandle) {
        server.tools_changed();
    }
    let kept = Arc::new(());
    let server = mcp_runtime::server!().tool::<both>().state(kept.clone()).build().unwrap();
    let handle = server.handle();
    let client = TestServer::of(&server);
    client.call("both", json!({})).await.expect_ok();
    drop((server, client));
    assert_eq!(Arc::strong_count(&kept), 1);
    handle.tools_changed();
    assert!(handle.add(tool("late")).unwrap_err().to_string().contains("dropped"));
    both(&kept, &ServerHandle::for_test());
}

#[tokio::test]
async fn an_invalid_filter_is_refused() {
    let server = serve(builder());
    for filter in
        [json!(null), json!([]), json!({ "toolsListChanged": 1 }), json!({ "resourceSubscriptions": "a" })]
    {
        let reply = server.request("subscriptions/listen", json!({ "notifications": filter })).await;
        reply.expect_code(-32602);
    }
    server.request("subscriptions/listen", json!({})).await.expect_code(-32602);
    let nothing = server.listen(json!({ "toolsListChanged": false, "unknown": 1 })).await;
    assert_eq!(nothing.acknowledged(), &json!({}));
}
