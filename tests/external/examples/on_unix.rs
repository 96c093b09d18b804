//! What programs of examples do with signals, and with processes that they start.

use std::{fs, process::Command};

use mcp_tests::{
    programs::{
        child::send,
        example::binary,
        fifo::{lingering, opened},
    },
    support::{EventStream, HttpRequest, LineConnection, TestFolder, call, cancelled, meta, soon, text_of},
};
use serde_json::json;

use super::programs::serve_http;

/// A request to the example, signed.
fn at_gateway(request: HttpRequest, token: &str) -> HttpRequest {
    request.path("/api/mcp").header("Authorization", &format!("Bearer {token}"))
}

#[tokio::test]
async fn the_gateway_finishes_calls_and_ends_streams_when_it_is_told_to_stop() {
    let (mut program, address) = serve_http("gateway");
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["orders://2"] } });
    let listen = at_gateway(HttpRequest::modern("listen", "subscriptions/listen", wanted), "ada-of-acme");
    let mut changes = EventStream::open(&listen, address).await.unwrap();
    changes.message().await;
    let params = json!({ "name": "ship", "arguments": { "id": 1 }, "_meta": { "progressToken": "p" } });
    let ship = at_gateway(HttpRequest::modern(1, "tools/call", params), "ada-of-acme");
    let mut shipping = EventStream::open(&ship, address).await.unwrap();
    assert_eq!(shipping.message().await["method"], "notifications/progress");

    send(program.0.id(), "TERM");
    assert_eq!(text_of(&shipping.message().await), "order 1 (rope) was shipped by ada");
    let end = changes.message().await;
    assert_eq!(end["id"], "listen", "{end}");
    assert!(soon(|| program.0.try_wait().unwrap().is_some()).await, "it does not end");
    assert!(program.0.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runner_reloads_its_file_and_kills_what_a_client_cancels() {
    let folder = TestFolder::default();
    // in one step, since the program reads it at any time
    let describe = |name: &str, script: &str| {
        let parameters = json!({ "value": { "type": "string", "default": "nothing" } });
        let command = ["/bin/sh", "-c", script, "sh", "{value}"];
        let tool = json!({ "name": name, "description": "", "command": command, "parameters": parameters, "timeout_seconds": 20 });
        fs::rename(folder.write("new.json", json!([tool]).to_string()), folder.join("tools.json")).unwrap();
    };
    describe("one", "echo 1");
    let mut server =
        LineConnection::spawn(Command::new(binary("runner")).env("RUNNER_TOOLS", folder.join("tools.json")));
    let acknowledged = server.listen("changes", json!({ "toolsListChanged": true })).await;
    assert_eq!(acknowledged["toolsListChanged"], true, "{acknowledged}");
    assert_eq!(text_of(&server.reply_to(&call(1, "one", &json!({}))).await), "1\n");

    let (fifo, script) = lingering(&folder);
    describe("linger", script);
    assert_eq!(server.message().await["method"], "notifications/tools/list_changed");
    let ended = {
        server.send(&call(2, "linger", &json!({ "value": fifo }))).await;
        opened(&fifo).await
    };
    server.send(&cancelled(2)).await;
    ended.await;
    // the connection goes on
    let list = server.request(3, "tools/list", json!({ "_meta": meta() })).await;
    assert_eq!(list["result"]["tools"][0]["name"], "linger", "{list}");
    server.close_input().await;
    assert!(server.exit().await.0.success());
}
