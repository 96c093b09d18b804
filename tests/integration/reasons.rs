//! Why a call failed or was refused: the same name in the audit log, metrics and spans.

use crate::prelude::*;
use mcp_runtime::{
    auth::Oauth,
    client_request::ClientFeature,
    config::ServerInfo,
    layer::{LayeredCall, Next, Outcome},
};

#[mcp_tool(timeout = "20ms")]
async fn slow() {
    std::future::pending::<()>().await;
}

#[mcp_tool]
fn panics() {
    panic!("a tool that panics");
}

#[mcp_tool(blocking)]
fn panics_on_a_thread() {
    panic!("a tool that panics");
}

#[mcp_tool(rate = "1/1h")]
fn rare() {}

#[mcp_tool(max_concurrency_per_caller = 1)]
async fn single() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

#[mcp_tool]
fn picky(#[mcp(range(1..=3))] n: u32) -> String {
    n.to_string()
}

#[mcp_tool]
fn private() -> Result<String, ToolError> {
    Err(std::io::Error::other("the database is gone").into())
}

#[mcp_tool]
fn says_no() -> Result<String, ToolError> {
    Err("no".into())
}

#[mcp_tool(max_result = "1KB")]
fn large() -> Json<Vec<String>> {
    Json(vec!["x".repeat(2000)])
}

#[mcp_resource(uri = "panics://{id}")]
fn panicking_resource(id: u32) -> String {
    panic!("the resource {id} panics");
}

#[mcp_resource(uri = "page://one")]
fn page() -> &'static str {
    "one"
}

#[mcp_prompt]
fn numbered(n: u32) -> String {
    n.to_string()
}

/// Refuses a call, lets it pass, or fails after it.
async fn guard(call: LayeredCall, next: Next) -> Outcome {
    match call.name() {
        "guarded" => Err("not today".into()),
        "failed_later" => {
            next.run(&call).await?;
            Err("the result was lost".into())
        }
        _ => next.run(&call).await,
    }
}

fn tool(name: &str) -> mcp_runtime::tool::ToolBuilder {
    ToolDef::builder(name)
}

fn builder() -> ServerBuilder {
    let unfit = tool("unfit")
        .output_schema(json!({ "type": "object", "required": ["a"] }))
        .handler(|_: ToolCall| async { ToolResult::default().structured(&json!({ "b": 1 })) });
    mcp_runtime::server!()
        .tool::<slow>()
        .tool::<panics>()
        .tool::<panics_on_a_thread>()
        .tool::<rare>()
        .tool::<single>()
        .tool::<picky>()
        .tool::<private>()
        .tool::<says_no>()
        .tool::<large>()
        .resource::<panicking_resource>()
        .resource::<page>()
        .prompt::<numbered>()
        .add(unfit)
        .add(tool("needs_roots").requires([ClientFeature::Roots]).handler(|_: ToolCall| async { "" }))
        .add(tool("guarded").handler(|_: ToolCall| async { "" }))
        .add(tool("failed_later").handler(|_: ToolCall| async { "" }))
        .layer(guard)
}

/// The labels of the durations of requests, with how many there are.
fn durations(text: &str) -> BTreeMap<String, String> {
    samples(text, "mcp_server_operation_duration_seconds_count")
}

#[tokio::test]
async fn a_failed_call_has_one_reason_in_the_audit_log_metrics_and_spans() {
    let recorded = Spans::capture();
    let lines = AuditLines::default();
    let server = builder().audit(lines.sink()).telemetry(|t| t.metrics()).build().unwrap();
    let client = TestServer::of(&server);
    client.call("rare", json!({})).await.expect_ok();
    lines.next().await;
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let read = |uri: &str| json!({ "uri": uri });
    let forged = json!({ "name": "says_no", "requestState": "forged" });
    let (picky, numbered) = (call("picky", json!({ "n": 9 })), call("numbered", json!({ "n": "x" })));
    // outcome, reason, `error.type`, error code
    for (method, params, outcome, reason, error, code) in [
        ("tools/call", call("slow", json!({})), "tool_error", "timeout", "timeout", None),
        ("tools/call", call("panics", json!({})), "tool_error", "panic", "panic", None),
        ("tools/call", call("panics_on_a_thread", json!({})), "tool_error", "panic", "panic", None),
        ("tools/call", call("rare", json!({})), "refused", "rate_limited", "rate_limited", None),
        ("tools/call", picky, "tool_error", "invalid_arguments", "invalid_arguments", None),
        ("tools/call", call("unfit", json!({})), "tool_error", "output_schema", "output_schema", None),
        ("tools/call", call("large", json!({})), "tool_error", "result_size", "result_size", None),
        ("tools/call", call("guarded", json!({})), "tool_error", "layer", "layer", None),
        ("tools/call", call("failed_later", json!({})), "tool_error", "layer", "layer", None),
        ("tools/call", call("private", json!({})), "tool_error", "private", "tool_error", None),
        ("tools/call", call("says_no", json!({})), "tool_error", "", "tool_error", None),
        ("tools/call", call("made_up", json!({})), "refused", "unknown", "-32602", Some(-32602)),
        ("prompts/get", call("made_up", json!({})), "refused", "unknown", "-32602", Some(-32602)),
        ("resources/read", read("page://two"), "refused", "unknown", "-32602", Some(-32602)),
        ("tools/call", call("needs_roots", json!({})), "refused", "capability", "-32021", Some(-32021)),
        ("tools/call", forged, "refused", "state", "-32602", Some(-32602)),
        ("resources/read", read("panics://7"), "error", "panic", "panic", Some(-32603)),
        ("resources/read", read("panics://x"), "error", "invalid_arguments", "-32602", Some(-32602)),
        ("prompts/get", numbered, "error", "invalid_arguments", "-32602", Some(-32602)),
    ] {
        recorded.take();
        let _ = client.request(method, params.clone()).await;
        let line = lines.next().await;
        let text = |member: &str| line[member].as_str().unwrap_or_default();
        assert_eq!((text("outcome"), text("reason")), (outcome, reason), "{line}");
        assert_eq!(line["code"].as_i64(), code, "{line}");
        let spans = recorded.take();
        let attribute = |key: &str| spans.iter().find_map(|span| span.get(key)).cloned().unwrap_or_default();
        assert_eq!(
            (attribute("error.type"), attribute("mcp.error.reason")),
            (error.into(), reason.into()),
            "{params}"
        );
        let code = code.map(|code| code.to_string()).unwrap_or_default();
        assert_eq!(attribute("rpc.response.status_code"), code, "{params}");
        let item = params["name"].as_str().filter(|name| *name != "made_up").unwrap_or_default();
        let labels = durations(&server.metrics().unwrap());
        let counted = labels.keys().any(|labels| {
            labels.contains(&format!(r#"error_type="{error}""#))
                && labels.contains(&format!(r#"mcp_error_reason="{reason}""#))
                && labels.contains(&format!(r#"rpc_response_status_code="{code}""#))
                && labels.contains(&format!(r#"="{item}""#))
        });
        assert!(counted, "{params}: {labels:?}");
    }
    // one that runs already
    let (first, second) = tokio::join!(client.call("single", json!({})), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.call("single", json!({})).await
    });
    assert_ne!(first.is_error(), second.is_error());
    assert_eq!(lines.next().await["reason"], "concurrency");
    lines.next().await;
    // one that its client leaves
    let left = tokio::time::timeout(Duration::from_millis(20), client.call("single", json!({}))).await;
    assert!(left.is_err());
    let span = format!("{:?}", recorded.take().pop().expect("its span"));
    assert!(span.contains("error.type") && span.contains("cancelled"), "{span}");
    let line = lines.next().await;
    assert_eq!((&line["outcome"], &line["reason"]), (&json!("cancelled"), &json!("cancelled")));
}

#[tokio::test]
async fn spans_and_metrics_name_the_template_of_a_resource_and_not_the_uri_that_a_client_made_up() {
    let recorded = Spans::capture();
    let server = builder().telemetry(|t| t.metrics()).build().unwrap();
    let http = HttpServer::of(&server).await;
    let attributes = || recorded.take().into_iter().flatten().collect::<BTreeMap<_, _>>();
    for (uri, fixed, template) in
        [("page://one", Some("page://one"), "page://one"), ("panics://7", None, "panics://{id}")]
    {
        let request = HttpRequest::modern(1, "resources/read", json!({ "uri": uri }));
        request.with("host", "localhost:8080").send(http.address).await;
        let found = attributes();
        assert_eq!(found.get("mcp.resource.uri").map(String::as_str), fixed, "{found:?}");
        assert_eq!(found["mcp.resource.uri_template"], template);
        assert_eq!(found["network.protocol.version"], "1.1");
        assert_eq!((&*found["server.address"], &*found["server.port"]), ("localhost", "8080"));
    }
    HttpRequest::initialize("2025-11-25").send(http.address).await;
    let found = attributes();
    for (key, value) in [("network.transport", "tcp"), ("network.protocol.version", "1.1")] {
        assert_eq!(found[key], value, "{found:?}");
    }
    let text = server.metrics().unwrap();
    assert!(
        text.contains(r#"mcp_resource_uri_template="panics://{id}""#) && !text.contains("panics://7"),
        "{text}"
    );
    let initialized = durations(&text).into_keys().find(|l| l.contains(r#"mcp_method_name="initialize""#));
    assert!(initialized.is_some_and(|labels| labels.contains(r#"network_transport="tcp""#)), "{text}");
    drop(http);
}

const RESOURCE: &str = "https://mcp.example.com/mcp";

fn call_of(token: &str) -> HttpRequest {
    let request = HttpRequest::modern(1, "tools/call", json!({ "name": "says_no", "arguments": {} }));
    if token.is_empty() { request } else { request.header("authorization", &format!("Bearer {token}")) }
}

/// The next line of the audit log, which is of a refusal with this reason, and metrics count it.
pub(crate) async fn assert_refused(server: &Server, lines: &AuditLines, status: u16, reason: &str) -> Value {
    let line = lines.next().await;
    assert_eq!((&line["event"], &line["reason"]), (&json!("refused"), &json!(reason)), "{line}");
    assert_eq!(line["status"], status, "{line}");
    let counted = format!(
        r#"mcp_server_refused_requests_total{{http_response_status_code="{status}",mcp_error_reason="{reason}"}}"#
    );
    assert!(server.metrics().unwrap().contains(&counted), "{reason}: {}", server.metrics().unwrap());
    line
}

/// Those of other tokens are in the table of `authorization/tokens.rs`.
#[tokio::test]
async fn a_request_without_a_token_and_a_caller_that_is_refused_have_the_reason() {
    let issuer = Issuer::start().await;
    let lines = AuditLines::default();
    let oauth = Oauth::issuer(&issuer.url).resource(RESOURCE).scopes(["a", "b"]).required_scopes(["a", "b"]);
    let server = builder()
        .auth(oauth.accept_if(|principal| principal.subject() != "mallory"))
        .audit(lines.sink().field("tenant", |principal| principal.claims()?.get("tenant").cloned()))
        .telemetry(|t| t.metrics())
        .build()
        .unwrap();
    let http = HttpServer::of(&server).await;
    let good = issuer.token("ada", RESOURCE, "a b");
    for (status, reason, request) in [
        (401, "token_missing", call_of("")),
        (400, "token_misplaced", call_of(&good).path("/mcp?access_token=x")),
    ] {
        assert_eq!(request.send(http.address).await.status, status, "{reason}");
        assert_refused(&server, &lines, status, reason).await;
    }
    // callers that are known, and refused: who they are, and what they lack
    let poor = issuer.token("bob", RESOURCE, "b");
    let mallory = issuer.token("mallory", RESOURCE, "a b");
    for (token, subject, reason, scopes) in
        [(poor, "bob", "scopes", json!("a")), (mallory, "mallory", "forbidden", Value::Null)]
    {
        assert_eq!(call_of(&token).send(http.address).await.status, 403);
        let line = lines.next().await;
        assert_eq!((&line["reason"], &line["subject"]), (&json!(reason), &json!(subject)), "{line}");
        assert_eq!((&line["scopes"], &line["client_id"]), (&scopes, &json!("test")), "{line}");
        assert_eq!(line["tenant"], "acme", "{line}");
    }
    assert_eq!(call_of(&good).send(http.address).await.status, 200);
    let line = lines.next().await;
    assert_eq!((&line["client_id"], &line["tenant"]), (&json!("test"), &json!("acme")), "{line}");
    let keys = format!(
        r#"mcp_server_authorization_duration_seconds_count{{issuer="{}",outcome="ok",question="keys"}}"#,
        issuer.url
    );
    assert!(server.metrics().unwrap().contains(&keys), "{}", server.metrics().unwrap());
    drop(http);
}

/// Needs scopes
#[mcp_tool(scopes("a", "b"))]
fn scoped() {}

#[tokio::test]
async fn a_call_that_lacks_scopes_names_those_that_are_missing() {
    let issuer = Issuer::start().await;
    let lines = AuditLines::default();
    let oauth = Oauth::issuer(&issuer.url).resource(RESOURCE).scopes(["a", "b"]);
    let oauth = oauth.introspection("mcp", "s&cret").introspection_cache(Duration::ZERO);
    let server = mcp_runtime::server!()
        .tool::<scoped>()
        .auth(oauth)
        .audit(lines.sink())
        .telemetry(|t| t.metrics())
        .build()
        .unwrap();
    let http = HttpServer::of(&server).await;
    let mut claims = issuer.claims("ada", RESOURCE, "b");
    claims["active"] = true.into();
    issuer.set_token("opaque", claims);
    let call = |token: &str| {
        HttpRequest::modern(1, "tools/call", json!({ "name": "scoped", "arguments": {} }))
            .header("authorization", &format!("Bearer {token}"))
    };
    assert_eq!(call("opaque").send(http.address).await.status, 403);
    let line = lines.next().await;
    assert_eq!((&line["event"], &line["reason"]), (&json!("call"), &json!("scopes")), "{line}");
    assert_eq!(line["scopes"], "a", "{line}");
    assert_eq!(call("unknown").send(http.address).await.status, 401);
    assert_eq!(lines.next().await["reason"], "token_inactive");
    issuer.set_down(true);
    assert_eq!(call("later").send(http.address).await.status, 503);
    assert_eq!(lines.next().await["reason"], "auth_unavailable");
    let text = server.metrics().unwrap();
    for outcome in ["active", "inactive", "error"] {
        let asked = format!(r#"outcome="{outcome}",question="introspection"}} 1"#);
        assert!(text.contains(&asked), "{outcome}: {text}");
    }
    drop(http);
}

#[tokio::test]
async fn what_http_refuses_has_a_reason() {
    let lines = AuditLines::default();
    let builder = builder().audit(lines.sink()).http(|http| http.max_body(2000));
    let card =
        |info: ServerInfo| info.registry_name("com.example/notes").public_url("https://example.com/mcp");
    let http = HttpServer::start(builder.info(card)).await;
    let request = || HttpRequest::modern(1, "tools/call", json!({ "name": "says_no", "arguments": {} }));
    let large = json!({ "name": "says_no", "arguments": { "x": "x".repeat(3000) } });
    for (status, reason, request) in [
        (403, "host", request().with("host", "evil.example")),
        (403, "origin", request().header("origin", "https://evil.example")),
        (413, "body_size", HttpRequest::modern(1, "tools/call", large)),
        (415, "media_type", request().with("content-type", "text/plain")),
        (406, "not_acceptable", request().with("accept", "text/html")),
        (404, "session", HttpRequest::legacy("unknown", 1, "tools/list", &json!({}))),
        (405, "method_not_allowed", HttpRequest::new("PUT")),
        (405, "method_not_allowed", HttpRequest::new("PUT").path("/mcp/server-card")),
    ] {
        assert_eq!(request.send(http.address).await.status, status, "{reason}");
        let line = lines.next().await;
        assert_eq!((&line["status"], &line["reason"]), (&json!(status), &json!(reason)), "{line}");
    }
    drop(http);
}

/// Writes what it gets
#[mcp_tool]
fn write(text: String, rest: Option<Vec<String>>) -> String {
    format!("{} {}", text.len(), rest.map_or(0, |rest| rest.len()))
}

#[tokio::test]
async fn a_line_of_the_audit_log_has_a_bounded_length_and_no_character_that_ends_it() {
    let lines = AuditLines::default();
    let audit = lines.sink().values();
    let server = serve(mcp_runtime::server!().tool::<write>().tool::<picky>().audit(audit));
    for (arguments, kept) in [
        (json!({ "text": "x".repeat(100_000) }), "xxx"),
        (json!({ "text": "\u{2028}".repeat(10_000) }), "\\u2028"),
        (json!({ "text": "\"".repeat(10_000) }), "\\\""),
        (json!({ "text": "a", "rest": vec!["y".repeat(100); 500] }), "yyy"),
    ] {
        server.call("write", arguments).await.expect_ok();
        let text = lines.text().await;
        assert!(text.len() <= 16 << 10, "{}", text.len());
        let line: Value = serde_json::from_str(&text).unwrap();
        assert!(text.contains('…') && text.contains(kept), "{text}");
        assert_eq!(line["outcome"], "ok");
    }
    let many: serde_json::Map<String, Value> =
        (0..300).map(|n| (format!("{n}-{}", "z".repeat(300)), json!("w".repeat(100)))).collect();
    for tool in ["write", "made_up", &"n".repeat(5000)] {
        let _ = server.call(tool, Value::Object(many.clone())).await;
        let text = lines.text().await;
        assert!(text.len() <= 16 << 10 && text.contains('…'), "{}", text.len());
        serde_json::from_str::<Value>(&text).unwrap();
    }
    for ending in ["\u{2028}", "\u{2029}", "\u{85}", "\u{202e}", "\u{7f}", "\n"] {
        let text = format!("before{ending}after");
        let _ = server.call(&text, json!({ &text: 1 })).await;
        server.call("write", json!({ "text": text })).await.expect_ok();
        for member in ["item", "arguments"] {
            let line = lines.text().await;
            assert!(!line.contains(ending), "{line}");
            let line: Value = serde_json::from_str(&line).unwrap();
            assert!(line[member].to_string().contains(ending) || ending == "\n", "{line}");
        }
    }
}

#[tokio::test]
async fn a_field_of_the_audit_log_has_a_name_of_its_own_and_a_bounded_value() {
    for (fields, message) in [
        (vec!["subject"], "has the name of another member"),
        (vec!["tenant", "tenant"], "has the name of another member"),
        (vec![""], "has the name of another member"),
        (vec!["a", "b", "c", "d", "e", "f", "g", "h", "i"], "at most 8"),
    ] {
        let audit =
            fields.iter().fold(AuditLines::default().sink(), |audit, name| audit.field(*name, |_| Some(1)));
        let error = build_error(builder().audit(audit));
        assert!(error.contains(message), "{error}");
    }
    let lines = AuditLines::default();
    let audit = lines
        .sink()
        .field("tenant", |principal| Some(principal.subject().repeat(1000)))
        .field("none", |_| None::<String>)
        .field("broken", |_| -> Option<String> { panic!("a field that panics") })
        .field("number", |_| Some(7));
    let server = builder().audit(audit).build().unwrap();
    let client = TestServer::of(&server).caller(Principal::new("test", "ada"));
    let _ = client.call("says_no", json!({})).await;
    let line = lines.next().await;
    assert!(
        line["tenant"].as_str().is_some_and(|tenant| tenant.len() <= 128 && tenant.ends_with('…')),
        "{line}"
    );
    assert_eq!((line.get("none"), line.get("broken"), &line["number"]), (None, None, &json!(7)), "{line}");
}

/// A job
#[mcp_tool(task, timeout = "20ms")]
async fn job(ends: bool) -> &'static str {
    if !ends {
        std::future::pending::<()>().await;
    }
    "done"
}

#[tokio::test]
async fn tasks_are_counted() {
    let server = mcp_runtime::server!().tool::<job>().telemetry(|t| t.metrics()).build().unwrap();
    let client = TestServer::of(&server);
    client.call_task("job", json!({ "ends": true })).await.expect_ok();
    client.call_task("job", json!({ "ends": false })).await.expect_failure("longer than its limit");
    let counts = |labels: &str| {
        let text = server.metrics().unwrap();
        text.contains(&format!("mcp_server_task_duration_seconds_count{{{labels}}} 1\n"))
    };
    for labels in [
        r#"error_type="",gen_ai_tool_name="job",mcp_error_reason="",mcp_task_outcome="completed""#,
        r#"error_type="timeout",gen_ai_tool_name="job",mcp_error_reason="timeout",mcp_task_outcome="tool_error""#,
    ] {
        assert!(soon(|| counts(labels)).await, "{}", server.metrics().unwrap());
    }
    let text = server.metrics().unwrap();
    assert!(text.contains("mcp_server_active_tasks 0\n"), "{text}");
}
