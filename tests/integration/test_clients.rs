//! The clients that `TestServer` can play: callers, what middleware puts into requests, headers; and what it shows of
//! failures that a client sees nothing of.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::prelude::*;

/// Who is calling, from where, and in which language?
#[mcp_tool]
fn about(ctx: &Context, tenant: Option<&Tenant>) -> String {
    let caller = ctx.caller().map_or("anonymous", |caller| caller.subject());
    let language = ctx.header("Accept-Language").unwrap_or("none");
    format!("{caller} {} {language}", tenant.map_or(0, |tenant| tenant.0))
}

/// For administrators
#[mcp_tool(scopes("admin"))]
fn purge() -> &'static str {
    "purged"
}

/// Takes its time
#[mcp_tool(task)]
async fn build() -> Result<String, ToolError> {
    tokio::task::yield_now().await;
    Err(std::io::Error::other("the disk is full").into())
}

/// Fails with a cause
#[mcp_tool]
fn fails() -> Result<String, ToolError> {
    let cause = "x".parse::<u8>().expect_err("not a number");
    Err(ToolError::private(std::io::Error::new(std::io::ErrorKind::InvalidData, cause)))
}

/// Panics, after a while
#[mcp_resource(uri = "panic://{how}")]
async fn panics(how: String) -> String {
    tokio::task::yield_now().await;
    panic!("all is {how}")
}

#[derive(Clone)]
struct Tenant(u32);

fn builder() -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!()).http(|http| http.from_request::<Tenant>())
}

async fn names(server: &TestServer) -> Vec<Value> {
    server.list_tools().await.iter().map(|tool| tool["name"].clone()).collect()
}

#[tokio::test]
async fn a_test_plays_a_caller() {
    for revision in Revision::ALL.iter().copied() {
        let admin = Principal::new("test", "root").with_scopes(["admin"]);
        let server = serve(builder()).caller(admin).legacy(revision);
        server.call("purge", json!({})).await.expect_text("purged");
        server.call("about", json!({})).await.expect_text("root 0 none");

        let server = server.caller(Principal::new("test", "ada"));
        server.call("about", json!({})).await.expect_text("ada 0 none");
        server.call("purge", json!({})).await.expect_code(-32602);
        assert!(!names(&server).await.contains(&json!("purge")));

        let server = server.caller(None);
        server.call("about", json!({})).await.expect_text("anonymous 0 none");
        server.call("purge", json!({})).await.expect_code(-32602);
    }
    // without a caller the client is trusted, as on stdio
    serve(builder()).call("purge", json!({})).await.expect_text("purged");
}

#[tokio::test]
async fn a_test_sets_headers_and_what_middleware_would_put_into_requests() {
    for revision in [Revision::LATEST, Revision::V2025_06_18] {
        let server = serve(builder()).extension(Tenant(7)).header("accept-language", "no").legacy(revision);
        server.call("about", json!({})).await.expect_text("anonymous 7 no");
        let server = server.extension(Tenant(8)).caller(Principal::new("test", "ada"));
        server.call("about", json!({})).await.expect_text("ada 8 no");
        // one that is sent twice may be of two senders
        let server = server.header("Accept-Language", "en");
        server.call("about", json!({})).await.expect_text("ada 8 none");
    }
    serve(builder()).call("about", json!({})).await.expect_text("anonymous 0 none");
}

/// What a failed expectation prints.
fn printed(reply: &Reply) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| reply.expect_ok())).expect_err("it is a failure");
    panic.downcast_ref::<String>().expect("a text").clone()
}

#[tokio::test]
async fn a_failed_expectation_prints_the_private_cause() {
    let server = serve(builder());
    let fails = server.call("fails", json!({})).await;
    // the client does not see it
    assert!(!fails.to_string().contains("invalid digit"), "{fails}");
    let task = server.call_task("build", json!({})).await;
    let panics = server.read("panic://lost").await;
    for (reply, cause) in [
        (&fails, "private cause: invalid digit found in string"),
        (&task, "private cause: the disk is full"),
        (&panics, "private cause: panicked: all is lost"),
    ] {
        let text = printed(reply);
        assert_eq!(text.matches("private cause").count(), 1, "{text}");
        assert!(text.contains(cause), "{text}");
    }
    let missing = printed(&server.call("nothing", json!({})).await);
    assert!(!missing.contains("private cause"), "{missing}");
}

#[tokio::test]
async fn calls_that_run_at_once_have_their_own_causes() {
    let server = serve(builder());
    let (one, other) = tokio::join!(server.read("panic://lost"), server.read("panic://gone"));
    assert!(printed(&one).contains("all is lost") && !printed(&one).contains("gone"));
    assert!(printed(&other).contains("all is gone") && !printed(&other).contains("lost"));
}
