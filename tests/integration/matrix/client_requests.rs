//! Client requests over every transport: elicitation, sampling and roots; several at once, refused, or sent to clients
//! without the capability.

use mcp_runtime::client_request::CreateMessage;

use super::{Cell, Protocol, capable, cells, connect_to};
use crate::prelude::*;

#[mcp_type]
struct Flight {
    seats: u8,
    window: bool,
}

/// Greets the user by name
#[mcp_tool]
async fn greet(ctx: &Context) -> Result<String, ToolError> {
    let Name { name } = ctx.elicit::<Name>("user_name", "What is your name?").await?;
    Ok(format!("Hello, {name}!"))
}

/// Books a flight from two responses
#[mcp_tool]
async fn book(ctx: &Context, gate: &Gate) -> Result<String, ToolError> {
    let quote = async || {
        gate.enter().finish();
        Ok(40 + gate.entered())
    };
    let quote: usize = ctx.once("quote", quote).await?;
    let name = ctx.elicit::<Name>("name", "Who flies?");
    let flight = ctx.elicit::<Flight>("flight", "How?");
    let (name, flight) = tokio::join!(name, flight);
    let (Name { name }, Flight { seats, window }) = (name?, flight?);
    let sure: bool = ctx.elicit("sure", format!("Pay {quote}?")).await?;
    Ok(format!("{name} {seats} {window} {quote} {sure}"))
}

/// Continues without a response
#[mcp_tool]
async fn optional(ctx: &Context) -> String {
    match ctx.elicit::<Name>("who", "Who?").await {
        Ok(Name { name }) => format!("it is {name}"),
        Err(error) => format!("no answer: {error}"),
    }
}

/// Requests sampling and roots
#[mcp_tool]
async fn consult(ctx: &Context) -> Result<String, ToolError> {
    let (answer, roots) =
        tokio::join!(ctx.sample("q", CreateMessage::user("What is 2 + 2?")), ctx.roots("folders"));
    let (answer, roots) = (answer?, roots?);
    Ok(format!("{} in {}", answer.text(), roots[0].uri))
}

/// Uses one key for two client requests
#[mcp_tool]
async fn twice(ctx: &Context) -> Result<String, ToolError> {
    let first: bool = ctx.elicit("key", "One?").await?;
    let second: bool = ctx.elicit("key", "Two?").await?;
    Ok(format!("{first} {second}"))
}

/// Elicits from a spawned task
#[mcp_tool]
async fn detached(ctx: &Context) -> Result<String, ToolError> {
    let ctx = ctx.clone();
    let asked = spawn(async move { ctx.elicit::<bool>("key", "Really?").await }).await?;
    Ok(asked?.to_string())
}

/// A page that elicits the name of its reader
#[mcp_resource(uri = "page://welcome", cache(ttl = "60s", public))]
async fn welcome(ctx: &Context) -> Result<String, ToolError> {
    let Name { name } = ctx.elicit::<Name>("reader", "Who reads?").await?;
    Ok(format!("Welcome, {name}"))
}

/// A prompt that elicits more
#[mcp_prompt]
async fn brief(topic: String, ctx: &Context) -> Result<String, ToolError> {
    let Name { name } = ctx.elicit::<Name>("writer", "Who writes?").await?;
    Ok(format!("{name} writes about {topic}"))
}

fn builder(gate: &Gate) -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!()).state(gate.clone())
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
        other => panic!("unexpected request {other:?}"),
    };
    json!({ "action": "accept", "content": content })
}

async fn connect(cell: Cell) -> (Client, Gate) {
    let gate = Gate::default();
    let server = builder(&gate).build().unwrap();
    (connect_to(&server, cell, capable(), answers).await, gate)
}

#[tokio::test]
async fn joined_client_requests_share_a_round_trip_and_once_runs_once() {
    for cell in cells("client requests") {
        let (mut client, gate) = connect(cell).await;
        let exchange = client.call("book", json!({})).await;
        assert_eq!(exchange.text(), "Ada 2 true 41 true", "{cell:?}");
        // name and flight together, then the payment
        assert_eq!(exchange.round_trips, if cell.1 == Protocol::Modern { 3 } else { 1 }, "{cell:?}");
        assert_eq!(gate.entered(), 1, "{cell:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_used_twice_and_a_spawned_task_that_asks_are_private_errors() {
    for cell in cells("client requests") {
        for tool in ["twice", "detached"] {
            let (mut client, _) = connect(cell).await;
            let exchange = client.call(tool, json!({})).await;
            assert_eq!(exchange.reply["isError"], true, "{cell:?}");
            assert_eq!(exchange.text(), format!("tool '{tool}' failed"), "{cell:?}");
        }
    }
}

#[tokio::test]
async fn resources_and_prompts_can_elicit() {
    for cell in cells("elicitation") {
        let (mut client, _) = connect(cell).await;
        let page = client.request("resources/read", json!({ "uri": "page://welcome" })).await.reply;
        assert_eq!(page["contents"][0]["text"], "Welcome, Ada", "{cell:?}");
        if cell.1 == Protocol::Modern {
            // results that depend on responses are never cached, whatever the attribute says
            assert_eq!((&page["ttlMs"], &page["cacheScope"]), (&json!(0), &json!("private")), "{cell:?}");
        }
        let params = json!({ "name": "brief", "arguments": { "topic": "tea" } });
        let prompt = client.request("prompts/get", params).await.reply;
        assert_eq!(prompt["messages"][0]["content"]["text"], "Ada writes about tea", "{cell:?}");
    }
}

#[tokio::test]
async fn missing_client_capabilities_are_errors() {
    for cell in cells("missing capabilities") {
        let server = builder(&Gate::default()).build().unwrap();
        let mut client = connect_to(&server, cell, json!({}), answers).await;
        let lacking = client.call("greet", json!({})).await.reply;
        let swallowed = client.call("optional", json!({})).await.reply;
        match cell.1 {
            Protocol::Modern => {
                assert_eq!(lacking["error"]["code"], -32021, "{cell:?}");
                let needed = json!({ "requiredCapabilities": { "elicitation": {} } });
                assert_eq!(lacking["error"]["data"], needed, "{cell:?}");
                assert_eq!(swallowed["error"]["code"], -32021, "{cell:?}");
                let both = client.call("consult", json!({})).await.reply;
                let needed = json!({ "requiredCapabilities": { "roots": {}, "sampling": {} } });
                assert_eq!(both["error"]["data"], needed, "{cell:?}");
            }
            Protocol::Legacy => {
                assert_eq!(lacking["isError"], true, "{cell:?}");
                let text = lacking["content"][0]["text"].as_str().unwrap();
                assert_eq!(text, "the client does not support `elicitation`, which is needed here");
                assert!(swallowed["content"][0]["text"].as_str().unwrap().starts_with("no answer: "));
                let page = client.request("resources/read", json!({ "uri": "page://welcome" })).await.reply;
                assert_eq!(page["error"]["code"], -32603, "{cell:?}");
            }
        }
    }
}
