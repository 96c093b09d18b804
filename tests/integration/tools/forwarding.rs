//! Tools that pass their calls on: what runs is one call, that of the other tool.

use mcp_runtime::{
    layer::{LayeredCall, Next},
    tool::ToolBuilder,
};

use crate::prelude::*;

/// Passes on what it is told: the name and the arguments.
fn forwarder(name: &str) -> ToolBuilder {
    ToolDef::builder(name).input_schema(json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "arguments": { "type": "object" } },
        "required": ["name"],
    }))
}

#[allow(clippy::needless_pass_by_value, reason = "as `forwards` takes it")]
fn pass_on(_: &Context, arguments: Value) -> Result<(String, Value), ToolError> {
    let name = arguments["name"].as_str().unwrap_or_default();
    match name {
        "refused" => Err(ToolError::new("that one is refused")),
        "panic" => panic!("boom"),
        "nothing" => Ok(("greet".to_owned(), Value::Null)),
        name => Ok((name.to_owned(), arguments.get("arguments").cloned().unwrap_or_else(|| json!({})))),
    }
}

/// Greets
#[mcp_tool(max_concurrency = 1, rate = "3/1h")]
async fn greet(name: String, #[mcp(secret, default)] pin: String, ctx: &Context) -> String {
    ctx.progress(1).send();
    format!("hello {name}{}", pin.len())
}

/// Asks first
#[mcp_tool]
async fn careful(ctx: &Context) -> Result<String, ToolError> {
    let sure = ctx.elicit::<bool>("sure", "Sure?").await?;
    Ok(format!("sure: {sure}"))
}

/// Needs a form
#[mcp_tool(requires(elicitation))]
fn needs() -> &'static str {
    "has"
}

/// Is told a region
#[mcp_tool]
fn regional(#[mcp(header = "Region")] region: String) -> String {
    region
}

/// Becomes a task
#[mcp_tool(task)]
async fn job() -> &'static str {
    "done"
}

/// Writes notes
#[mcp_tool(scopes("write"))]
fn write() -> &'static str {
    "written"
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<greet>()
        .tool::<careful>()
        .tool::<needs>()
        .tool::<regional>()
        .tool::<job>()
        .tool::<write>()
        .add(forwarder("pass").secret("arguments").forwards(pass_on))
        .add(forwarder("other").forwards(pass_on))
        .http(|http| http.caller(|_| None))
}

fn server() -> TestServer {
    TestServer::new(builder()).unwrap().caller(Principal::new("test", "ada"))
}

#[allow(clippy::needless_pass_by_value, reason = "arguments are written where they are used")]
fn to(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

#[tokio::test]
async fn a_call_that_is_passed_on_is_one_call_with_the_gates_and_the_layers_of_the_other_tool() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = calls.clone();
    let layer = move |call: LayeredCall, next: Next| {
        seen.lock().unwrap().push(call.name().to_owned());
        async move { next.run(&call).await }
    };
    let lines = AuditLines::default();
    let server = TestServer::new(builder().layer(layer).audit(lines.sink())).unwrap();
    for _ in 0..3 {
        server
            .call("pass", to("greet", json!({ "name": "Ada", "pin": "xyzzy" })))
            .await
            .expect_text("hello Ada5");
    }
    assert_eq!(*calls.lock().unwrap(), ["greet", "greet", "greet"]);
    // its own rate is used up, whichever way it is called
    server.call("greet", json!({ "name": "Ada" })).await.expect_failure("1 hour");
    server.call("pass", to("greet", json!({ "name": "Ada" }))).await.expect_failure("1 hour");
    assert!(soon(|| lines.0.lock().unwrap().len() == 5).await);
    let lines = lines.0.lock().unwrap().join("\n");
    assert_eq!(lines.matches(r#""item":"greet""#).count(), 5, "{lines}");
    assert!(!lines.contains("xyzzy") && !lines.contains(r#""item":"pass""#), "{lines}");
}

#[tokio::test]
async fn what_is_passed_on_is_answered_as_a_call_by_name() {
    for (name, arguments) in [
        ("greet", json!({ "name": 5, "extra": [] })),
        ("greet", json!({ "nane": "x" })),
        ("greeet", json!({ "name": "x" })),
        ("write", json!({})),
        ("needs", json!({})),
        ("pass ", json!({})),
        ("PASS", json!({})),
    ] {
        // each with its own rates
        let server = server();
        // without their ids
        let shown =
            |reply: Reply| format!("{reply:?}").split_once("\"jsonrpc\"").map(|(_, rest)| rest.to_owned());
        let direct = shown(server.call(name, arguments.clone()).await);
        assert_eq!(direct, shown(server.call("pass", to(name, arguments)).await), "{name}");
    }
}

#[tokio::test]
async fn a_forwarder_refuses_and_a_call_is_passed_on_once() {
    let server = server();
    server.call("pass", to("refused", json!({}))).await.expect_failure("that one is refused");
    server.call("pass", json!({ "arguments": {} })).await.expect_failure("name");
    server.call("pass", to("panic", json!({}))).await.expect_failure("failed");
    server.call("pass", to("nothing", json!({}))).await.expect_failure("failed");
    for name in ["pass", "other"] {
        let reply = server.call("pass", to(name, to("greet", json!({ "name": "x" })))).await;
        reply.expect_failure(&format!("`{name}` passes its calls on"));
    }
    let reply = server.call("pass", to("regional", json!({ "region": "eu" }))).await;
    reply.expect_failure("`regional` repeats arguments in headers");
    server.call("regional", json!({ "region": "eu" })).await.expect_text("eu");
}

#[tokio::test]
async fn progress_and_questions_are_those_of_the_other_tool() {
    let server = server();
    let client = server.answering(json!({ "elicitation": {} }), |_, _| {
        Ok(json!({ "action": "accept", "content": { "value": true } }))
    });
    client.call("pass", to("careful", json!({}))).await.expect_text("sure: true");
    client.call("pass", to("needs", json!({}))).await.expect_text("has");
    let legacy = TestServer::new(builder()).unwrap().legacy(Revision::V2025_06_18);
    let reply = legacy.call("pass", to("greet", json!({ "name": "Bo" }))).await;
    reply.expect_text("hello Bo0");
}

#[tokio::test]
async fn a_call_that_is_passed_on_may_become_a_task() {
    let params = json!({
        "name": "pass", "arguments": to("job", json!({})),
        "_meta": { "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } } },
    });
    let started = server().request("tools/call", params).await.value().clone();
    assert_eq!(started["resultType"], "task", "{started}");
    // for those who know no tasks it runs within its request
    server().call("pass", to("job", json!({}))).await.expect_text("done");
}

#[tokio::test]
async fn transforms_of_a_forwarder_hold() {
    let server = builder()
        .transform(|item| item.only("pass", |pass| pass.rename("greet_someone").fix("name", "greet")));
    let server = TestServer::new(server).unwrap();
    server.call("greet_someone", json!({ "arguments": { "name": "Cy" } })).await.expect_text("hello Cy0");
}

#[test]
fn options_of_a_function_are_errors_of_a_forwarder() {
    for (option, tool) in [
        ("timeout", forwarder("f").timeout(Duration::from_secs(1))),
        ("rate", forwarder("f").rate("1/1s")),
        ("max_concurrency", forwarder("f").max_concurrency(1)),
        ("max_result", forwarder("f").max_result(9)),
        ("output_schema", forwarder("f").output_schema(json!({ "type": "object" }))),
    ] {
        let refused = mcp_runtime::server!().add(tool.forwards(pass_on)).build().unwrap_err().to_string();
        assert!(refused.contains(&format!("passes its calls on, so `{option}` has no effect")), "{refused}");
    }
}
