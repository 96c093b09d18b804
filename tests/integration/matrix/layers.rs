//! Layers see every call of a tool, resource or prompt, whatever its transport, and may answer for it, change it or run
//! it again.

use mcp_runtime::layer::{CallOutput, Layer, LayeredCall, Next, Outcome};

use super::{Cell, Protocol, capable, cells, connect_to};
use crate::prelude::*;

/// Records each call with its outcome.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Layer for Recorder {
    async fn call(&self, call: LayeredCall, next: Next) -> Outcome {
        let outcome = next.run(&call).await;
        let ended = match &outcome {
            Ok(CallOutput::Tool(result)) if result.is_error => "tool error",
            Ok(CallOutput::Tool(_)) => "tool",
            Ok(CallOutput::Resource(_)) => "resource",
            Ok(CallOutput::Prompt(_)) => "prompt",
            Ok(CallOutput::InputRequired(_)) => "input required",
            Ok(_) => "other",
            Err(_) => "error",
        };
        let what = call.uri().unwrap_or(call.name());
        let record = format!("{} {what} {} {ended}", call.method(), call.raw_arguments());
        self.0.lock().unwrap().push(record);
        outcome
    }
}

/// Refuses, replaces, delays or repeats a call, as its arguments say.
async fn obey(mut call: LayeredCall, next: Next) -> Outcome {
    let mut arguments = call.arguments();
    match arguments.get("word").and_then(Value::as_str) {
        Some("refuse") => Err(ProtocolError::new(-31001, "not today").into()),
        Some("replace") => {
            next.run(&call).await?;
            Ok(CallOutput::Tool(ToolResult::text("something else")))
        }
        Some("correct") => {
            arguments.insert("word".into(), "corrected".into());
            call.set_arguments(arguments);
            next.run(&call).await
        }
        Some("repeat") => {
            next.run(&call).await?;
            tokio::task::yield_now().await;
            next.run(&call).await
        }
        Some("panic") => panic!("a layer has panicked"),
        _ => next.run(&call).await,
    }
}

/// Repeats a word
#[mcp_tool]
async fn repeat(word: String) -> String {
    tokio::task::yield_now().await;
    word
}

/// Greets the user by name
#[mcp_tool]
async fn greet(ctx: &Context) -> Result<String, ToolError> {
    let Name { name } = ctx.elicit::<Name>("user_name", "What is your name?").await?;
    Ok(format!("Hello, {name}!"))
}

/// A note
#[mcp_resource(uri = "note://{id}")]
fn note(id: u32) -> String {
    format!("note {id}")
}

/// A rhyme
#[mcp_prompt]
fn rhyme(word: String) -> String {
    format!("rhyme with {word}")
}

fn answers(method: &str, _: &Value) -> Value {
    assert_eq!(method, "elicitation/create");
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

fn served() -> (Server, Recorder) {
    let recorder = Recorder::default();
    let builder = mcp_runtime::server!().discover_in(module_path!()).layer(recorder.clone()).layer(obey);
    (builder.build().unwrap(), recorder)
}

#[tokio::test]
async fn layers_see_calls_of_every_kind_and_no_other_request() {
    for cell @ (_, protocol) in cells("layers") {
        let (server, recorder) = served();
        let mut client = connect_to(&server, cell, capable(), answers).await;
        assert_eq!(client.call("repeat", json!({ "word": "tea" })).await.text(), "tea", "{cell:?}");
        assert_eq!(recorder.take(), [r#"tools/call repeat {"word":"tea"} tool"#], "{cell:?}");
        let read = client.reply("resources/read", json!({ "uri": "note://7" })).await;
        assert_eq!(read["contents"][0]["text"], "note 7", "{cell:?}");
        assert_eq!(recorder.take(), ["resources/read note://7 {} resource"], "{cell:?}");
        let got =
            client.reply("prompts/get", json!({ "name": "rhyme", "arguments": { "word": "tea" } })).await;
        assert_eq!(got["messages"][0]["content"]["text"], "rhyme with tea", "{cell:?}");
        assert_eq!(recorder.take(), [r#"prompts/get rhyme {"word":"tea"} prompt"#], "{cell:?}");
        // the function does not run without its argument, and the layer knows why
        let invalid = client.call("repeat", json!({})).await;
        assert_eq!(invalid.reply["isError"], true, "{cell:?}");
        assert_eq!(recorder.take(), ["tools/call repeat {} error"], "{cell:?}");
        assert_eq!(client.call("unknown", json!({})).await.reply["error"]["code"], -32602, "{cell:?}");
        client.reply("tools/list", json!({})).await;
        assert!(recorder.take().is_empty(), "{cell:?}: these are not calls of an item");
        // each round trip is a call
        assert_eq!(client.call("greet", json!({})).await.text(), "Hello, Ada!", "{cell:?}");
        let expected: &[&str] = match protocol {
            Protocol::Legacy => &["tools/call greet {} tool"],
            Protocol::Modern => &["tools/call greet {} input required", "tools/call greet {} tool"],
        };
        assert_eq!(recorder.take(), expected, "{cell:?}");
    }
}

async fn word(cell: Cell, server: &Server, word: &str) -> Value {
    let mut client = connect_to(server, cell, capable(), answers).await;
    client.call("repeat", json!({ "word": word })).await.reply
}

#[tokio::test]
async fn layers_refuse_replace_change_and_repeat_calls() {
    for cell in cells("layers") {
        let (server, recorder) = served();
        let refused = word(cell, &server, "refuse").await;
        assert_eq!(refused["error"], json!({ "code": -31001, "message": "not today" }), "{cell:?}");
        for (sent, received) in
            [("replace", "something else"), ("correct", "corrected"), ("repeat", "repeat")]
        {
            let reply = word(cell, &server, sent).await;
            assert_eq!(reply["content"][0]["text"], received, "{cell:?}");
        }
        assert_eq!(recorder.take().len(), 4, "{cell:?}");
        // the outer layer sees the panic as a failure, and the client does not see its text
        let panicked = word(cell, &server, "panic").await;
        assert_eq!(panicked["content"][0]["text"], "tool 'repeat' failed", "{cell:?}");
        assert_eq!(recorder.take(), [r#"tools/call repeat {"word":"panic"} error"#], "{cell:?}");
    }
}
