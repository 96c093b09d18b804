//! Tasks over HTTP, where callers differ, and over stdio, where tasks end with the process.

use super::{Probe, TASKS, builder};
use crate::{
    prelude::*,
    process::{fixture, start},
};

fn modern(method: &str, mut params: Value) -> HttpRequest {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { TASKS: {} } });
    HttpRequest::modern(1, method, params)
}

async fn served(builder: ServerBuilder) -> HttpServer {
    HttpServer::start(builder.http(|http| http.caller(x_user))).await
}

async fn start_over_http(served: &HttpServer, user: &str) -> String {
    let request = modern("tools/call", json!({ "name": "wait", "arguments": {} })).header("x-user", user);
    let reply = request.send(served.address).await.json();
    reply["result"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {reply}")).to_owned()
}

#[tokio::test]
async fn a_task_is_visible_only_to_its_caller() {
    let probe = Probe::default();
    let served = served(builder(&probe)).await;
    let id = start_over_http(&served, "ada").await;
    let params = json!({ "taskId": id, "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for request in
            [modern(method, params.clone()).header("x-user", "eve"), modern(method, params.clone())]
        {
            let reply = request.send(served.address).await.json();
            assert_eq!(reply["error"]["code"], -32602, "{method}: {reply}");
            assert!(!reply.to_string().contains(&id), "{reply}");
        }
    }
    // the other caller's request has not cancelled it
    probe.until_running(1).await;
    let own = modern("tasks/cancel", params.clone()).header("x-user", "ada");
    assert!(own.send(served.address).await.json().get("result").is_some());
    probe.until_running(0).await;
    let own = modern("tasks/get", params.clone()).header("x-user", "ada");
    assert_eq!(own.send(served.address).await.json()["result"]["status"], "cancelled");
    // also if only the store has it
    let other = modern("tasks/get", params).header("x-user", "eve");
    assert_eq!(other.send(served.address).await.json()["error"]["code"], -32602);
}

#[tokio::test]
async fn headers_and_statuses_follow_the_extension() {
    let probe = Probe::default();
    let served = served(builder(&probe)).await;
    let id = start_over_http(&served, "ada").await;
    let at = served.address;
    let status = |request: HttpRequest| async move {
        let reply: HttpResponse = request.send(at).await;
        (reply.status, reply.json()["error"]["code"].as_i64())
    };
    let get = || modern("tasks/get", json!({ "taskId": id })).header("x-user", "ada");
    assert_eq!(status(get()).await, (200, None));
    assert_eq!(status(get().without("Mcp-Name")).await, (400, Some(-32020)));
    assert_eq!(status(get().with("Mcp-Name", "other")).await, (400, Some(-32020)));
    assert_eq!(status(get().with("Mcp-Method", "tasks/cancel")).await, (400, Some(-32020)));
    let undeclared =
        |method: &'static str, params: Value| HttpRequest::modern(1, method, params).header("x-user", "ada");
    assert_eq!(status(undeclared("tasks/get", json!({ "taskId": "x" }))).await, (400, Some(-32021)));
    let must = json!({ "name": "must", "arguments": {} });
    assert_eq!(status(undeclared("tools/call", must)).await, (400, Some(-32021)));
    assert_eq!(status(modern("tasks/list", json!({}))).await, (404, Some(-32601)));
}

#[tokio::test]
async fn a_task_survives_its_client_and_ends_with_the_server() {
    let probe = Probe::default();
    let mut served =
        served(builder(&probe).limits(|limits| limits.shutdown_timeout(Duration::from_secs(20)))).await;
    let first = start_over_http(&served, "ada").await;
    assert!(!first.is_empty(), "its connection is closed by now");
    probe.until_running(1).await;
    served.stop();
    // the shutdown timeout lets it finish
    probe.open(1);
    served.stopped().await;
    assert_eq!((probe.running(), probe.cancelled()), (0, 0));

    let probe = Probe::default();
    let mut served =
        self::served(builder(&probe).limits(|limits| limits.shutdown_timeout(Duration::from_millis(50))))
            .await;
    start_over_http(&served, "ada").await;
    probe.until_running(1).await;
    served.stop();
    served.stopped().await;
    probe.until_running(0).await;
    until(|| probe.cancelled() == 1).await;
}

fn over_stdio(id: &str, method: &str, params: &Value) -> Value {
    let mut message = request(id, method, params.clone());
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { TASKS: {} } },
    });
    message
}

async fn start_over_stdio(server: &mut LineConnection, ms: u64) -> String {
    let call =
        over_stdio("start", "tools/call", &json!({ "name": "nap_as_task", "arguments": { "ms": ms } }));
    let reply = server.reply_to(&call).await;
    reply["result"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {reply}")).to_owned()
}

#[tokio::test]
async fn tasks_over_stdio_take_no_call_permits() {
    let mut server = start();
    // more than may be in flight at once
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(start_over_stdio(&mut server, 60_000).await);
    }
    for id in &ids {
        let reply = server.reply_to(&over_stdio("get", "tasks/get", &json!({ "taskId": id }))).await;
        assert_eq!(reply["result"]["status"], "working");
        let reply = server.reply_to(&over_stdio("cancel", "tasks/cancel", &json!({ "taskId": id }))).await;
        assert_eq!(reply["result"]["resultType"], "complete");
    }
    let id = start_over_stdio(&mut server, 1).await;
    loop {
        let reply = server.reply_to(&over_stdio("get", "tasks/get", &json!({ "taskId": id }))).await;
        if reply["result"]["status"] == "completed" {
            assert_eq!(reply["result"]["result"]["content"][0]["text"], "napped");
            break;
        }
        assert_eq!(reply["result"]["status"], "working");
    }
    server.close_input().await;
    assert!(server.exit().await.0.success());
}

#[tokio::test]
async fn tasks_are_cancelled_after_the_shutdown_timeout() {
    let mut server = LineConnection::spawn(fixture().env("FIXTURE_DRAIN_MS", "200").env("MCP_LOG", "warn"));
    start_over_stdio(&mut server, 600_000).await;
    server.close_input().await;
    let (status, errors) = server.exit().await;
    assert!(status.success());
    assert!(errors.contains("still running"), "{errors}");
}
