//! The audit log: who called what and how it ended, of every call and of every refusal, and no secret.

use mcp_runtime::audit::Audit;

use crate::prelude::*;

impl AuditLines {
    /// The next `count` lines, in order, without time and duration, which are checked here.
    async fn take(&self, count: usize) -> Vec<Value> {
        let enough = || self.0.lock().unwrap().len() >= count;
        assert!(soon(enough).await, "{:?}", self.0.lock().unwrap());
        let lines = std::mem::take(&mut *self.0.lock().unwrap());
        assert_eq!(lines.len(), count, "{lines:?}");
        lines.iter().map(|line| parse(line)).collect()
    }
}

#[track_caller]
fn parse(line: &str) -> Value {
    assert!(!line.contains('\n'), "{line}");
    let mut line: Value = serde_json::from_str(line).unwrap();
    let members = line.as_object_mut().expect("an object");
    let time = members.remove("time").expect("a time");
    assert!(time.as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{time}");
    if members["event"] == "call" {
        assert!(members.remove("ms").is_some_and(|ms| ms.as_f64().is_some_and(|ms| ms >= 0.0)));
        assert!(members.remove("request").is_some());
    }
    line
}

/// Transfers money
#[mcp_tool]
fn transfer(account: String, #[mcp(secret)] pin: String) -> Result<String, ToolError> {
    if pin.len() == 5 { Ok(account) } else { Err("the PIN is wrong".into()) }
}

/// Only for admins
#[mcp_tool(scopes("admin"))]
fn shut_down() {}

/// A document that a key opens
#[mcp_resource(uri = "vault://{name}/{key}")]
fn vault(name: String, #[mcp(secret)] key: String) -> String {
    format!("{name} {}", key.len())
}

/// A page
#[mcp_resource(uri = "page://one")]
fn page() -> &'static str {
    "one"
}

/// A poem
#[mcp_prompt]
fn poem(topic: String) -> String {
    topic
}

/// Asks first
#[mcp_tool]
async fn careful(ctx: &Context) -> Result<bool, ToolError> {
    Ok(ctx.elicit::<bool>("sure", "Sure?").await?)
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<transfer>()
        .tool::<careful>()
        .resource::<vault>()
        .resource::<page>()
        .prompt::<poem>()
}

#[tokio::test]
async fn each_call_is_a_line() {
    let lines = AuditLines::default();
    let server = serve(builder().audit(lines.sink()));
    let line = |kind: &str, method: &str, item: &str, arguments: Value, outcome: &str| json!({ "event": "call", "method": method, "kind": kind, "item": item, "arguments": arguments, "outcome": outcome });
    server.call("transfer", json!({ "account": "4711", "pin": "xyzzy" })).await.expect_text("4711");
    server.call("transfer", json!({ "account": "4711", "pin": "x" })).await.expect_failure("wrong");
    server.read("page://one").await.expect_ok();
    server.read("vault://plans/xyzzy").await.expect_ok();
    server.prompt("poem", json!({ "topic": "tea" })).await.expect_ok();
    let transfer = |outcome| line("tool", "tools/call", "transfer", json!(["account", "pin"]), outcome);
    assert_eq!(
        lines.take(5).await,
        [
            transfer("ok"),
            transfer("tool_error"),
            line("resource", "resources/read", "page://one", json!([]), "ok"),
            // the URI would tell the key
            line("resource", "resources/read", "vault://{name}/{key}", json!([]), "ok"),
            line("prompt", "prompts/get", "poem", json!(["topic"]), "ok"),
        ]
    );
    // what is not a call is not there
    server.list_tools().await;
    let client = server.answering(json!({ "elicitation": {} }), |_, _| {
        Ok(json!({ "action": "accept", "content": { "value": true } }))
    });
    client.call("careful", json!({})).await.expect_text("true");
    let outcomes: Vec<_> = lines.take(2).await.into_iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["input_required", "ok"]);
}

#[tokio::test]
async fn lines_name_the_caller_also_of_hidden_items_and_over_its_rate() {
    let lines = AuditLines::default();
    let builder = builder().limits(|limits| limits.rate("1/1h"));
    let builder = builder.tool::<shut_down>().audit(lines.sink()).http(|http| {
        http.caller(|parts| {
            let user = parts.headers.get("x-user")?.to_str().ok()?;
            Some(Principal::new("https://id.example.com", user))
        })
    });
    let http = HttpServer::start(builder).await;
    let trace = json!({ "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" });
    let params = json!({ "name": "shut_down", "arguments": {}, "_meta": trace });
    let request = || HttpRequest::modern(7, "tools/call", params.clone()).header("x-user", "ada");
    assert_eq!(request().send(http.address).await.code(), -32602);
    let line = lines.take(1).await.remove(0);
    let expected = json!({
        "event": "call", "method": "tools/call", "kind": "tool", "item": "shut_down", "arguments": [],
        "outcome": "refused", "reason": "hidden", "code": -32602,
        "issuer": "https://id.example.com", "subject": "ada", "address": "127.0.0.1",
        "trace": "0af7651916cd43dd8448eb211c80319c",
    });
    assert_eq!(line, expected);
    assert_eq!(request().send(http.address).await.status, 429);
    let line = lines.take(1).await.remove(0);
    assert_eq!((&line["event"], &line["status"]), (&json!("refused"), &json!(429)), "{line}");
    assert_eq!((&line["subject"], &line["address"]), (&json!("ada"), &json!("127.0.0.1")), "{line}");
    drop(http);
}

/// Ends as it is told
#[mcp_tool(task)]
async fn job(how: String) -> Result<String, ToolError> {
    match how.as_str() {
        "well" => Ok(how),
        "badly" => Err("out of paper".into()),
        "wrong" => Err(ProtocolError::new(1001, "out of ink").into()),
        _ => std::future::pending().await,
    }
}

#[tokio::test]
async fn the_end_of_a_task_is_a_line_that_names_the_task() {
    let lines = AuditLines::default();
    let server = mcp_runtime::server!().tool::<job>().audit(lines.sink()).build().expect("a server");
    let tasks = || json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let anonymous = TestServer::of(&server).answering(tasks(), |_, _| Err("none".to_owned()));
    let ada = TestServer::of(&server)
        .caller(Principal::new("https://id.example.com", "ada"))
        .answering(tasks(), |_, _| Err("none".to_owned()));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let start = async |client: &TestServer, how: &str| {
        let params = json!({ "name": "job", "arguments": { "how": how }, "_meta": { "traceparent": trace } });
        let reply = client.request("tools/call", params).await;
        reply.value()["taskId"].as_str().expect("a task").to_owned()
    };
    for (how, outcome, code) in [
        ("well", "completed", Value::Null),
        ("badly", "tool_error", Value::Null),
        ("wrong", "failed", json!(1001)),
        ("never", "cancelled", Value::Null),
    ] {
        let id = start(&ada, how).await;
        if how == "never" {
            ada.request("tasks/cancel", json!({ "taskId": id })).await.expect_ok();
        }
        let [mut created, mut ended] = <[Value; 2]>::try_from(lines.take(2).await).unwrap();
        if created["event"] == "task" {
            (created, ended) = (ended, created);
        }
        assert_eq!((&created["outcome"], &created["task"]), (&json!("task"), &json!(id)), "{created}");
        assert!(ended.as_object_mut().unwrap().remove("ms").is_some_and(|ms| ms.is_number()), "{ended}");
        let mut expected = json!({
            "event": "task", "kind": "tool", "item": "job", "task": id, "outcome": outcome,
            "issuer": "https://id.example.com", "subject": "ada", "trace": "0af7651916cd43dd8448eb211c80319c",
        });
        if !code.is_null() {
            expected["code"] = code;
        }
        if outcome == "cancelled" {
            expected["reason"] = outcome.into();
        }
        assert_eq!(ended, expected);
    }
    // who has the id of a task without an owner may see its result
    let id = start(&anonymous, "well").await;
    for line in lines.take(2).await {
        assert_eq!(line["task"], id[..8], "{line}");
    }
    // a server that stops ends its tasks
    start(&anonymous, "never").await;
    lines.take(1).await;
    let mut http = HttpServer::of(&server).await;
    http.stop();
    http.stopped().await;
    assert_eq!(lines.take(1).await[0]["outcome"], "cancelled");
}

/// Never ends
#[mcp_tool]
async fn wait_for_ever() -> &'static str {
    std::future::pending().await
}

#[tokio::test]
async fn requests_that_a_busy_connection_refuses_have_lines() {
    let lines = AuditLines::default();
    let builder = mcp_runtime::server!().tool::<wait_for_ever>().audit(lines.sink());
    let server = builder.limits(|limits| limits.max_in_flight(1).max_queued(0)).build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    for id in 1..=2 {
        client.send(&call(id, "wait_for_ever", &json!({}))).await;
    }
    assert_eq!(client.message().await["id"], 2);
    let line = lines.take(1).await.remove(0);
    assert_eq!(line, json!({ "event": "refused", "outcome": "refused", "reason": "busy" }));
}

#[tokio::test]
async fn a_sink_that_panics_loses_its_line_only() {
    let lines = AuditLines::default();
    let written = lines.0.clone();
    let audit = Audit::to(move |line: &str| {
        assert!(!line.contains("poem"), "the sink has panicked");
        written.lock().unwrap().push(line.to_owned());
    });
    let server = serve(builder().audit(audit));
    server.prompt("poem", json!({ "topic": "tea" })).await.expect_ok();
    server.read("page://one").await.expect_ok();
    assert_eq!(lines.take(1).await[0]["item"], "page://one");
}

#[tokio::test]
async fn without_a_function_each_line_is_an_event_that_a_layer_of_its_own_writes_and_filters_of_others_keep_out()
 {
    use tracing_subscriber::{Layer as _, filter::Targets, prelude::*};
    let (audited, logged) = (PrintedText::default(), PrintedText::default());
    let (audit, log) = (audited.clone(), logged.clone());
    let audit = tracing_subscriber::fmt::layer()
        .with_writer(move || audit.clone())
        .without_time()
        .with_level(false)
        .with_target(false)
        .with_ansi(false)
        .with_filter(Targets::new().with_target("mcp_runtime::audit", tracing::Level::INFO));
    let log = tracing_subscriber::fmt::layer()
        .with_writer(move || log.clone())
        .with_filter(tracing_subscriber::filter::LevelFilter::WARN);
    // what opens spans, which must not be in the lines
    let spans = tracing_subscriber::fmt::layer()
        .with_writer(std::io::sink)
        .with_filter(Targets::new().with_target("mcp_runtime::request", tracing::Level::INFO));
    let subscriber = tracing_subscriber::registry().with(audit).with(log).with(spans);
    let _subscribed = subscribe(subscriber);
    let server = serve(builder().audit(Audit::new()));
    server.read("page://one").await.expect_ok();
    server.call("transfer", json!({ "account": "4711\n", "pin": "x" })).await.expect_failure("wrong");
    server.call("made_up", json!({})).await.expect_code(-32602);
    let lines: Vec<Value> = audited.text().lines().map(parse).collect();
    let items: Vec<_> = lines.iter().map(|line| format!("{} {}", line["item"], line["outcome"])).collect();
    assert_eq!(items, [r#""page://one" "ok""#, r#""transfer" "tool_error""#, r#""made_up" "refused""#]);
    assert!(!logged.text().contains("page://one"), "{}", logged.text());
}

#[tokio::test]
async fn secrets_are_in_no_log_span_or_audit_line() {
    let (everything, _subscribed) = everything_printed();
    let lines = AuditLines::default();
    let builder = builder()
        .audit(lines.sink().values())
        .telemetry(|telemetry| telemetry.arguments())
        .http(|http| http.caller(|_| Some(Principal::new("test", "ada"))));
    let http = HttpServer::start(builder).await;
    let token = "Bearer xyzzy-plugh";
    let send = async |method: &str, params: Value| {
        HttpRequest::modern(1, method, params).header("authorization", token).send(http.address).await
    };
    // with a secret that is right, one that is wrong, one of another type, and one under a misspelt name
    for arguments in [
        json!({ "account": "4711", "pin": "xyzzy" }),
        json!({ "account": "4711", "pin": "xyzzy-too-long" }),
        json!({ "account": "4711", "pin": { "is": ["xyzzy"] } }),
        json!({ "account": 4711, "PIN": "xyzzy" }),
    ] {
        assert_eq!(
            send("tools/call", json!({ "name": "transfer", "arguments": arguments })).await.status,
            200
        );
    }
    assert_eq!(send("resources/read", json!({ "uri": "vault://plans/xyzzy" })).await.status, 200);
    let audited = lines.take(5).await;
    drop(http);
    let logged = everything.text();
    assert!(logged.contains("mcp.server.request") && logged.contains("4711"), "{logged}");
    for text in [logged, Value::from(audited).to_string()] {
        assert!(!text.contains("xyzzy"), "{text}");
    }
}

#[tokio::test]
async fn values_are_written_if_asked_for() {
    let lines = AuditLines::default();
    let server: TestServer = serve(builder().audit(lines.sink().values()));
    server.call("transfer", json!({ "account": "4711\n", "pin": "xyzzy" })).await.expect_ok();
    assert_eq!(lines.take(1).await[0]["arguments"], json!({ "account": "4711\n", "pin": "[secret]" }));
    // which of them would be secret is not known
    server.call("transfre", json!({ "account": "4711", "pin": "xyzzy" })).await.expect_code(-32602);
    assert_eq!(lines.take(1).await[0]["arguments"], json!(["account", "pin"]));
}
