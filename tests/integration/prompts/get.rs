//! `prompts/list` and `prompts/get`: entries, arguments parsed from strings, messages of every kind, errors.

use mcp_runtime::{content::Message, prompt::PromptResult};

use crate::prelude::*;

#[mcp_type]
#[derive(Debug, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Style {
    Short,
    Long,
}

/// Writes about something.
#[mcp_prompt(title = "Write")]
fn write(
    /// What about
    topic: String,
    /// How
    style: Option<Style>,
) -> String {
    format!("Write about {topic} ({style:?})")
}

#[tokio::test]
async fn arguments_are_listed_and_messages_are_rendered() {
    let mut server = serve(mcp_runtime::server!().prompt::<write>());
    let mut entry = json!({
        "name": "write",
        "title": "Write",
        "description": "Writes about something.",
        "arguments": [
            { "name": "topic", "description": "What about", "required": true },
            { "name": "style", "description": "How", "required": false }
        ]
    });
    let got = json!({
        "description": "Writes about something.",
        "messages": [{ "role": "user", "content": { "type": "text", "text": "Write about tea (Some(Long))" } }]
    });
    let list = server.request("prompts/list", json!({})).await;
    assert_eq!(result(&list), json!({ "prompts": [entry], "ttlMs": 0, "cacheScope": "private" }));
    let sent = json!({ "topic": "tea", "style": "long" });
    assert_eq!(result(&server.prompt("write", sent.clone()).await), got);
    for revision in LEGACY.into_iter().rev() {
        if revision < Revision::V2025_06_18 {
            entry.as_object_mut().map(|entry| entry.remove("title"));
        }
        server = server.legacy(revision);
        let list = server.request("prompts/list", json!({})).await;
        assert_eq!(*list.value(), json!({ "prompts": [entry] }), "{revision}");
        assert_eq!(*server.prompt("write", sent.clone()).await.value(), got, "{revision}");
    }
}

#[tokio::test]
async fn a_prompt_without_arguments_has_no_such_member() {
    #[mcp_prompt]
    fn hello() -> &'static str {
        "Hello"
    }
    let server = serve(mcp_runtime::server!().prompt::<hello>());
    assert_eq!(server.list_prompts().await, [json!({ "name": "hello" })]);
    let got = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "Hello" } }] });
    assert_eq!(result(&server.request("prompts/get", json!({ "name": "hello" })).await), got);
    assert_eq!(
        result(&server.request("prompts/get", json!({ "name": "hello", "arguments": null })).await),
        got
    );
    assert_eq!(result(&server.prompt("hello", json!({ "unknown": "x" })).await), got);
}

#[mcp_prompt]
async fn typed(
    count: u32,
    style: Style,
    flag: bool,
    day: chrono::NaiveDate,
    id: uuid::Uuid,
    list: Vec<u8>,
    #[mcp(default = 0.5)] ratio: f32,
    #[mcp(range(1..=3))] level: Option<i8>,
) -> String {
    tokio::task::yield_now().await;
    format!("{count} {style:?} {flag} {day} {id} {list:?} {ratio} {level:?}")
}

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";

#[tokio::test]
async fn typed_arguments_are_parsed_from_strings() {
    let server = serve(mcp_runtime::server!().prompt::<typed>());
    let mut sent = json!({
        "count": "42", "style": "short", "flag": "true", "day": "2024-02-29", "id": ID, "list": "[1,2]"
    });
    let reply = server.request("prompts/get", json!({ "name": "typed", "arguments": sent })).await;
    reply.expect_text(&format!("42 Short true 2024-02-29 {ID} [1, 2] 0.5 None"));
    for (name, value) in
        [("list", json!("1, 2")), ("ratio", json!("1e2")), ("level", json!("-0")), ("count", json!(" 7 "))]
    {
        sent[name] = value;
    }
    let reply = server.request("prompts/get", json!({ "name": "typed", "arguments": sent })).await;
    assert!(refusal(&reply).1.contains("`level`: 0 is less than the minimum of 1"), "{reply}");
    sent["level"] = "3".into();
    let reply = server.request("prompts/get", json!({ "name": "typed", "arguments": sent })).await;
    reply.expect_text(&format!("7 Short true 2024-02-29 {ID} [1, 2] 100 Some(3)"));
    // clients should send strings, but some do not
    sent["count"] = json!(8);
    sent["flag"] = json!(false);
    sent["list"] = json!([3]);
    sent["level"] = Value::Null;
    let reply = server.request("prompts/get", json!({ "name": "typed", "arguments": sent })).await;
    reply.expect_text(&format!("8 Short false 2024-02-29 {ID} [3] 100 None"));
}

#[tokio::test]
async fn every_invalid_argument_is_reported_at_once() {
    let mut server = serve(mcp_runtime::server!().prompt::<typed>());
    let sent = json!({
        "count": "-1", "style": "medium", "flag": "yes", "day": "2024-02-30", "list": "a", "ratio": "half", "level": "9"
    });
    for revision in LEGACY {
        let reply = server.request("prompts/get", json!({ "name": "typed", "arguments": sent })).await;
        let (code, message) = refusal(&reply);
        assert_eq!(code, -32602);
        for said in [
            "prompt `typed`",
            "`count`",
            "`style`",
            "medium",
            "`style`: \"medium\" is not one of \"short\"",
            "`flag`",
            "`yes`",
            "`day`: \"2024-02-30\" is not a date, as in 2026-",
            "`id`: is missing",
            "`list`",
            "`ratio`",
            "`half`",
            "`level`: 9 is greater than the maximum of 3",
        ] {
            assert!(message.contains(said), "{said}: {message}");
        }
        server = server.legacy(revision);
    }
    for wrong in ["1e39", "inf", "NaN"] {
        let reply = server.prompt("typed", json!({ "ratio": wrong })).await;
        assert!(refusal(&reply).1.contains("`ratio`: "), "{reply}");
    }
}

#[tokio::test]
async fn messages_are_sent_unchanged() {
    /// Not this
    #[mcp_prompt]
    fn described() -> PromptResult {
        PromptResult::new([Message::assistant("x")]).description("but this")
    }
    #[mcp_prompt]
    fn one() -> Message {
        Message::assistant("only")
    }
    #[mcp_prompt]
    fn tuple() -> (Message, &'static str) {
        (Message::assistant("a"), "b")
    }
    #[mcp_prompt]
    fn none() -> Vec<Message> {
        Vec::new()
    }
    let builder = mcp_runtime::server!().prompt::<described>().prompt::<one>().prompt::<tuple>();
    let server = serve(builder.prompt::<none>());
    let text = |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
    for (prompt, messages) in [
        ("described", json!([text("assistant", "x")])),
        ("one", json!([text("assistant", "only")])),
        ("tuple", json!([text("assistant", "a"), text("user", "b")])),
        ("none", json!([])),
    ] {
        let got = result(&server.prompt(prompt, json!({})).await);
        assert_eq!(got["messages"], messages, "{prompt}");
        let description = (prompt == "described").then(|| json!("but this"));
        assert_eq!(got.get("description"), description.as_ref(), "{prompt}");
    }
}

#[tokio::test]
async fn an_unknown_prompt_gets_a_suggestion() {
    let server = serve(mcp_runtime::server!().prompt::<write>().prompt::<typed>());
    let near = server.prompt("wriet", json!({})).await;
    assert_eq!(refusal(&near), (-32602, "unknown prompt `wriet`; did you mean `write`?".into()));
    let far = server.prompt("elephant", json!({})).await;
    assert_eq!(refusal(&far), (-32602, "unknown prompt `elephant`".into()));
}
