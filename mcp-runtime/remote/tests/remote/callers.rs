//! Credentials of callers: each answer of the other server names the token that it got.

use std::sync::Arc;

use mcp_runtime::{
    Completion, Context, Principal, ServerBuilder, ToolError,
    prompt::{PromptArgument, PromptCall, PromptDef},
    resource::{ResourceCall, ResourceDef},
    testing::TestServer,
    tool::{ToolCall, ToolDef},
};
use mcp_runtime_remote::Remote;
use serde_json::json;

use crate::support::{Served, built, names, test_server};

/// The credential of the program.
struct Program(&'static str);

/// The token that came with a request.
fn token(context: &Context) -> String {
    context.header("authorization").unwrap_or("nothing").to_owned()
}

fn upstream() -> ServerBuilder {
    let fails = ToolDef::builder("fails").handler(|call: ToolCall| async move {
        Err::<String, _>(ToolError::new(format!("no: {}", token(&call.context))))
    });
    let waits = ToolDef::builder("waits").handler(|call: ToolCall| async move {
        tokio::task::yield_now().await;
        token(&call.context)
    });
    let note =
        ResourceDef::builder("note://who").handler(|call: ResourceCall| async move { token(&call.context) });
    let notes = ResourceDef::builder("note://all/{name}")
        .complete_with("name", |_: Completion, context: Context| async move {
            Ok::<_, ToolError>(vec![token(&context)])
        })
        .handler(|call: ResourceCall| async move { token(&call.context) });
    let argument = PromptArgument::new("word").complete_with(|_: Completion, context: Context| async move {
        Ok::<_, ToolError>(vec![token(&context)])
    });
    let prompt = PromptDef::builder("who")
        .argument(argument)
        .handler(|call: PromptCall| async move { token(&call.context) });
    mcp_runtime::server!().add(fails).add(waits).add(note).add(notes).add(prompt)
}

fn relay(upstream: &Served) -> ServerBuilder {
    let remote = Remote::new("up", upstream.url()).bearer(|program: &Program| program.0);
    let remote = remote.no_prefix().per_caller(|context: Context| async move {
        match context.caller().map(Principal::subject) {
            Some("empty") => Ok(String::new()),
            Some(subject) => Ok(format!("token-of-{subject}")),
            None => Err(ToolError::new("log in first")),
        }
    });
    mcp_runtime::server!().state(Program("program-token")).add(remote)
}

#[tokio::test]
async fn every_request_of_a_caller_has_its_token_and_no_other() {
    let up = Served::new(&built(upstream())).await;
    let server = built(relay(&up));
    let caller = |subject: &str| {
        Arc::new(TestServer::of(&server).caller(Principal::new("https://id.example.com", subject)))
    };
    let callers = ["ada", "bob"].map(|subject| (caller(subject), format!("Bearer token-of-{subject}")));
    for (caller, _) in &callers {
        assert_eq!(names(&caller.list_tools().await), ["fails", "waits"]);
    }
    let runs = (0..16).map(|run| {
        let (caller, expected) = callers[run % 2].clone();
        tokio::spawn(async move {
            for _ in 0..40 {
                caller.call("waits", json!({})).await.expect_text(&expected);
                caller.call("fails", json!({})).await.expect_failure(&format!("no: {expected}"));
                for uri in ["note://who", "note://all/june"] {
                    let read = caller.read(uri).await;
                    assert_eq!(read.value()["contents"][0]["text"], expected);
                    assert_eq!(read.value()["cacheScope"], "private");
                }
                let prompt = caller.prompt("who", json!({ "word": "x" })).await;
                assert_eq!(prompt.value()["messages"][0]["content"]["text"], expected);
                for (of, argument) in [("who", "word"), ("note://all/{name}", "name")] {
                    let completed = caller.complete(of, argument, "").await;
                    assert_eq!(completed.value()["completion"]["values"], json!([expected]));
                }
                assert_eq!(names(&caller.list_tools().await), ["fails", "waits"]);
            }
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.expect("a run");
    }
    // lists have the token of the program, and everything else has not
    for arrived in up.all() {
        let method = arrived.message()["method"].as_str().unwrap_or_default().to_owned();
        let is_programs = arrived.header("authorization") == Some("Bearer program-token");
        match method.as_str() {
            "tools/call" | "resources/read" | "prompts/get" | "completion/complete" => {
                assert!(!is_programs, "{method}");
            }
            _ if method.ends_with("/list") => assert!(is_programs, "{method}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_caller_without_a_token_is_refused_and_nothing_is_sent() {
    let up = Served::new(&built(upstream())).await;
    let server = built(relay(&up));
    let unknown = TestServer::of(&server);
    unknown.list_tools().await;
    let before = up.all().len();
    unknown.call("waits", json!({})).await.expect_failure("log in first");
    assert!(unknown.read("note://who").await.is_error());
    assert!(unknown.prompt("who", json!({})).await.is_error());
    let empty = TestServer::of(&server).caller(Principal::new("test", "empty"));
    empty
        .call("waits", json!({}))
        .await
        .expect_failure("`up` needs a credential of the caller, who has none");
    assert_eq!(up.all().len(), before);
}

#[tokio::test]
async fn what_the_other_server_refuses_of_a_caller_is_not_sent_with_the_token_of_the_program() {
    use axum::{
        extract::Request,
        middleware::{Next, from_fn},
        response::IntoResponse as _,
    };
    let routes = built(upstream()).into_router().expect("routes");
    let routes = routes.layer(from_fn(|request: Request, next: Next| async move {
        match request.headers().get("authorization").and_then(|value| value.to_str().ok()) {
            Some("Bearer program-token") => next.run(request).await,
            _ => http::StatusCode::UNAUTHORIZED.into_response(),
        }
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move { drop(axum::serve(listener, routes).await) });
    let remote = Remote::new("up", url).bearer(|program: &Program| program.0);
    let remote = remote.per_caller(|_: Context| async { Ok("stolen") });
    let server = test_server(mcp_runtime::server!().state(Program("program-token")).add(remote));
    assert_eq!(names(&server.list_tools().await), ["up_fails", "up_waits"]);
    let refused = server.call("up_waits", json!({})).await;
    assert!(refused.is_error() && !refused.to_string().contains("token"), "{refused}");
    serving.abort();
}

#[test]
fn credentials_of_callers_need_a_url_and_a_way_to_read_lists() {
    let per_caller = |remote: Remote| remote.per_caller(|_: Context| async { Ok("token") });
    for (remote, part) in [
        (Remote::new("up", "server --stdio"), "needs a URL"),
        (Remote::new("up", "https://example.com/mcp"), "needs `.bearer(..)` or `.header(name, ..)`"),
    ] {
        let error = mcp_runtime::server!().add(per_caller(remote)).build().expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}
