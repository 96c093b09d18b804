//! Completion of prompt arguments and template variables: lists, functions, enums and bools, limits and errors.

use mcp_runtime::{
    Completion,
    prompt::{PromptArgument, PromptCall, PromptDef},
};

use crate::prelude::*;

#[mcp_type]
#[serde(rename_all = "lowercase")]
enum Tone {
    Formal,
    Funny,
    Casual,
}

struct Products(Vec<String>);

fn ids(completion: &Completion, products: &Products) -> Vec<String> {
    products.0.iter().filter(|id| id.starts_with(&completion.value)).cloned().collect()
}

async fn towns(completion: &Completion) -> Vec<&'static str> {
    tokio::task::yield_now().await;
    match completion.arguments.get("country").map(String::as_str) {
        Some("de") => vec!["Berlin", "Bonn"],
        Some(_) => vec![],
        None => vec!["Berlin", "Bonn", "Paris"],
    }
}

fn named(completion: &Completion) -> [String; 1] {
    [format!("{}={}", completion.argument, completion.value)]
}

fn breaks(_: &Completion) -> Vec<String> {
    panic!("secret")
}

#[mcp_prompt]
fn review(
    #[mcp(complete = ids)] id: String,
    tone: Option<Tone>,
    urgent: bool,
    #[mcp(complete("Red", "green", "BLUE", "Grün"))] colour: String,
    #[mcp(complete = towns)] town: String,
    country: Option<String>,
    #[mcp(complete = named, name = "wireName")] other: Option<String>,
    #[mcp(complete = breaks)] broken: Option<String>,
    #[mcp(one_of("asc", "desc"))] order: Option<String>,
) -> String {
    let _ = (tone, urgent, colour, town, country, other, broken, order);
    id
}

#[mcp_resource(uri = "town://{country}/{town}{?tone}")]
fn town(country: String, #[mcp(complete = towns)] town: String, tone: Option<Tone>) -> String {
    let _ = tone;
    format!("{country}/{town}")
}

#[track_caller]
fn offered(reply: &Reply) -> Value {
    result(reply)["completion"]["values"].clone()
}

fn builder() -> ServerBuilder {
    let products = (0..250).map(|n| format!("p{n}")).collect();
    mcp_runtime::server!().prompt::<review>().resource::<town>().state(Products(products))
}

#[tokio::test]
async fn static_lists_match_prefixes_case_insensitively() {
    let server = serve(builder());
    let all = server.complete("review", "colour", "").await;
    assert_eq!(
        result(&all),
        json!({ "completion": { "values": ["Red", "green", "BLUE", "Grün"], "total": 4, "hasMore": false } })
    );
    for (typed, values) in [
        ("r", json!(["Red"])),
        ("G", json!(["green", "Grün"])),
        ("GRÜ", json!(["Grün"])),
        ("blue", json!(["BLUE"])),
        ("blues", json!([])),
        ("ed", json!([])),
    ] {
        assert_eq!(offered(&server.complete("review", "colour", typed).await), values, "{typed}");
    }
}

#[tokio::test]
async fn enums_and_bools_are_completed_automatically() {
    let server = serve(builder());
    assert_eq!(offered(&server.complete("review", "tone", "").await), json!(["formal", "funny", "casual"]));
    assert_eq!(offered(&server.complete("review", "tone", "F").await), json!(["formal", "funny"]));
    assert_eq!(offered(&server.complete("review", "urgent", "").await), json!(["true", "false"]));
    assert_eq!(offered(&server.complete("review", "urgent", "t").await), json!(["true"]));
    assert_eq!(offered(&server.complete("review", "order", "d").await), json!(["desc"]));
    assert_eq!(offered(&server.complete("review", "country", "").await), json!([]));
    assert_eq!(
        offered(&server.complete("town://{country}/{town}{?tone}", "tone", "c").await),
        json!(["casual"])
    );
}

#[tokio::test]
async fn at_most_a_hundred_values_are_returned() {
    let server = serve(builder());
    let reply = result(&server.complete("review", "id", "").await);
    let values = reply["completion"]["values"].as_array().cloned().unwrap_or_default();
    assert_eq!((values.len(), &values[0], &values[99]), (100, &json!("p0"), &json!("p99")));
    assert_eq!((&reply["completion"]["total"], &reply["completion"]["hasMore"]), (&json!(250), &json!(true)));
    assert_eq!(
        result(&server.complete("review", "id", "p24").await)["completion"],
        json!({
            "values": ["p24", "p240", "p241", "p242", "p243", "p244", "p245", "p246", "p247", "p248", "p249"],
            "total": 11, "hasMore": false
        })
    );
}

#[tokio::test]
async fn functions_see_the_values_of_other_arguments() {
    let server = serve(builder());
    let all = json!(["Berlin", "Bonn", "Paris"]);
    for (context, values) in [
        (Value::Null, all.clone()),
        (json!({}), all),
        (json!({ "arguments": { "country": "de" } }), json!(["Berlin", "Bonn"])),
        (json!({ "arguments": { "country": "fr", "other": "x" } }), json!([])),
    ] {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "review" }, "argument": { "name": "town", "value": "B" },
            "context": context
        });
        assert_eq!(offered(&server.request("completion/complete", params).await), values, "{context}");
    }
    assert_eq!(offered(&server.complete("review", "wireName", "x\"").await), json!(["wireName=x\""]));
}

#[tokio::test]
async fn a_panic_in_a_completer_fails_only_its_request() {
    let server = serve(builder());
    let reply = server.complete("review", "broken", "").await;
    assert_eq!(refusal(&reply).0, -32603);
    assert!(!reply.to_string().contains("secret"), "{reply}");
    assert_eq!(offered(&server.complete("review", "urgent", "").await), json!(["true", "false"]));
}

#[tokio::test]
async fn what_has_no_values_completes_to_none() {
    #[mcp_resource(uri = "docs://plain")]
    fn plain() -> &'static str {
        ""
    }
    let server = serve(builder().resource::<plain>());
    let none = json!({ "completion": { "values": [], "total": 0, "hasMore": false } });
    for (reference, argument) in [
        ("review", "nothing"),
        ("town://{country}/{town}{?tone}", "nothing"),
        ("docs://plain", "anything"),
        ("DOCS://plain", "anything"),
        // an instance of a template has no arguments either
        ("town://de/Bonn", "town"),
    ] {
        assert_eq!(result(&server.complete(reference, argument, "B").await), none, "{reference}");
    }
    server.complete("docs://other", "tone", "").await.expect_code(-32602);
    let near = server.complete("reveiw", "tone", "").await;
    assert!(refusal(&near).1.contains("did you mean `review`?"), "{near}");
}

#[tokio::test]
async fn completion_is_declared_from_the_first_item_on_that_completes() {
    let server = mcp_runtime::server!().build().expect("a server");
    let client = TestServer::of(&server);
    let handle = server.handle();
    assert_eq!(
        client.capabilities().await,
        json!({
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "tools": { "listChanged": true },
        })
    );
    let tone = PromptArgument::new("tone").complete(["kind", "blunt"]);
    let late = PromptDef::builder("late").argument(tone).handler(async |_: PromptCall| "hi");
    handle.add(late).expect("a prompt");
    assert_eq!(client.capabilities().await["completions"], json!({}));
    let reply = client.complete("late", "tone", "b").await;
    assert_eq!(reply.value()["completion"]["values"], json!(["blunt"]));
    assert!(handle.remove_prompt("late").expect("a server"));
    assert_eq!(client.capabilities().await.get("completions"), None);
}

#[tokio::test]
async fn completion_is_declared_only_if_something_completes() {
    #[mcp_prompt]
    fn plain(text: String) -> String {
        text
    }
    #[mcp_prompt]
    fn flag(on: bool) -> String {
        on.to_string()
    }
    #[mcp_tool]
    fn tool(on: bool) -> String {
        on.to_string()
    }
    let without = serve(mcp_runtime::server!().prompt::<plain>().tool::<tool>());
    assert_eq!(without.capabilities().await.get("completions"), None);
    without.complete("plain", "text", "").await.expect_code(-32601);
    let mut with = serve(mcp_runtime::server!().prompt::<flag>());
    assert_eq!(with.capabilities().await["completions"], json!({}));
    for revision in LEGACY {
        with = with.legacy(revision);
        let known = revision >= Revision::V2025_03_26;
        assert_eq!(with.capabilities().await.get("completions").is_some(), known, "{revision}");
        // the method is older than the capability
        let reply = with.complete("flag", "on", "t").await;
        assert_eq!(
            *reply.value(),
            json!({ "completion": { "values": ["true"], "total": 1, "hasMore": false } }),
            "{revision}"
        );
    }
}
