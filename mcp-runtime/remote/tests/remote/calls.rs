//! Calls, reads, prompts and completion, whose results are those of the other server.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mcp_runtime::{
    ToolError, ToolResult,
    client::{Client, CompletionOf},
    prelude::*,
    prompt::{PromptArgument, PromptCall, PromptDef},
    resource::{ResourceCall, ResourceDef},
    serde_json::value::RawValue,
    tool::{ToolCall, ToolDef},
};
use mcp_runtime_remote::Remote;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{Served, built};

/// Adds two numbers.
#[mcp_tool(read_only)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Fails.
#[mcp_tool]
fn fails() -> Result<String, ToolError> {
    Err(ToolError::new("not today"))
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

/// A server with something of everything.
fn upstream() -> mcp_runtime::ServerBuilder {
    let odd = ToolDef::builder("odd")
        .unchecked_input_schema(json!({ "type": "object", "x-order": ["b", "a"] }))
        .unchecked_output_schema(json!({ "type": "object", "required": ["never"] }))
        .member("com.example/price", 3)
        .handler(|call: ToolCall| async move {
            let given = call.raw_arguments().map(RawValue::get).unwrap_or_default();
            let result = raw(&format!(
                r#"{{"content":[{{"type":"hologram","beam":1.50}},{{"type":"text","text":"a","x":1}}],"structuredContent":{given},"com.example/cost":7}}"#
            ));
            ToolResult::from_wire(&result).map_err(ToolError::private)
        });
    let note = ResourceDef::builder("note://one").name("one").mime("text/markdown").size(5);
    let template = ResourceDef::builder("note://all/{name}")
        .name("all")
        .complete("name", ["june", "july"])
        .handler(|call: ResourceCall| async move { call.variable::<String>("name") });
    let review = PromptDef::builder("review")
        .description("Reviews code.")
        .argument(PromptArgument::new("code").required())
        .argument(PromptArgument::new("tone").complete(["kind", "blunt"]))
        .handler(|call: PromptCall| async move { format!("Review {}", call.arguments["code"]) });
    mcp_runtime::server!()
        .tool::<add>()
        .tool::<fails>()
        .add(odd)
        .add(note.handler(|_: ResourceCall| async { "# One" }))
        .add(template)
        .add(review)
}

/// The same requests to the server itself, and through a relay, which has no item of its own.
async fn both() -> (Served, Client, Client) {
    let served = Served::new(&built(upstream())).await;
    let direct = served.client().await;
    let relay = built(mcp_runtime::server!().add(Remote::new("other", served.url()).no_prefix()));
    let relayed = Client::connect(&relay).await.expect("a connection");
    // lists wait for the other server, calls do not
    relayed.tools().await.expect("tools");
    (served, direct, relayed)
}

#[tokio::test]
async fn lists_and_results_are_those_of_the_other_server() {
    let (_served, direct, relayed) = both().await;
    for (method, members) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } })),
        ("tools/call", json!({ "name": "add", "arguments": { "a": "no" } })),
        ("tools/call", json!({ "name": "fails" })),
        ("tools/call", json!({ "name": "odd", "arguments": { "z": [1.5, null], "a": { "b": 1 } } })),
        ("resources/read", json!({ "uri": "note://one" })),
        ("resources/read", json!({ "uri": "note://all/may" })),
        ("prompts/get", json!({ "name": "review", "arguments": { "code": "x" } })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "review" }, "argument": { "name": "tone", "value": "k" } }),
        ),
    ] {
        let [expected, got] = [&direct, &relayed].map(|client| client.send(method, members.clone()));
        let (expected, got) = (expected.await.expect(method), got.await.expect(method));
        let without = |mut result: serde_json::Value| {
            let members = result.as_object_mut().expect("an object");
            // the name of the server is that of the relay
            for key in ["_meta", "ttlMs", "cacheScope"] {
                members.remove(key);
            }
            result
        };
        assert_eq!(without(got), without(expected), "{method} {members}");
    }
    let of = CompletionOf::Template("note://all/{name}");
    assert_eq!(relayed.complete(&of, "name", "jun").await.expect("values").values, ["june"]);
}

#[tokio::test]
async fn arguments_and_structured_results_keep_the_digits_of_their_numbers() {
    let (served, _direct, relayed) = both().await;
    let arguments = r#"{"n":[1.50,100000000000000000000000],"m":"1"}"#;
    let call = relayed.send("tools/call", json!({ "name": "odd" })).arguments(&raw(arguments)).raw();
    let result = call.await.expect("a result");
    assert!(result.get().contains(&format!(r#""structuredContent":{arguments}"#)), "{result}");
    assert!(served.of("tools/call")[0].body.contains(arguments));
}

#[tokio::test]
async fn progress_comes_back_under_the_callers_token_and_cancellation_goes_up() {
    let (begun, cancelled) = (Arc::<Notify>::default(), Arc::<AtomicBool>::default());
    let (starts, ends) = (begun.clone(), cancelled.clone());
    let slow = ToolDef::builder("slow").handler(move |call: ToolCall| {
        let (starts, ends) = (starts.clone(), ends.clone());
        async move {
            call.context.progress(1).total(3).message("one").send();
            starts.notify_one();
            struct Ends(Arc<AtomicBool>);
            impl Drop for Ends {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::SeqCst);
                }
            }
            let _ends = Ends(ends);
            std::future::pending::<()>().await;
            "never"
        }
    });
    let served = Served::new(&built(mcp_runtime::server!().add(slow))).await;
    let relay = built(mcp_runtime::server!().add(Remote::new("other", served.url())));
    let client = Client::connect(&relay).await.expect("a connection");
    client.tools().await.expect("tools");
    let (sender, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let call = client.call("other_slow", json!({})).on_progress(move |update| drop(sender.send(update)));
    let call = tokio::spawn(async move { call.await });
    begun.notified().await;
    let update = progress.recv().await.expect("progress");
    assert_eq!((update.progress, update.total, update.message.as_deref()), (1.0, Some(3.0), Some("one")));
    call.abort();
    crate::support::until(|| async { cancelled.load(Ordering::SeqCst) }).await;
}
