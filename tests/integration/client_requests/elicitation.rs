//! Form elicitation: the schema that each type produces, and how each kind of response is handled.

use std::collections::HashSet;

use mcp_runtime::client_request::{ClientRequestError, CreateMessage};

use super::{client, since};
use crate::prelude::*;

#[mcp_type]
#[serde(rename_all = "lowercase")]
#[derive(Debug, PartialEq, Eq, Hash)]
enum Topping {
    /// Without meat
    Mushrooms,
    #[schemars(title = "Very hot")]
    Chili,
    Olives,
}

#[mcp_type]
struct Order {
    /// Who it is for
    name: String,
    #[schemars(range(min = 1, max = 9))]
    #[serde(default = "one")]
    pieces: u8,
    favourite: Topping,
    #[schemars(length(max = 2))]
    toppings: HashSet<Topping>,
    note: Option<String>,
}

fn one() -> u8 {
    1
}

/// Orders a pizza.
#[mcp_tool]
async fn order(ctx: &Context) -> Result<String, ToolError> {
    let order: Order = ctx.elicit("order", "What may we bring?").await?;
    let Order { name, pieces, favourite, toppings, note } = order;
    Ok(format!("{name}: {pieces} with {favourite:?} and {} more, {note:?}", toppings.len()))
}

fn order_form() -> Value {
    let toppings = json!([
        { "const": "mushrooms", "title": "Without meat" },
        { "const": "chili", "title": "Very hot" },
        { "const": "olives", "title": "olives" },
    ]);
    let mut toppings_in_order = toppings.as_array().cloned().unwrap_or_default();
    // a property without title or description comes first in the schema
    toppings_in_order.rotate_right(1);
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "Who it is for" },
            "pieces": { "type": "integer", "minimum": 1, "maximum": 9, "default": 1 },
            "favourite": { "type": "string", "oneOf": toppings_in_order },
            "toppings": { "type": "array", "maxItems": 2, "items": { "anyOf": toppings_in_order } },
            "note": { "type": "string" },
        },
        "required": ["name", "favourite", "toppings"],
    })
}

fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[tokio::test]
async fn one_function_elicits_in_every_revision_with_elicitation() {
    let content = json!({ "name": "Ada", "favourite": "chili", "toppings": ["olives"], "pieces": 2.0 });
    let (mut server, questions) =
        client(mcp_runtime::server!().tool::<order>(), move |_, _| accept(&content));
    for revision in since(Revision::V2025_11_25) {
        server = server.legacy(revision);
        server.call("order", json!({})).await.expect_text("Ada: 2 with Chili and 1 more, None");
        let asked =
            json!({ "mode": "form", "message": "What may we bring?", "requestedSchema": order_form() });
        assert_eq!(questions.take(), [("elicitation/create".to_owned(), asked)], "{revision}");
    }
}

#[tokio::test]
async fn a_form_that_the_revision_cannot_express_is_an_error() {
    let (mut server, questions) = client(mcp_runtime::server!().tool::<order>(), |_, _| json!({}));
    for (revision, lacks) in [
        (Revision::V2025_06_18, "fields for several values of a list"),
        (Revision::V2025_03_26, "elicitation"),
        (Revision::V2024_11_05, "elicitation"),
    ] {
        server = server.legacy(revision);
        let text = failure(&server.call("order", json!({})).await);
        assert_eq!(text, format!("the client's revision of the protocol has no {lacks}"));
    }
    assert_eq!(questions.take(), []);
}

/// Elicits agreement, and returns the user's action.
#[mcp_tool]
async fn ask(ctx: &Context) -> Result<String, ClientRequestError> {
    let answer = ctx.elicit::<Topping>("topping", "Which?").answer().await?;
    Ok(format!("{}: {:?}", answer.action(), answer.accepted()))
}

/// Needs an accepted form.
#[mcp_tool]
async fn insist(ctx: &Context) -> Result<String, ToolError> {
    Ok(format!("{:?}", ctx.elicit::<Topping>("topping", "Which?").await?))
}

#[tokio::test]
async fn users_may_decline_and_cancel() {
    for (action, answered, insisted) in [
        ("decline", "decline: None", "the user declined to answer `topping`"),
        ("cancel", "cancel: None", "the user cancelled `topping`"),
    ] {
        let builder = mcp_runtime::server!().tool::<ask>().tool::<insist>();
        let (mut server, _) = client(builder, move |_, _| json!({ "action": action }));
        for revision in since(Revision::V2025_06_18) {
            server = server.legacy(revision);
            server.call("ask", json!({})).await.expect_text(answered);
            assert_eq!(failure(&server.call("insist", json!({})).await), insisted, "{revision}");
        }
    }
    let (server, _) =
        client(mcp_runtime::server!().tool::<ask>(), |_, _| accept(&json!({ "value": "chili" })));
    server.call("ask", json!({})).await.expect_text("accept: Some(Chili)");
}

#[tokio::test]
async fn an_invalid_response_is_requested_three_more_times() {
    let builder = || mcp_runtime::server!().tool::<insist>();
    let (mut server, questions) = client(builder(), |_, _| accept(&json!({ "value": "my secret" })));
    for revision in since(Revision::V2025_06_18) {
        server = server.legacy(revision);
        let text = failure(&server.call("insist", json!({})).await);
        assert!(text.contains("`topping`") && text.contains("`value`"), "{revision}: {text}");
        assert!(!text.contains("secret"), "{revision}: {text}");
        assert_eq!(questions.take().len(), 4, "{revision}");
    }
    for revision in since(Revision::V2025_06_18) {
        let answers = [json!(12345), accept(&Value::Null), accept(&json!({ "value": 1 }))];
        let left = Mutex::new(answers.to_vec());
        let (server, questions) = client(builder(), move |_, _| {
            let wrong = left.lock().expect("answers").pop();
            wrong.unwrap_or_else(|| accept(&json!({ "value": "olives" })))
        });
        server.legacy(revision).call("insist", json!({})).await.expect_text("Olives");
        assert_eq!(questions.take().len(), 4, "{revision}");
    }
}

#[mcp_type]
struct Nested {
    place: Place,
}

#[mcp_type]
struct Place {
    street: String,
}

/// Elicits a type that no form can express.
#[mcp_tool]
async fn nested(ctx: &Context) -> Result<String, ToolError> {
    Ok(ctx.elicit::<Nested>("nested", "Where?").await?.place.street)
}

#[tokio::test]
async fn a_type_that_no_form_can_express_is_an_internal_error() {
    let (server, questions) = client(mcp_runtime::server!().tool::<nested>(), |_, _| json!({}));
    let text = failure(&server.call("nested", json!({})).await);
    assert_eq!(text, "tool 'nested' failed");
    let (server, _) = client(mcp_runtime::server!().tool::<nested>().detailed_errors(), |_, _| json!({}));
    server.call("nested", json!({})).await.expect_failure("its field `place` is a struct");
    assert_eq!(questions.take(), []);
}

#[tokio::test]
async fn a_client_without_form_elicitation_gets_no_request() {
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } }), json!({ "sampling": {} })] {
        let server = serve(mcp_runtime::server!().tool::<insist>())
            .answering(capabilities, |_, _| panic!("unexpected client request"));
        let (code, text) = refusal(&server.call("insist", json!({})).await);
        assert_eq!(code, -32021, "{text}");
        let server = server.legacy(Revision::V2025_11_25);
        let text = failure(&server.call("insist", json!({})).await);
        assert_eq!(text, "the client does not support `elicitation`, which is needed here");
    }
}

/// Elicits agreement alone.
#[mcp_tool]
async fn agree(ctx: &Context) -> Result<&'static str, ToolError> {
    ctx.elicit::<()>("agree", "Delete everything?").await?;
    Ok("deleted")
}

#[tokio::test]
async fn a_confirmation_needs_no_content() {
    let (mut server, questions) =
        client(mcp_runtime::server!().tool::<agree>(), |_, _| json!({ "action": "accept" }));
    for revision in since(Revision::V2025_06_18) {
        server = server.legacy(revision);
        server.call("agree", json!({})).await.expect_text("deleted");
        let asked = questions.take();
        assert_eq!(
            asked[0].1["requestedSchema"],
            json!({ "type": "object", "properties": {} }),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_unit_test_that_asks_is_told_how_to_answer() {
    let ctx = Context::for_test();
    let asked = order(&ctx).await.unwrap_err().to_string();
    let visited = ctx.elicit_url("key", "message", "https://example.com").await.unwrap_err().to_string();
    let sampled = ctx.sample("key", CreateMessage::user("text")).await.unwrap_err().to_string();
    for text in [asked, visited, sampled] {
        assert!(text.contains("`Context::for_test()` has no client"), "{text}");
        assert!(text.contains("`TestServer::answering`") && !text.contains("spawned"), "{text}");
    }
}
