//! Servers that cannot distinguish callers: what they refuse to serve over HTTP.

use tokio::net::TcpListener;

use super::{modern, purge};
use crate::{prelude::*, process::fixture};

/// For everyone
#[mcp_tool]
fn open() -> &'static str {
    "open"
}

/// For administrators
#[mcp_resource(uri = "test://secrets", scopes("admin"))]
fn secrets() -> &'static str {
    "secret"
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<open>().tool::<purge>().resource::<secrets>()
}

/// Serves until `stop`, on a free port.
async fn serve_until(server: Server, stop: impl Future<Output = ()> + Send) -> mcp_runtime::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    server.serve_http_until(listener, stop).await
}

#[tokio::test]
async fn scopes_over_http_need_distinguished_callers() {
    let server = builder().build().expect("a server");
    assert!(server.clone().into_router::<()>().is_err() && server.clone().into_service().is_err());
    let error = within(serve_until(server, async {})).await.expect_err("it is refused");
    let text = error.to_string();
    for part in ["`purge`", "test://secrets", "caller_from", "trust_all_callers"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("`open`"), "{text}");
    // with a caller function, scopes are served
    let server = builder()
        .http(|http| http.caller(|_| Some(Principal::new("test", "ada"))))
        .build()
        .expect("a server");
    within(serve_until(server, async {})).await.expect("it is served");
}

#[test]
fn the_command_line_refuses_http_for_scopes_without_callers() {
    let run = |arguments: &[&str]| {
        let mut command = fixture();
        command.args(arguments).env("FIXTURE_SCOPED", "1");
        mcp_tests::programs::child::run(&mut command, "", PATIENCE).expect("it can be started")
    };
    let http = run(&["--http", "127.0.0.1:0"]);
    assert!(!http.success && http.stderr.contains("`purge`"), "{http:?}");
    assert!(!http.stderr.contains("serving"), "it was not served: {http:?}");
    assert!(run(&["list"]).stdout.contains("purge"));
    assert_eq!(run(&["call", "purge"]).or_panic("call"), "purged\n");
}

#[tokio::test]
async fn a_tool_with_scopes_cannot_be_added_without_distinguished_callers() {
    let scoped = || {
        let tool = ToolDef::builder("scoped").scopes(["admin"]);
        tool.handler(|_: ToolCall| async { "done" })
    };
    let server = mcp_runtime::server!().tool::<open>().build().expect("a server");
    let handle = server.handle();
    let served = HttpServer::of(&server).await;
    assert_eq!(text_of(&modern("open").send(served.address).await.json()), "open");
    let error = handle.add(scoped()).expect_err("it is refused");
    assert!(error.to_string().contains("`scoped`"), "{error}");
    let list = HttpRequest::modern(1, "tools/list", json!({}));
    assert_eq!(tool_names(&list.send(served.address).await.json()), ["open"]);
    // one that is told to trust all callers lists everything
    let trusting = builder().http(|http| http.trust_all_callers()).build().expect("a server");
    let served = HttpServer::of(&trusting).await;
    trusting.handle().add(scoped()).expect("it is added");
    assert_eq!(tool_names(&list.send(served.address).await.json()), ["open", "purge", "scoped"]);
    for (tool, text) in [("purge", "purged"), ("scoped", "done")] {
        assert_eq!(text_of(&modern(tool).send(served.address).await.json()), text);
    }
    // a server that is not served over HTTP trusts its client
    let server = mcp_runtime::server!().tool::<open>().build().expect("a server");
    server.handle().add(scoped()).expect("it is added");
    TestServer::of(&server).call("scoped", json!({})).await.expect_text("done");
    let mut lines = LineConnection::serve(&server, 1 << 16);
    assert_eq!(text_of(&lines.reply_to(&call(1, "scoped", &json!({}))).await), "done");
}
