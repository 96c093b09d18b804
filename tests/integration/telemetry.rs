//! Spans of requests, as subscribers see them, and metrics. `tests/external` has the spans that exporters of OpenTelemetry get.

use crate::prelude::*;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Adds, unless a sum is too large
#[mcp_tool]
fn add(a: i64, b: i64) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| "too large".into())
}

/// A greeting
#[mcp_prompt]
fn greeting(name: String) -> String {
    format!("Greet {name}.")
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<add>().prompt::<greeting>()
}

#[tokio::test]
async fn subscribers_that_export_nothing_see_the_trace_of_a_client_as_fields() {
    let printed = PrintedText::default();
    let writer = printed.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _subscribed = subscribe(subscriber);
    let server = serve(builder());
    for (meta, traced) in
        [(json!({ "traceparent": TRACEPARENT }), true), (json!({ "traceparent": "00-zz" }), false)]
    {
        printed.clear();
        let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 }, "_meta": meta });
        server.request("tools/call", params).await.expect_text("3");
        let text = printed.text();
        assert!(text.contains("mcp.server.request"), "{text}");
        for field in
            [r#"trace_id="0af7651916cd43dd8448eb211c80319c""#, r#"parent_span_id="b7ad6b7169203331""#]
        {
            assert_eq!(text.contains(field), traced, "{text}");
        }
    }
}

/// Signs in
#[mcp_tool]
fn sign_in(user: String, #[mcp(secret, name = "pass_word")] password: String) -> String {
    format!("{user} {}", password.len())
}

#[tokio::test]
async fn arguments_are_recorded_only_if_asked_for_and_never_those_that_are_secret() {
    let spans = Spans::capture();
    let arguments = json!({ "user": "ada", "pass_word": "xyzzy", "passWord": "xyzzy" });
    serve(mcp_runtime::server!().tool::<sign_in>()).call("sign_in", arguments.clone()).await.expect_ok();
    assert!(!format!("{:?}", spans.only()).contains("ada"));
    let at_run_time = ToolDef::builder("at_run_time").secret("pass_word").handler(|_: ToolCall| async { "" });
    let builder = mcp_runtime::server!().tool::<sign_in>().add(at_run_time).telemetry(|t| t.arguments());
    let server = serve(builder);
    for tool in ["sign_in", "at_run_time"] {
        server.call(tool, arguments.clone()).await.expect_ok();
        let span = spans.only();
        let recorded: Value = serde_json::from_str(&span["gen_ai.tool.call.arguments"]).unwrap();
        assert_eq!(recorded, json!({ "user": "ada", "pass_word": "[secret]", "passWord": "[secret]" }));
        assert!(!format!("{span:?}").contains("xyzzy"), "{span:?}");
    }
}

#[tokio::test]
async fn spans_name_transport_session_and_address() {
    let spans = Spans::capture();
    let server = builder().build().unwrap();
    let http = HttpServer::of(&server).await;
    let modern = HttpRequest::modern(1, "tools/list", json!({}));
    assert_eq!(modern.send(http.address).await.status, 200);
    let span = spans.only();
    for (key, value) in
        [("network.transport", "tcp"), ("network.protocol.name", "http"), ("client.address", "127.0.0.1")]
    {
        assert_eq!(span[key], value, "{span:?}");
    }
    assert!(!span.contains_key("mcp.session.id"), "{span:?}");
    let session = HttpRequest::initialize("2025-11-25").send(http.address).await.session();
    assert_eq!(spans.only()["otel.name"], "initialize");
    for _ in 0..2 {
        HttpRequest::legacy(&session, 1, "tools/list", &json!({})).send(http.address).await;
    }
    let of_session = spans.take();
    assert_eq!(of_session[0]["mcp.session.id"], of_session[1]["mcp.session.id"]);
    // who has the id may use the session
    assert!(
        !of_session[0]["mcp.session.id"].contains(&session)
            && !session.contains(&of_session[0]["mcp.session.id"])
    );
    assert_eq!(of_session[0]["mcp.protocol.version"], "2025-11-25");
    let mut lines = LineConnection::serve(&server, 1 << 16);
    lines.reply_to(&call(1, "add", &json!({ "a": 1, "b": 2 }))).await;
    assert_eq!(spans.only()["network.transport"], "pipe");
    lines.close_input().await;
    lines.served().await;
    drop(http);
}

const COUNT: &str = "mcp_server_operation_duration_seconds_count";

#[tokio::test]
async fn metrics_count_requests_and_made_up_names_create_no_series() {
    let server = builder().telemetry(|telemetry| telemetry.metrics()).build().unwrap();
    let client = TestServer::of(&server);
    for n in 0..10_000 {
        client.call(&format!("made_up_{n}"), json!({})).await.expect_code(-32602);
    }
    for n in 0..100 {
        client.prompt(&format!("made_up_{n}"), json!({})).await.expect_code(-32602);
        client.request(&format!("made/up/{n}"), json!({})).await.expect_code(-32601);
    }
    client.call("add", json!({ "a": 1, "b": 2 })).await.expect_ok();
    client.call("add", json!({ "a": i64::MAX, "b": 2 })).await.expect_failure("too large");
    client.prompt("greeting", json!({ "name": "Ada" })).await.expect_ok();
    let text = server.metrics().expect("they are collected");
    assert!(!text.contains("made"), "{text}");
    let series = samples(&text, COUNT);
    assert_eq!(series.len(), 6, "{series:?}");
    let sample = |method: &str, tool: &str, prompt: &str, error: &str| {
        let reason = if error == "-32602" { "unknown" } else { "" };
        let code = if error.starts_with('-') { error } else { "" };
        let labels = format!(
            r#"{{error_type="{error}",gen_ai_prompt_name="{prompt}",gen_ai_tool_name="{tool}",mcp_error_reason="{reason}",mcp_event_name="",mcp_method_name="{method}",mcp_protocol_version="2026-07-28",mcp_resource_uri_template="",network_protocol_version="",network_transport="",rpc_response_status_code="{code}"}}"#
        );
        series.get(&labels).unwrap_or_else(|| panic!("no {labels} in {series:?}")).as_str()
    };
    assert_eq!(sample("tools/call", "", "", "-32602"), "10000");
    assert_eq!(sample("prompts/get", "", "", "-32602"), "100");
    assert_eq!(sample("_OTHER", "", "", "-32601"), "100");
    assert_eq!(sample("tools/call", "add", "", ""), "1");
    assert_eq!(sample("tools/call", "add", "", "tool_error"), "1");
    assert_eq!(sample("prompts/get", "", "greeting", ""), "1");
    assert!(text.contains("\nmcp_server_active_requests 0\n"), "{text}");
}

#[tokio::test]
async fn metrics_have_the_duration_of_connections_and_refusals() {
    let server = builder().telemetry(|telemetry| telemetry.metrics()).build().unwrap();
    let mut lines = LineConnection::serve(&server, 1 << 16);
    lines.shake_hands("2025-06-18").await;
    lines.reply_to(&legacy_call(1, "add", &json!({ "a": 1, "b": 2 }))).await;
    lines.close_input().await;
    lines.served().await;
    let text = || server.metrics().expect("they are collected");
    let labels = r#"{mcp_protocol_version="2025-06-18",network_transport="pipe"}"#;
    let ended = || samples(&text(), "mcp_server_session_duration_seconds_count").contains_key(labels);
    assert!(soon(ended).await, "{}", text());
    let http = HttpServer::of(&server).await;
    let refused = HttpRequest::modern(1, "tools/list", json!({})).with("host", "evil.example");
    assert_eq!(refused.send(http.address).await.status, 403);
    let refused = samples(&text(), "mcp_server_refused_requests_total");
    assert_eq!(refused[r#"{http_response_status_code="403",mcp_error_reason="host"}"#], "1");
    drop(http);
}

#[tokio::test]
async fn sessions_that_their_clients_end_have_a_duration() {
    let server = builder().telemetry(|telemetry| telemetry.metrics()).build().unwrap();
    let mut http = HttpServer::of(&server).await;
    let session = HttpRequest::initialize("2025-11-25").send(http.address).await.session();
    HttpRequest::initialize("2025-06-18").send(http.address).await.session();
    let ended = HttpRequest::new("DELETE").session(&session).header("mcp-protocol-version", "2025-11-25");
    assert_eq!(ended.send(http.address).await.status, 204);
    http.stop();
    http.stopped().await;
    let durations = samples(&server.metrics().unwrap(), "mcp_server_session_duration_seconds_count");
    let labels = r#"{mcp_protocol_version="2025-11-25",network_transport="tcp"}"#;
    assert_eq!(durations.get(labels).map(String::as_str), Some("1"));
    assert_eq!(durations.len(), 1, "one that its client has left is not counted: {durations:?}");
}

async fn get(address: SocketAddr, path: &str) -> HttpResponse {
    HttpRequest::new("GET").path(path).send(address).await
}

#[tokio::test]
async fn metrics_are_served_only_where_they_were_asked_for() {
    let http = HttpServer::start(builder().telemetry(|telemetry| telemetry.metrics())).await;
    assert_eq!(get(http.address, "/metrics").await.status, 404);
    let http = HttpServer::start(builder().telemetry(|telemetry| telemetry.metrics_path("/metrics"))).await;
    HttpRequest::modern(1, "tools/list", json!({})).send(http.address).await;
    let response = get(http.address, "/metrics").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(response.text().contains(r#"mcp_method_name="tools/list""#), "{}", response.text());
    let foreign = HttpRequest::new("GET").path("/metrics").with("host", "evil.example");
    assert_eq!(foreign.send(http.address).await.status, 403);
    // an address of their own
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let own = HttpServer::start(builder().telemetry(|telemetry| telemetry.metrics_address(address))).await;
    assert_eq!(get(own.address, "/metrics").await.status, 404);
    let response = get(address, "/metrics").await;
    assert_eq!(response.status, 200);
    assert!(response.text().contains("# TYPE mcp_server_active_requests gauge"));
    assert_eq!(get(address, "/mcp").await.status, 404);
    drop(own);
    let gone = || std::net::TcpStream::connect(address).is_err();
    assert!(soon(gone).await, "the metrics outlive their server");
}

#[tokio::test]
async fn two_paths_cannot_be_the_same() {
    let error = builder().telemetry(|telemetry| telemetry.metrics_path("/mcp")).build().unwrap_err();
    assert!(error.to_string().contains("`/mcp` is the path of the metrics and of something else"), "{error}");
}
