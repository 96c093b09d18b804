//! Spans of requests, as exporters of OpenTelemetry get them.

use std::collections::BTreeMap;

use mcp_runtime::{
    ServerBuilder,
    prelude::*,
    testing::TestServer,
    tool::{TaskMode, ToolCall, ToolDef},
};
use mcp_tests::support::{Subscribed, soon, subscribe};
use opentelemetry::trace::{SpanKind, Status, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt as _;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What this thread's spans are exported to.
struct Exported {
    exporter: InMemorySpanExporter,
    _provider: SdkTracerProvider,
    _subscribed: Subscribed,
}

impl Exported {
    fn capture() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let _subscribed = subscribe(tracing_subscriber::registry().with(layer));
        Self { exporter, _provider: provider, _subscribed }
    }

    /// The spans of requests since the last call of this, in the order in which they ended.
    fn take(&self) -> Vec<SpanData> {
        let mut spans = self.exporter.get_finished_spans().unwrap();
        self.exporter.reset();
        spans.retain(|span| span.attributes.iter().any(|a| a.key.as_str() == "mcp.method.name"));
        spans
    }

    #[track_caller]
    fn only(&self) -> SpanData {
        let mut spans = self.take();
        assert_eq!(spans.len(), 1, "{spans:?}");
        spans.remove(0)
    }
}

/// The attributes of the conventions; those of source code are left out.
fn attributes(span: &SpanData) -> BTreeMap<String, String> {
    let own = |key: &str| {
        ["mcp.", "gen_ai.", "rpc.", "jsonrpc.", "error.", "network.", "client."]
            .iter()
            .any(|prefix| key.starts_with(prefix))
    };
    let attributes = span.attributes.iter().filter(|attribute| own(attribute.key.as_str()));
    attributes.map(|a| (a.key.to_string(), a.value.to_string())).collect()
}

#[track_caller]
fn expect_attributes(span: &SpanData, expected: &[(&str, &str)]) {
    let mut attributes = attributes(span);
    attributes.remove("jsonrpc.request.id").expect("an id");
    let expected = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    assert_eq!(attributes, expected.collect());
}

/// Adds, unless a sum is too large
#[mcp_tool]
async fn add(a: i64, b: i64) -> Result<i64, ToolError> {
    tokio::task::yield_now().await;
    tracing::info_span!("inside the function").in_scope(|| ());
    a.checked_add(b).ok_or_else(|| "too large".into())
}

/// A note
#[mcp_resource(uri = "note://{id}")]
fn note(id: u32) -> Result<String, ToolError> {
    if id == 0 { Err(ToolError::not_found()) } else { Ok(id.to_string()) }
}

/// A greeting
#[mcp_prompt]
fn greeting(name: String) -> String {
    format!("Greet {name}.")
}

/// A long job
#[mcp_tool(task)]
async fn job() -> &'static str {
    "done"
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<add>().tool::<job>().resource::<note>().prompt::<greeting>()
}

fn serve(builder: ServerBuilder) -> TestServer {
    TestServer::new(builder).expect("a server")
}

#[tokio::test]
async fn each_request_is_a_span_by_the_conventions() {
    let exported = Exported::capture();
    let server = serve(builder());
    server.call("add", json!({ "a": 1, "b": 2 })).await.expect_text("3");
    let span = exported.only();
    assert_eq!(
        (&*span.name, &span.span_kind, &span.status),
        ("tools/call add", &SpanKind::Server, &Status::Unset)
    );
    let call = [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "add"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2026-07-28"),
    ];
    expect_attributes(&span, &call);

    server.call("add", json!({ "a": i64::MAX, "b": 2 })).await.expect_failure("too large");
    let span = exported.only();
    assert!(matches!(span.status, Status::Error { .. }), "{span:?}");
    expect_attributes(&span, &[&call[..], &[("error.type", "tool_error")]].concat());

    // the name that the client made up is nowhere
    server.call("made_up", json!({})).await.expect_code(-32602);
    let span = exported.only();
    assert_eq!(span.name, "tools/call");
    assert!(!format!("{span:?}").contains("made_up"), "{span:?}");
    let failed = |method: &'static str, reason: &'static str| {
        [
            ("error.type", "-32602"),
            ("mcp.error.reason", reason),
            ("mcp.method.name", method),
            ("mcp.protocol.version", "2026-07-28"),
            ("rpc.response.status_code", "-32602"),
        ]
    };
    expect_attributes(&span, &failed("tools/call", "unknown"));

    server.request("made/up", json!({})).await.expect_code(-32601);
    let span = exported.only();
    assert_eq!(span.name, "_OTHER");
    assert!(!format!("{span:?}").contains("made/up"), "{span:?}");

    server.prompt("greeting", json!({ "name": "Ada" })).await.expect_ok();
    let span = exported.only();
    assert_eq!(span.name, "prompts/get greeting");
    let prompt = [
        ("gen_ai.prompt.name", "greeting"),
        ("mcp.method.name", "prompts/get"),
        ("mcp.protocol.version", "2026-07-28"),
    ];
    expect_attributes(&span, &prompt);

    let template = ("mcp.resource.uri_template", "note://{id}");
    let read = [("mcp.method.name", "resources/read"), ("mcp.protocol.version", "2026-07-28"), template];
    server.read("note://7").await.expect_ok();
    let span = exported.only();
    assert_eq!(span.name, "resources/read");
    expect_attributes(&span, &read);
    server.read("note://0").await.expect_code(-32602);
    let not_found = failed("resources/read", "not_found");
    expect_attributes(&exported.only(), &[&not_found[..], &[template]].concat());

    server.call_task("job", json!({})).await.expect_text("done");
    let names: Vec<_> = exported.take().into_iter().map(|span| span.name).collect();
    assert_eq!(names[0], "tools/call job");
    assert!(names.len() > 1 && names[1..].iter().all(|name| name == "tasks/get"), "{names:?}");
}

#[tokio::test]
async fn a_span_continues_the_trace_of_its_client_and_those_of_functions_continue_it() {
    let exported = Exported::capture();
    let server = serve(builder());
    let params = json!({
        "name": "add",
        "arguments": { "a": 1, "b": 2 },
        "_meta": { "traceparent": TRACEPARENT, "tracestate": "vendor=1" },
    });
    server.request("tools/call", params).await.expect_text("3");
    let spans = exported.exporter.get_finished_spans().unwrap();
    let find = |name: &str| spans.iter().find(|span| span.name == name).expect("a span");
    let (span, inside) = (find("tools/call add"), find("inside the function"));
    assert_eq!(span.span_context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
    assert!(span.parent_span_is_remote);
    assert_eq!(span.span_context.trace_state().header(), "vendor=1");
    assert_eq!(inside.parent_span_id, span.span_context.span_id());
    exported.exporter.reset();

    let malformed = json!({ "uri": "note://7", "_meta": { "traceparent": "00-zz" } });
    server.request("resources/read", malformed).await.expect_ok();
    assert!(!exported.only().parent_span_is_remote);
}

#[tokio::test]
async fn the_end_of_a_task_is_a_span_in_the_trace_of_its_request() {
    let exported = Exported::capture();
    let fail = ToolDef::builder("fail")
        .task(TaskMode::Capable)
        .handler(|_: ToolCall| async { Err::<String, _>(ToolError::new("out of paper")) });
    let server = serve(builder().add(fail).telemetry(|telemetry| telemetry.metrics()));
    for (tool, outcome, error) in [("job", "completed", None), ("fail", "tool_error", Some("tool_error"))] {
        assert_eq!(server.call_task(tool, json!({})).await.is_error(), error.is_some());
        let spans = || exported.exporter.get_finished_spans().unwrap();
        let name = format!("task {tool}");
        assert!(soon(|| spans().iter().any(|span| span.name == name)).await, "{:?}", spans());
        let spans = spans();
        let find = |name: &str| spans.iter().find(|span| span.name == name).expect("a span");
        let (request, task) = (find(&format!("tools/call {tool}")), find(&name));
        assert_eq!(task.parent_span_id, request.span_context.span_id());
        assert!(request.end_time <= task.end_time, "the request does not last as long as its task");
        assert_eq!(task.span_kind, SpanKind::Internal);
        let (request, task) = (attributes(request), attributes(task));
        assert_eq!(task["mcp.task.outcome"], outcome);
        assert_eq!(task.get("error.type").map(String::as_str), error);
        assert_eq!(task["gen_ai.tool.name"], tool);
        assert!(task["mcp.task.id"] == request["mcp.task.id"] && task["mcp.task.id"].len() == 8, "{task:?}");
        exported.exporter.reset();
    }
}
