//! The wire of requests and answers, and what is refused.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::core::{
    content::{ResourceLink, Role},
    context::{ClientFeature, ClientRequestError},
    protocol::Revision,
};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct City {
    /// City name
    city: String,
}

/// The params of a request.
fn params(revision: Revision, request: CreateMessage) -> Result<Value, ClientRequestError> {
    let params = request.encode("key", revision, false)?;
    Ok(serde_json::from_slice(&params).unwrap_or_else(|error| panic!("{error}")))
}

fn wish() -> Sampled {
    let result = json!({
        "role": "assistant", "model": "m", "stopReason": "toolUse",
        "content": [
            { "type": "text", "text": "Let me see." },
            { "type": "tool_use", "id": "1", "name": "weather", "input": { "city": "Rome" }, "_meta": { "s": 1 } },
            { "type": "tool_use", "id": "2", "name": "weather", "input": { "town": "Oslo" } },
        ],
    });
    Sampled::decode(&result.to_string()).unwrap_or_else(|error| panic!("{error}"))
}

fn of_user(content: Vec<SamplingBlock>) -> SamplingMessage {
    SamplingMessage { role: Role::User, content }
}

fn audio() -> SamplingMessage {
    of_user(vec![SamplingBlock::Audio { data: b"wav".to_vec(), mime_type: "audio/wav".into() }])
}

/// A request whose last messages are these.
fn after(text: &str, messages: impl IntoIterator<Item = SamplingMessage>) -> CreateMessage {
    let mut request = CreateMessage::user(text);
    request.messages.extend(messages);
    request
}

#[test]
fn the_default_is_1000_tokens() {
    assert_eq!(
        params(Revision::LATEST, CreateMessage::user("Hi")),
        Ok(json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Hi" } }],
            "maxTokens": 1000,
        }))
    );
}

#[test]
fn every_member_is_sent_under_its_name() {
    let image = SamplingBlock::Image { data: b"png".to_vec(), mime_type: "image/png".into() };
    let hint = |name: &str| ModelHint { name: name.into() };
    let request = CreateMessage {
        messages: vec![
            SamplingMessage::user("Hi"),
            SamplingMessage::assistant("Hello"),
            of_user(vec![image]),
            audio(),
        ],
        model_preferences: Some(ModelPreferences {
            hints: vec![hint("opus"), hint("sonnet")],
            cost_priority: Some(0.0),
            speed_priority: Some(1.0),
            intelligence_priority: Some(0.25),
        }),
        system_prompt: Some("Be short.".into()),
        include_context: Some(SampleContext::AllServers),
        temperature: Some(0.5),
        max_tokens: 7,
        stop_sequences: vec!["END".into(), "\n".into()],
        metadata: [("user".to_owned(), json!(1))].into_iter().collect(),
        tools: vec![
            SamplingTool::new::<City>("weather", "The weather"),
            SamplingTool::new::<()>("time", "Now"),
        ],
        tool_choice: Some(ToolChoice::Required),
        meta: [("trace".to_owned(), json!(2))].into_iter().collect(),
    };
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string", "description": "City name" } },
        "required": ["city"]
    });
    assert_eq!(
        params(Revision::V2025_11_25, request),
        Ok(json!({
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "Hi" } },
                { "role": "assistant", "content": { "type": "text", "text": "Hello" } },
                { "role": "user", "content": { "type": "image", "data": "cG5n", "mimeType": "image/png" } },
                { "role": "user", "content": { "type": "audio", "data": "d2F2", "mimeType": "audio/wav" } },
            ],
            "modelPreferences": {
                "hints": [{ "name": "opus" }, { "name": "sonnet" }],
                "costPriority": 0.0, "speedPriority": 1.0, "intelligencePriority": 0.25
            },
            "systemPrompt": "Be short.",
            "temperature": 0.5,
            "maxTokens": 7,
            "stopSequences": ["END", "\n"],
            "metadata": { "user": 1 },
            "tools": [
                { "name": "weather", "description": "The weather", "inputSchema": schema },
                { "name": "time", "description": "Now", "inputSchema": { "type": "object" } },
            ],
            "toolChoice": { "mode": "required" },
            "_meta": { "trace": 2 },
        }))
    );
}

#[test]
fn the_context_is_requested_only_of_clients_that_know_it() {
    let request =
        CreateMessage { include_context: Some(SampleContext::ThisServer), ..CreateMessage::user("Hi") };
    for &revision in Revision::ALL {
        for declared in [true, false] {
            let params =
                request.clone().encode("key", revision, declared).unwrap_or_else(|error| panic!("{error:?}"));
            let sent = String::from_utf8_lossy(&params).contains(r#""includeContext":"thisServer""#);
            assert_eq!(sent, declared || revision <= Revision::V2025_06_18, "{revision} {declared}");
        }
    }
}

#[test]
fn tools_need_a_feature_of_their_own() {
    assert_eq!(CreateMessage::user("Hi").required_feature(), ClientFeature::Sampling);
    let plain = || CreateMessage::user("Hi");
    for request in [
        CreateMessage { tools: vec![SamplingTool::new::<City>("weather", "")], ..plain() },
        CreateMessage { tool_choice: Some(ToolChoice::None), ..plain() },
        after("Hi", [wish().into()]),
    ] {
        assert_eq!(request.required_feature(), ClientFeature::SamplingTools);
    }
}

#[test]
fn uses_of_tools_are_returned_with_their_results() {
    let wish = wish();
    let uses: Vec<&ToolUse> = wish.tool_uses().collect();
    let link = ResourceLink::new("file:///a", "a");
    let results = of_user(vec![uses[1].failure("no `city`"), uses[0].result("20 °C"), uses[0].result(link)]);
    let sent = params(
        Revision::V2025_11_25,
        after("Where is it warmer?", [wish.clone().into(), results, SamplingMessage::user("Well?")]),
    );
    let content = |text: &str| json!([{ "type": "text", "text": text }]);
    assert_eq!(
        sent.map(|mut params| params["messages"].take()),
        Ok(json!([
            { "role": "user", "content": { "type": "text", "text": "Where is it warmer?" } },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "1", "name": "weather", "input": { "city": "Rome" }, "_meta": { "s": 1 } },
                { "type": "tool_use", "id": "2", "name": "weather", "input": { "town": "Oslo" } },
            ]},
            { "role": "user", "content": [
                { "type": "tool_result", "toolUseId": "2", "content": content("no `city`"), "isError": true },
                { "type": "tool_result", "toolUseId": "1", "content": content("20 °C") },
                { "type": "tool_result", "toolUseId": "1",
                    "content": [{ "type": "resource_link", "uri": "file:///a", "name": "a" }] },
            ]},
            { "role": "user", "content": { "type": "text", "text": "Well?" } },
        ]))
    );
}

#[test]
fn invalid_conversations_are_refused() {
    let speed = |speed| ModelPreferences { speed_priority: Some(speed), ..ModelPreferences::default() };
    let answered = |results: &[usize]| {
        let wish = wish();
        let uses: Vec<&ToolUse> = wish.tool_uses().collect();
        let results = results.iter().map(|&index| uses[index].result("a")).collect();
        after("x", [wish.clone().into(), of_user(results)])
    };
    let cases = [
        ("no message", CreateMessage::default()),
        ("no content", after("x", [of_user(Vec::new())])),
        ("`temperature`", CreateMessage { temperature: Some(f64::NAN), ..CreateMessage::user("x") }),
        ("from 0 to 1", CreateMessage { model_preferences: Some(speed(1.5)), ..CreateMessage::user("x") }),
        (
            "from 0 to 1",
            CreateMessage { model_preferences: Some(speed(f64::NAN)), ..CreateMessage::user("x") },
        ),
        ("`1`, `2`", after("x", [wish().into()])),
        ("`2`", answered(&[0])),
        ("`1`", after("x", [answered(&[0, 1]).messages.remove(2)])),
        (
            "`count`",
            CreateMessage { tools: vec![SamplingTool::new::<u8>("count", "")], ..CreateMessage::user("x") },
        ),
    ];
    for (expected, request) in cases {
        match params(Revision::LATEST, request) {
            Err(ClientRequestError::Unfit { reason, .. }) => {
                assert!(reason.contains(expected), "{expected}: {reason}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn older_revisions_get_only_what_they_define() {
    let heard = |revision| params(revision, after("x", [audio()]));
    assert_eq!(heard(Revision::V2024_11_05), Err(ClientRequestError::Revision("audio in sampling")));
    assert!(heard(Revision::V2025_03_26).is_ok());
    let tools = |revision| {
        let tools = vec![SamplingTool::new::<City>("weather", "")];
        params(revision, CreateMessage { tools, ..CreateMessage::user("x") })
    };
    assert_eq!(tools(Revision::V2025_06_18), Err(ClientRequestError::Revision("tools in sampling")));
    assert!(tools(Revision::V2025_11_25).is_ok());
    // a message has one block there
    let two = json!({ "role": "assistant", "model": "m", "content": [
        { "type": "text", "text": "a" }, { "type": "image", "data": "cG5n", "mimeType": "image/png" }
    ]});
    let two = Sampled::decode(&two.to_string()).unwrap_or_else(|error| panic!("{error}"));
    let sent = params(Revision::V2025_06_18, after("x", [two.into()]));
    let messages = sent.map(|params| params["messages"].as_array().map(Vec::len));
    assert_eq!(messages, Ok(Some(3)));
}

#[test]
fn results_are_decoded() {
    let one = json!({
        "role": "assistant", "model": "m", "content": { "type": "text", "text": "Paris", "annotations": {} }, "_meta": {}
    });
    let one = Sampled::decode(&one.to_string()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((one.text(), one.model.as_str(), one.stop_reason), ("Paris".to_owned(), "m", None));
    let wish = wish();
    assert_eq!(wish.stop_reason.as_deref(), Some("toolUse"));
    let cities: Vec<Option<City>> = wish.tool_uses().map(|wanted| wanted.arguments().ok()).collect();
    assert_eq!(cities, [Some(City { city: "Rome".into() }), None]);
}

#[test]
fn malformed_results_are_described() {
    let text = json!({ "type": "text", "text": "x" });
    let cases = [
        (json!(3), "expected struct"),
        (json!({ "content": text, "model": "m" }), "`role`"),
        (json!({ "role": "system", "content": text, "model": "m" }), "`system`"),
        (json!({ "role": "assistant", "model": "m" }), "`content`"),
        (json!({ "role": "assistant", "content": "x", "model": "m" }), "SamplingBlock"),
        (json!({ "role": "assistant", "content": [{ "type": "video" }], "model": "m" }), "`video`"),
        (json!({ "role": "assistant", "content": { "type": "text" }, "model": "m" }), "`text`"),
        (
            json!({ "role": "assistant", "content": { "type": "image", "data": "?", "mimeType": "a/b" }, "model": "m" }),
            "`data`",
        ),
        (
            json!({ "role": "assistant", "content": { "type": "tool_use", "id": "a", "name": "b" }, "model": "m" }),
            "`input`",
        ),
        (json!({ "role": "assistant", "content": text }), "`model`"),
        (json!({ "role": "assistant", "content": text, "model": "m", "stopReason": 3 }), "integer `3`"),
    ];
    for (result, expected) in cases {
        let wrong = Sampled::decode(&result.to_string()).map(drop);
        assert!(wrong.as_ref().is_err_and(|wrong| wrong.contains(expected)), "{result}: {wrong:?}");
    }
}
