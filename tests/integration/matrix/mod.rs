//! Every feature in every way: in memory, over streams as on stdio, and over HTTP; in both eras; one body each.

mod client;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use mcp_runtime::{AskError, ServerBuilder, prelude::*};
use serde_json::{Value, json};

use client::{Client, Era, Way, all, soon};

#[mcp_type]
struct Name {
    name: String,
}

#[mcp_type]
struct Flight {
    seats: u8,
    window: bool,
}

/// What the tools saw.
#[derive(Default)]
struct Seen {
    entered: AtomicUsize,
    dropped: AtomicUsize,
    quoted: AtomicUsize,
}

/// Greets whoever answers
#[mcp_tool]
async fn greet(ctx: &Context) -> Result<String, ToolError> {
    let Name { name } = ctx.elicit::<Name>("user_name", "What is your name?").await?;
    Ok(format!("Hello, {name}!"))
}

/// Books what two answers say
#[mcp_tool]
async fn book(ctx: &Context, seen: &Seen) -> Result<String, ToolError> {
    let quote: usize =
        ctx.once("quote", || async { Ok(seen.quoted.fetch_add(1, Ordering::Relaxed) + 41) }).await?;
    let name = ctx.elicit::<Name>("name", "Who flies?");
    let flight = ctx.elicit::<Flight>("flight", "How?");
    let (name, flight) = tokio::join!(name, flight);
    let (Name { name }, Flight { seats, window }) = (name?, flight?);
    let sure: bool = ctx.elicit("sure", format!("Pay {quote}?")).await?;
    Ok(format!("{name} {seats} {window} {quote} {sure}"))
}

/// Goes on without an answer
#[mcp_tool]
async fn optional(ctx: &Context) -> String {
    match ctx.elicit::<Name>("who", "Who?").await {
        Ok(Name { name }) => format!("it is {name}"),
        Err(AskError::Declined { .. }) => "nobody said".into(),
        Err(error) => format!("no answer: {error}"),
    }
}

/// Asks the model and the client
#[mcp_tool]
async fn consult(ctx: &Context) -> Result<String, ToolError> {
    let (answer, roots) =
        tokio::join!(ctx.sample("q").user("What is 2 + 2?").max_tokens(10), ctx.roots("folders"));
    let (answer, roots) = (answer?, roots?);
    Ok(format!("{} in {}", answer.text(), roots[0].uri))
}

/// Uses one key for two questions
#[mcp_tool]
async fn twice(ctx: &Context) -> Result<String, ToolError> {
    let first: bool = ctx.elicit("key", "One?").await?;
    let second: bool = ctx.elicit("key", "Two?").await?;
    Ok(format!("{first} {second}"))
}

/// Asks from a task of its own
#[mcp_tool]
async fn detached(ctx: &Context) -> Result<String, ToolError> {
    let ctx = ctx.clone();
    let asked = tokio::spawn(async move { ctx.elicit::<bool>("key", "Really?").await }).await?;
    Ok(asked?.to_string())
}

/// Runs until it is cancelled
#[mcp_tool]
async fn hang(ctx: &Context, seen: &Arc<Seen>) -> String {
    struct Dropped(Arc<Seen>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
    let _dropped = Dropped(Arc::clone(seen));
    seen.entered.fetch_add(1, Ordering::Relaxed);
    ctx.progress(1.0).send();
    std::future::pending().await
}

/// Reports progress
#[mcp_tool]
async fn steps(ctx: &Context) -> &'static str {
    for step in [1.0, 2.0, 2.0, 1.5, 3.0] {
        ctx.progress(step).total(3.0).message("working").send();
        tokio::task::yield_now().await;
    }
    "done"
}

/// A page that needs to know who reads it
#[mcp_resource(uri = "page://welcome", cache(ttl = "60s", public))]
async fn welcome(ctx: &Context) -> Result<String, ToolError> {
    let Name { name } = ctx.elicit::<Name>("reader", "Who reads?").await?;
    Ok(format!("Welcome, {name}"))
}

/// A prompt that needs to know more
#[mcp_prompt]
async fn brief(topic: String, ctx: &Context) -> Result<String, ToolError> {
    let Name { name } = ctx.elicit::<Name>("writer", "Who writes?").await?;
    Ok(format!("{name} writes about {topic}"))
}

fn builder(seen: &Arc<Seen>) -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!()).state(Arc::clone(seen))
}

fn capable() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

fn answers(method: &str, params: &Value) -> Value {
    let content = match (method, params["message"].as_str()) {
        ("elicitation/create", Some("How?")) => json!({ "seats": 2, "window": true }),
        ("elicitation/create", Some(text)) if text.starts_with("Pay ") => json!({ "value": true }),
        ("elicitation/create", Some("One?" | "Two?" | "Really?")) => json!({ "value": true }),
        ("elicitation/create", Some(_)) => json!({ "name": "Ada" }),
        ("sampling/createMessage", _) => {
            assert_eq!(params["messages"][0]["content"]["text"], "What is 2 + 2?");
            return json!({ "role": "assistant", "content": { "type": "text", "text": "4" }, "model": "m" });
        }
        ("roots/list", _) => return json!({ "roots": [{ "uri": "file:///work", "name": "work" }] }),
        other => panic!("nobody asked {other:?}"),
    };
    json!({ "action": "accept", "content": content })
}

fn declines(_: &str, _: &Value) -> Value {
    json!({ "action": "decline" })
}

async fn connect(way: (Way, Era)) -> (Client, Arc<Seen>) {
    let seen = Arc::<Seen>::default();
    let server = builder(&seen).build().unwrap();
    (Client::connect(&server, way, capable(), answers).await, seen)
}

#[tokio::test]
async fn x1_one_body_asks_in_every_way() {
    for way in all() {
        let (mut client, _) = connect(way).await;
        let exchange = client.call("greet", json!({})).await;
        assert_eq!(exchange.text(), "Hello, Ada!", "{way:?}");
        assert_eq!(exchange.rounds, if way.1 == Era::Modern { 2 } else { 1 }, "{way:?}");
    }
}

#[tokio::test]
async fn x3_questions_under_join_are_one_round_and_what_was_done_once_is_not_done_again() {
    for way in all() {
        let (mut client, seen) = connect(way).await;
        let exchange = client.call("book", json!({})).await;
        assert_eq!(exchange.text(), "Ada 2 true 41 true", "{way:?}");
        // name and flight together, then whether to pay
        assert_eq!(exchange.rounds, if way.1 == Era::Modern { 3 } else { 1 }, "{way:?}");
        assert_eq!(seen.quoted.load(Ordering::Relaxed), 1, "{way:?}");
    }
}

#[tokio::test]
async fn x3_an_answer_of_no_is_an_answer() {
    for way in all() {
        let server = builder(&Arc::default()).build().unwrap();
        let mut client = Client::connect(&server, way, capable(), declines).await;
        assert_eq!(client.call("optional", json!({})).await.text(), "nobody said", "{way:?}");
        let refused = client.call("greet", json!({})).await;
        assert_eq!(refused.reply["isError"], true, "{way:?}");
        assert_eq!(refused.text(), "the user declined to answer `user_name`", "{way:?}");
    }
}

#[tokio::test]
async fn x3_a_key_used_twice_is_an_error_that_the_log_explains() {
    for way in all() {
        let (mut client, _) = connect(way).await;
        let exchange = client.call("twice", json!({})).await;
        assert_eq!(exchange.reply["isError"], true, "{way:?}");
        assert_eq!(exchange.text(), "tool 'twice' failed", "{way:?}");
    }
}

#[tokio::test]
async fn protocol_21_asking_from_a_spawned_task_is_an_error() {
    for way in all() {
        let (mut client, _) = connect(way).await;
        let exchange = client.call("detached", json!({})).await;
        assert_eq!(
            (&exchange.reply["isError"], exchange.text()),
            (&json!(true), "tool 'detached' failed"),
            "{way:?}"
        );
    }
}

#[tokio::test]
async fn models_and_folders_are_asked_together() {
    for way in all() {
        let (mut client, _) = connect(way).await;
        assert_eq!(client.call("consult", json!({})).await.text(), "4 in file:///work", "{way:?}");
    }
}

#[tokio::test]
async fn resources_and_prompts_ask_as_well() {
    for way in all() {
        let (mut client, _) = connect(way).await;
        let page = client.request("resources/read", json!({ "uri": "page://welcome" })).await.reply;
        assert_eq!(page["contents"][0]["text"], "Welcome, Ada", "{way:?}");
        if way.1 == Era::Modern {
            // protocol 13: what was made of answers is not for caches, whatever the attribute says
            assert_eq!((&page["ttlMs"], &page["cacheScope"]), (&json!(0), &json!("private")), "{way:?}");
        }
        let params = json!({ "name": "brief", "arguments": { "topic": "tea" } });
        let prompt = client.request("prompts/get", params).await.reply;
        assert_eq!(prompt["messages"][0]["content"]["text"], "Ada writes about tea", "{way:?}");
    }
}

#[tokio::test]
async fn protocol_25_a_client_that_cannot_be_asked_is_told_so() {
    for way in all() {
        let server = builder(&Arc::default()).build().unwrap();
        let mut client = Client::connect(&server, way, json!({}), answers).await;
        let lacking = client.call("greet", json!({})).await.reply;
        let swallowed = client.call("optional", json!({})).await.reply;
        match way.1 {
            Era::Modern => {
                assert_eq!(lacking["error"]["code"], -32021, "{way:?}");
                let needed = json!({ "requiredCapabilities": { "elicitation": {} } });
                assert_eq!(lacking["error"]["data"], needed, "{way:?}");
                assert_eq!(swallowed["error"]["code"], -32021, "{way:?}");
                let both = client.call("consult", json!({})).await.reply;
                let needed = json!({ "requiredCapabilities": { "roots": {}, "sampling": {} } });
                assert_eq!(both["error"]["data"], needed, "{way:?}");
            }
            Era::Legacy => {
                assert_eq!(lacking["isError"], true, "{way:?}");
                let text = lacking["content"][0]["text"].as_str().unwrap();
                assert_eq!(text, "the client does not support `elicitation`, which is needed here");
                assert!(swallowed["content"][0]["text"].as_str().unwrap().starts_with("no answer: "));
                let page = client.request("resources/read", json!({ "uri": "page://welcome" })).await.reply;
                assert_eq!(page["error"]["code"], -32603, "{way:?}");
            }
        }
    }
}

#[tokio::test]
async fn t32_progress_comes_before_the_result_and_only_upwards() {
    for way in all() {
        let (mut client, _) = connect(way).await;
        let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "t" } });
        let exchange = client.request("tools/call", params).await;
        let reports = exchange.of("notifications/progress");
        let values: Vec<_> = reports.iter().map(|report| report["progress"].as_f64().unwrap()).collect();
        assert_eq!(values, [1.0, 2.0, 3.0], "{way:?}");
        assert!(
            reports.iter().all(|report| report["progressToken"] == "t" && report["message"] == "working")
        );
        if way.0 != Way::Memory {
            assert_eq!(
                client.call("steps", json!({})).await.seen,
                Vec::<Value>::new(),
                "{way:?}: without a token"
            );
        }
    }
}

#[tokio::test]
async fn t33_a_call_that_its_client_gives_up_is_dropped() {
    for way in all() {
        let (mut client, seen) = connect(way).await;
        match way {
            // dropping the request is all that a client in memory can do, and one of modern HTTP: it disconnects
            (Way::Memory, _) | (Way::Http, Era::Modern) => {
                let call = client.call("hang", json!({}));
                let entered = soon(|| seen.entered.load(Ordering::Relaxed) == 1);
                tokio::select! {
                    _ = call => panic!("it ended"),
                    entered = entered => assert!(entered, "{way:?}"),
                }
            }
            _ => {
                let id = client.start("tools/call", json!({ "name": "hang", "arguments": {} })).await;
                assert!(soon(|| seen.entered.load(Ordering::Relaxed) == 1).await, "{way:?}");
                client.notify("notifications/cancelled", &json!({ "requestId": id })).await;
            }
        }
        assert!(soon(|| seen.dropped.load(Ordering::Relaxed) == 1).await, "{way:?}");
        assert_eq!(client.call("steps", json!({})).await.text(), "done", "{way:?}");
    }
}

#[tokio::test]
async fn h1_h2_each_era_gets_its_own_words() {
    for way in all() {
        let (mut client, _) = connect(way).await;
        let reply = client.request("tools/list", json!({})).await.reply;
        let modern = way.1 == Era::Modern;
        for member in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            assert_eq!(reply.get(member).is_some(), modern, "{way:?}: `{member}` in {reply}");
        }
        if modern {
            assert_eq!(reply["resultType"], "complete");
            let info = &reply["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert!(info["name"].is_string() && info["version"].is_string(), "{info}");
        }
    }
}
