//! Sampling and roots.

use mcp_runtime::{
    client_request::{ClientRequestError, CreateMessage, SamplingMessage, SamplingTool, ToolChoice},
    content::Role,
};

use super::{client, everything, since};
use crate::prelude::*;

/// Asks a model for a capital.
#[mcp_tool]
async fn capital(country: String, ctx: &Context) -> Result<String, ToolError> {
    let question = format!("What is the capital of {country}?");
    let request = CreateMessage {
        system_prompt: Some("One word.".into()),
        max_tokens: 100,
        ..CreateMessage::user(question)
    };
    let answer = ctx.sample("capital", request).await?;
    Ok(format!("{} ({}, {:?})", answer.text(), answer.model, answer.stop_reason))
}

fn said(content: &Value) -> Value {
    json!({ "role": "assistant", "content": content, "model": "m-1", "stopReason": "endTurn" })
}

#[tokio::test]
async fn sampling_works_in_every_revision() {
    let (mut server, questions) = client(mcp_runtime::server!().tool::<capital>(), |_, _| {
        said(&json!({ "type": "text", "text": "Paris" }))
    });
    for revision in since(Revision::V2024_11_05) {
        server = server.legacy(revision);
        let reply = server.call("capital", json!({ "country": "France" })).await;
        reply.expect_text("Paris (m-1, Some(\"endTurn\"))");
        let asked = json!({
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "What is the capital of France?" } }
            ],
            "systemPrompt": "One word.",
            "maxTokens": 100,
        });
        assert_eq!(questions.take(), [("sampling/createMessage".to_owned(), asked)], "{revision}");
    }
}

#[tokio::test]
async fn an_invalid_sampling_response_is_requested_again() {
    let (mut server, questions) =
        client(mcp_runtime::server!().tool::<capital>(), |_, _| json!({ "role": "assistant" }));
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        server = server.legacy(revision);
        let text = failure(&server.call("capital", json!({ "country": "France" })).await);
        assert!(text.contains("`capital`") && text.contains("missing field `content`"), "{text}");
        assert_eq!(questions.take().len(), 4, "{revision}");
    }
}

#[mcp_type]
struct City {
    city: String,
}

/// Lets a model look up the weather.
#[mcp_tool]
async fn weather(ctx: &Context) -> Result<String, ToolError> {
    let mut request = CreateMessage {
        tools: vec![SamplingTool::new::<City>("weather", "The weather in a city")],
        tool_choice: Some(ToolChoice::Required),
        ..CreateMessage::user("Where is it warmer?")
    };
    let wish = ctx.sample("wish", request.clone()).await?;
    let results = wish.tool_uses().map(|wanted| match wanted.arguments::<City>() {
        Ok(city) => wanted.result(format!("{}: 20 °C", city.city)),
        Err(error) => wanted.failure(error.to_string()),
    });
    let results = SamplingMessage { role: Role::User, content: results.collect() };
    request.messages.extend([wish.into(), results]);
    request.tool_choice = None;
    Ok(ctx.sample("report", request).await?.text())
}

fn weather_answers(_: &str, params: &Value) -> Value {
    if params["messages"].as_array().is_some_and(|messages| messages.len() == 1) {
        assert_eq!(params["toolChoice"], json!({ "mode": "required" }));
        return said(&json!([
            { "type": "tool_use", "id": "a", "name": "weather", "input": { "city": "Rome" } },
            { "type": "tool_use", "id": "b", "name": "weather", "input": { "town": "Oslo" } },
        ]));
    }
    assert_eq!(params["messages"][1]["content"][0]["id"], "a");
    assert_eq!(
        params["messages"][2]["content"],
        json!([
            { "type": "tool_result", "toolUseId": "a", "content": [{ "type": "text", "text": "Rome: 20 °C" }] },
            { "type": "tool_result", "toolUseId": "b", "isError": true,
                "content": [{ "type": "text", "text": "missing field `city`" }] },
        ])
    );
    said(&json!({ "type": "text", "text": "In Rome." }))
}

#[tokio::test]
async fn models_use_tools_between_sampling_requests() {
    let (mut server, _) = client(mcp_runtime::server!().tool::<weather>(), weather_answers);
    for revision in since(Revision::V2025_11_25) {
        server = server.legacy(revision);
        server.call("weather", json!({})).await.expect_text("In Rome.");
    }
    server = server.legacy(Revision::V2025_06_18);
    assert!(failure(&server.call("weather", json!({})).await).contains("has no tools in sampling"));
    let server = serve(mcp_runtime::server!().tool::<weather>())
        .answering(json!({ "sampling": {} }), |_, _| panic!("unexpected client request"));
    server.call("weather", json!({})).await.expect_code(-32021);
}

/// Lists the roots.
#[mcp_tool]
async fn folders(ctx: &Context) -> Result<String, ClientRequestError> {
    let roots = ctx.roots("folders").await?;
    let shown: Vec<String> =
        roots.into_iter().map(|root| format!("{} {}", root.uri, root.name.unwrap_or_default())).collect();
    Ok(shown.join("; "))
}

#[tokio::test]
async fn roots_are_listed_in_every_revision() {
    let (mut server, questions) = client(
        mcp_runtime::server!().tool::<folders>(),
        |_, _| json!({ "roots": [{ "uri": "file:///a", "name": "A" }, { "uri": "file:///b" }] }),
    );
    for revision in since(Revision::V2024_11_05) {
        server = server.legacy(revision);
        server.call("folders", json!({})).await.expect_text("file:///a A; file:///b ");
        assert_eq!(questions.take(), [("roots/list".to_owned(), json!({}))], "{revision}");
    }
}

/// Prefers an elicited value, but works without.
#[mcp_tool]
async fn optional(ctx: &Context) -> String {
    match ctx.elicit::<String>("name", "Who are you?").await {
        Ok(name) => name,
        Err(error) => format!("stranger ({error})"),
    }
}

#[tokio::test]
async fn a_refused_client_request_is_an_error_that_functions_can_handle() {
    let server = serve(mcp_runtime::server!().tool::<optional>())
        .answering(everything(), |_, _| Err("not today".to_owned()))
        .legacy(Revision::V2025_11_25);
    let reply = server.call("optional", json!({})).await;
    reply.expect_text("stranger (the client refused `name`: not today (-1))");
    // modern clients have no way to refuse: a request that they cannot fulfil is abandoned
    let server = serve(mcp_runtime::server!().tool::<optional>())
        .answering(everything(), |_, _| Err("not today".to_owned()));
    assert_eq!(server.call("optional", json!({})).await.value()["resultType"], "input_required");
}
