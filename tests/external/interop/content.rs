//! The `content` example as a client sees it: every kind of content block, resource contents and message.

use serde_json::{Value, json};

use crate::interop::{
    driver::{Mode, Sdk},
    expect::Step,
    repo::natural_or_wrapped,
};

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

pub(crate) fn steps(sdk: Sdk, mode: Mode) -> Vec<Step> {
    let mut steps = texts();
    steps.extend(structured(mode));
    steps.extend(blocks());
    steps.extend(resources(sdk, mode));
    steps.extend(prompts());
    steps
}

/// A call that returns these blocks and no structured content.
fn call(name: &str, arguments: &Value, blocks: &Value) -> Step {
    Step::result(
        json!({ "op": "call", "name": name, "arguments": arguments }),
        &json!({ "content": blocks, "structuredContent": null, "isError": null }),
    )
}

/// A call that returns this structured value, preceded by its JSON as text.
fn structured_call(mode: Mode, name: &str, arguments: &Value, value: &Value, more: &[Value]) -> Step {
    let mut blocks = vec![json!({ "type": "text", "text": { "$json": value } })];
    blocks.extend(more.iter().cloned());
    let structured = if value.is_object() { value.clone() } else { natural_or_wrapped(mode, value) };
    Step::result(
        json!({ "op": "call", "name": name, "arguments": arguments }),
        &json!({ "content": blocks, "structuredContent": structured, "isError": null }),
    )
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" })
}

fn link() -> Value {
    json!({
        "type": "resource_link",
        "uri": "content://pixel",
        "name": "pixel",
        "description": "One red pixel",
        "mimeType": "image/png",
    })
}

fn note() -> Value {
    json!({ "uri": "content://note", "mimeType": "text/markdown", "text": "# A note" })
}

fn forecast(city: &str) -> Value {
    json!({ "city": city, "high": 21.5, "rain": false })
}

fn texts() -> Vec<Step> {
    vec![
        call("owned_text", &json!({ "name": "Ada" }), &json!([text("Hello, Ada!")])),
        call("fixed_text", &json!({}), &json!([text("always the same")])),
        call("maybe_fixed_text", &json!({ "loud": "true" }), &json!([text("QUIET")])),
        call("sum", &json!({ "a": 40, "b": 2.0 }), &json!([text("42")])),
        call("is_even", &json!({ "number": 7 }), &json!([text("false")])),
        call("forget", &json!({}), &json!([])),
        call("nickname", &json!({ "name": "Ada" }), &json!([])),
        call("nickname", &json!({ "name": "Augusta" }), &json!([text("Aug")])),
    ]
}

fn structured(mode: Mode) -> Vec<Step> {
    let kiel = json!({ "city": "Kiel" });
    vec![
        structured_call(mode, "forecast", &kiel, &forecast("Kiel"), &[]),
        structured_call(
            mode,
            "forecasts",
            &json!({ "cities": ["Kiel", "Jena"] }),
            &json!([forecast("Kiel"), forecast("Jena")]),
            &[],
        ),
        structured_call(mode, "high", &kiel, &json!(21.5), &[]),
        structured_call(mode, "forecast_with_map", &kiel, &forecast("Kiel"), &[image()]),
        Step::result(
            json!({ "op": "call", "name": "whole" }),
            &json!({
                "content": [text("Kiel will be fine")],
                "structuredContent": forecast("Kiel"),
                "_meta": { "example.org/source": "almanac" },
            }),
        ),
    ]
}

fn blocks() -> Vec<Step> {
    let sound = json!({ "type": "audio", "data": { "$contains": ["UklGR"] }, "mimeType": "audio/wav" });
    vec![
        call("image", &json!({}), &json!([image()])),
        call("sound", &json!({}), &json!([sound])),
        call("link", &json!({}), &json!([link()])),
        call("embedded", &json!({}), &json!([{ "type": "resource", "resource": note() }])),
        call("several", &json!({}), &json!([text("a pixel:"), image(), link()])),
        call("countdown", &json!({ "from": 2 }), &json!([text("2"), text("1"), text("0")])),
        call(
            "annotated",
            &json!({}),
            &json!([
                {
                    "text": "for people",
                    "annotations": { "audience": ["user"], "priority": 0.9, "lastModified": "2026-07-28T12:00:00Z" },
                },
                { "text": "for the model", "annotations": { "audience": ["assistant"], "priority": 0.1 } },
            ]),
        ),
    ]
}

fn resources(sdk: Sdk, mode: Mode) -> Vec<Step> {
    let read = |uri: &str, contents: &Value| {
        Step::result(json!({ "op": "read", "uri": uri }), &json!({ "contents": [contents] }))
    };
    vec![
        Step::result(
            json!({ "op": "resources" }),
            &json!({
                "resources": [
                    { "uri": "content://note", "name": "note", "mimeType": "text/markdown" },
                    { "uri": "content://silence", "name": "silent", "mimeType": "audio/wav" },
                    { "uri": "content://pixel", "name": "pixel", "mimeType": "image/png" },
                ],
            }),
        ),
        read("content://note", &note()),
        read(
            "content://forecast/K%C3%B6ln",
            &json!({
                "uri": "content://forecast/K%C3%B6ln",
                "mimeType": "application/json",
                "text": { "$json": forecast("Köln") },
            }),
        ),
        read("content://silence", &json!({ "mimeType": "audio/wav", "blob": { "$contains": ["UklGR"] } })),
        read(
            "content://pixel",
            &json!({ "mimeType": "image/png", "blob": PIXEL, "_meta": { "example.org/colour": "red" } }),
        ),
        Step::not_found(sdk, mode, "content://forecast/kiel"),
    ]
}

fn prompts() -> Vec<Step> {
    let get = |name: &str, arguments: &Value, result: &Value| {
        Step::result(json!({ "op": "prompt", "name": name, "arguments": arguments }), result)
    };
    let said = |role: &str, content: &Value| json!({ "role": role, "content": content });
    vec![
        get(
            "greet",
            &json!({ "name": "Ada" }),
            &json!({ "messages": [said("user", &text("Say hello to Ada."))] }),
        ),
        get(
            "quiz",
            &json!({}),
            &json!({
                "messages": [
                    said("user", &text("Ask me something.")),
                    said("assistant", &text("What is the capital of France?")),
                ],
            }),
        ),
        get(
            "describe",
            &json!({}),
            &json!({ "messages": [said("user", &image()), said("user", &text("What is in this image?"))] }),
        ),
        get(
            "summarize",
            &json!({}),
            &json!({
                "description": "Summarizes the note",
                "messages": [
                    said("user", &json!({ "type": "resource", "resource": note() })),
                    said("user", &text("Summarize this.")),
                ],
            }),
        ),
        Step::error(json!({ "op": "prompt", "name": "greet", "arguments": {} }), -32602, &Value::Null),
    ]
}
