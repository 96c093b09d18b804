//! Tasks over HTTP, where callers differ, and over stdio, where tasks end with the process.

use super::{Probe, TASKS, builder, with_tasks};
use crate::{prelude::*, process::fixture};

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

#[tokio::test]
async fn tasks_over_stdio_take_no_call_permits() {
    let probe = Probe::default();
    let server = builder(&probe).limits(|limits| limits.max_in_flight(1).max_queued(0)).build().unwrap();
    let mut client =
        Client::connect(&server, Transport::Stdio, Revision::LATEST, with_tasks(), no_requests).await;
    let first = client.start_task("wait", json!({})).await;
    let second = client.start_task("wait", json!({})).await;
    probe.until_running(2).await;
    client.cancel_task(&first).await;
    probe.open(1);
    client.until_status(&second, "completed").await;
}

#[tokio::test]
async fn tasks_are_cancelled_after_the_shutdown_timeout() {
    let mut server = LineConnection::spawn(fixture().env("FIXTURE_DRAIN_MS", "200").env("MCP_LOG", "warn"));
    let mut start = call(1, "nap_as_task", &json!({ "ms": 600_000 }));
    start["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = with_tasks();
    assert!(server.reply_to(&start).await["result"]["taskId"].is_string());
    server.close_input().await;
    let (status, errors) = server.exit().await;
    assert!(status.success());
    assert!(errors.contains("still running"), "{errors}");
}
