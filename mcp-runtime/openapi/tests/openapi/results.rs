//! What responses become.

use axum::body::Body;
use mcp_runtime::{
    Revision,
    serde_json::{Value, json},
};
use mcp_runtime_openapi::{OpenApi, Route};

use crate::support::{Recorder, one, response, serve};

fn returning(media: &str, schema: &Value) -> Value {
    json!({ "responses": { "200": { "content": { media: { "schema": schema } } } } })
}

#[tokio::test]
async fn json_is_structured_content_with_the_schema_of_the_response() {
    let recorder = Recorder::answering(|| {
        response(
            200,
            "application/json; charset=utf-8",
            "{ \"n\": 12345678901234567890123,\n \"s\" : \" x \",\t\"a\\\" b\": [ 1.10, \"\\\\\" ] }",
        )
    })
    .await;
    let schema = json!({ "type": "object", "required": ["n", "p"], "properties": {
        "n": { "type": "number" }, "s": { "type": "string" }, "p": { "type": "string", "writeOnly": true },
    } });
    let server = recorder.serve(&one("GET /", &returning("application/json", &schema)));
    assert_eq!(
        server.list_tools().await[0]["outputSchema"],
        json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "number" }, "s": { "type": "string" } } })
    );
    let reply = server.call("call", json!({})).await;
    // numbers stay as they are written
    reply.expect_text("{\"n\":12345678901234567890123,\"s\":\" x \",\"a\\\" b\":[1.10,\"\\\\\"]}");
    assert_eq!(reply.value()["structuredContent"]["s"], " x ");
    assert_eq!(recorder.last().header("accept"), Some("application/json"));
}

#[tokio::test]
async fn half_of_a_surrogate_pair_is_replaced_in_text_and_structured_content() {
    let recorder = Recorder::answering(|| {
        response(200, "application/json", r#"{ "s": "a\ud83d", "t": "\ud83d\ude00" }"#)
    })
    .await;
    let object = json!({ "type": "object" });
    let server = recorder.serve(&one("GET /", &returning("application/json", &object)));
    let reply = server.call("call", json!({})).await;
    reply.expect_text(r#"{"s":"a\ufffd","t":"\ud83d\ude00"}"#);
    assert_eq!(reply.value()["structuredContent"], json!({ "s": "a\u{fffd}", "t": "😀" }));
    let api = OpenApi::parse(&*one("GET /cut", &json!({}))).expect("a description").server(&recorder.url);
    let contents = serve(api.resource(Route::get("/cut"))).read("api:///cut").await;
    assert_eq!(contents.value()["contents"][0]["text"], r#"{"s":"a\ufffd","t":"\ud83d\ude00"}"#);
}

#[tokio::test]
async fn lists_are_wrapped_for_clients_that_take_only_objects() {
    let recorder = Recorder::answering(|| response(200, "application/json", "[1]")).await;
    let schema = json!({ "type": "array", "items": { "type": "integer" } });
    let server = recorder.serve(&one("GET /", &returning("application/json", &schema)));
    assert_eq!(server.call("call", json!({})).await.value()["structuredContent"], json!([1]));
    let server = server.legacy(Revision::LATEST_LEGACY);
    assert_eq!(server.call("call", json!({})).await.value()["structuredContent"], json!({ "result": [1] }));
}

#[tokio::test]
async fn a_response_that_is_not_as_described_is_an_error_unless_the_program_publishes_no_schema() {
    let recorder = Recorder::answering(|| response(200, "application/json", "{\"n\":\"x\"}")).await;
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let description = one("GET /", &returning("application/json", &schema));
    assert!(recorder.serve(&description).call("call", json!({})).await.is_error());
    let api = OpenApi::parse(&*description).expect("a description").server(&recorder.url);
    let server = serve(api.without_output_schemas());
    assert_eq!(server.list_tools().await[0].get("outputSchema"), None);
    assert_eq!(server.call("call", json!({})).await.value()["structuredContent"], json!({ "n": "x" }));

    let text = Recorder::answering(|| response(200, "text/html", "<p>")).await;
    let reply = text.serve(&description).call("call", json!({})).await;
    reply.expect_failure("the API answered with `text/html`, and its description says JSON");
    let broken = Recorder::answering(|| response(200, "application/json", "{")).await;
    broken.serve(&description).call("call", json!({})).await.expect_failure("invalid JSON");
}

#[tokio::test]
async fn media_become_the_blocks_that_show_them() {
    let block = |kind: &str, media: &str| json!({ "type": kind, "mimeType": media, "data": "aGk=" });
    let resource = |member: &str, media: &str, value: &str| json!({ "type": "resource", "resource": { "uri": "response:call", "mimeType": media, member: value } });
    for (media, body, expected) in [
        ("image/png", "hi", block("image", "image/png")),
        ("audio/mpeg", "hi", block("audio", "audio/mpeg")),
        ("text/plain; charset=utf-8", "hi", json!({ "type": "text", "text": "hi" })),
        ("text/csv", "a,b", resource("text", "text/csv", "a,b")),
        ("application/problem+xml", "<p/>", resource("text", "application/problem+xml", "<p/>")),
        ("image/svg+xml", "<svg/>", resource("text", "image/svg+xml", "<svg/>")),
        ("application/zip", "hi", resource("blob", "application/zip", "aGk=")),
        ("", "hi", resource("blob", "application/octet-stream", "aGk=")),
    ] {
        let recorder = Recorder::answering(move || response(200, media, body)).await;
        let description = one("GET /", &returning(if media.is_empty() { "*/*" } else { media }, &json!({})));
        let reply = recorder.serve(&description).call("call", json!({})).await;
        assert_eq!(reply.value()["content"], json!([expected]), "{media}");
    }
    let recorder = Recorder::answering(|| response(204, "", Body::empty())).await;
    let server = recorder.serve(&one("DELETE /", &json!({ "responses": { "204": {} } })));
    server.call("call", json!({})).await.expect_text("204 No Content");
}

#[tokio::test]
async fn failures_are_errors_with_the_status_and_an_excerpt() {
    for (status, body, expected) in [
        (
            400,
            "{\"error\": \"no such order\"}",
            "the API answered 400 Bad Request: {\"error\": \"no such order\"}",
        ),
        (401, "", "the API answered 401 Unauthorized"),
        (503, "busy\u{1b}[2J\nnow", "the API answered 503 Service Unavailable: busy[2J\nnow"),
        (
            302,
            "<a href=http://169.254.169.254>",
            "the API answered 302 Found, and redirects are not followed",
        ),
    ] {
        let recorder = Recorder::answering(move || response(status, "application/json", body)).await;
        let schema = json!({ "type": "object" });
        let server = recorder.serve(&one("GET /", &returning("application/json", &schema)));
        let reply = server.call("call", json!({})).await;
        assert_eq!((reply.is_error(), reply.text().as_str()), (true, expected));
        assert!(!reply.value().to_string().contains("content-type"), "{reply:?}");
    }
    let recorder = Recorder::answering(|| response(500, "text/plain", "x".repeat(100_000))).await;
    let reply = recorder.serve(&one("GET /", &json!({}))).call("call", json!({})).await;
    assert!(reply.is_error() && reply.text().len() < 1100, "{}", reply.text().len());
}

#[tokio::test]
async fn a_get_can_be_a_resource_or_a_template() {
    let recorder = Recorder::answering(|| response(200, "application/json", "{ \"id\": 1 }")).await;
    let description = json!({ "openapi": "3.1.0", "paths": {
        "/orders/{order-id}": { "get": { "operationId": "getOrder", "summary": "One order", "parameters": [
            { "name": "order-id", "in": "path", "required": true, "schema": { "type": "integer" } },
            { "name": "fields", "in": "query", "schema": { "type": "string" } },
        ], "responses": { "200": { "content": { "application/json": {} } } } } },
        "/status": { "get": { "operationId": "getStatus" } },
        "/search": { "get": { "operationId": "search", "parameters": [{ "name": "q", "in": "query", "required": true }] } },
        "/files/{path}": { "get": { "operationId": "getFile", "parameters": [{ "name": "path", "in": "path" }] } },
    } });
    let api = || OpenApi::parse(description.to_string()).expect("a description").server(&recorder.url);
    let orders = api().resource(Route::path("/orders/*")).resource(Route::operation("getFile"));
    let server = serve(orders.resource(Route::get("/status")).scheme("shop").rename("getStatus", "health"));
    let tools = server.list_tools().await;
    assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), ["search"]);
    let templates = server.list_templates().await;
    assert_eq!(
        *templates.iter().find(|template| template["name"] == "get_order").expect("a template"),
        json!({
            "uriTemplate": "shop:///orders/{order_id}{?fields}", "name": "get_order", "title": "One order",
            "description": "One order", "mimeType": "application/json",
        })
    );
    assert_eq!(server.list_resources().await[0]["name"], "health");
    let reply = server.read("shop:///orders/7?fields=a%26b").await;
    assert_eq!(
        reply.value()["contents"],
        json!([{ "uri": "shop:///orders/7?fields=a%26b", "mimeType": "application/json", "text": "{\"id\":1}" }])
    );
    assert_eq!(recorder.last().target, "/orders/7?fields=a%26b");
    server.read("shop:///status").await.expect_ok();
    assert_eq!(recorder.last().target, "/status");
    let before = recorder.count();
    for attack in
        ["shop:///files/%2e%2e", "shop:///files/..%2fadmin", "shop:///files/%252e%252e", "shop:///files/"]
    {
        assert!(server.read(attack).await.error().is_some(), "{attack}");
    }
    assert_eq!(recorder.count(), before);

    let search = api().resource(Route::get("/search"));
    let error = mcp_runtime::server!().add(search).build().expect_err("a required query").to_string();
    assert!(error.contains("a required parameter outside of its path"), "{error}");
    let missing = Recorder::answering(|| response(404, "text/plain", "no")).await;
    let server = serve(api().server(&missing.url).resource(Route::get("/status")));
    server.read("api:///status").await.expect_code(-32602);
}

#[tokio::test]
async fn what_was_done_is_said_when_its_result_is_not_as_described() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let description = one("POST /", &returning("application/json", &schema));
    let empty = Recorder::answering(|| response(204, "", Body::empty())).await;
    let reply = empty.serve(&description).call("call", json!({})).await;
    reply.expect_failure("the API answered 204 No Content without content: it was done, do not repeat it");
    let other = Recorder::answering(|| response(200, "application/json", "{\"n\":\"secret\"}")).await;
    let reply = other.serve(&description).call("call", json!({})).await;
    reply.expect_failure("the call was done, but its result is not as described: `n`: expected");
    assert!(!reply.text().contains("secret") && !reply.text().contains('\n'), "{}", reply.text());
    // nothing says that it is JSON
    let broken = Recorder::answering(|| response(200, "application/json", "{oops")).await;
    let undescribed = broken.serve(&one("POST /", &json!({}))).call("call", json!({})).await;
    assert!(!undescribed.is_error() && undescribed.value().to_string().contains("{oops"), "{undescribed:?}");
}

#[tokio::test]
async fn texts_are_read_in_the_charset_that_they_name() {
    let latin = || Body::from(b"caf\xe9 \x80".to_vec());
    for (status, charset) in [(200, "ISO-8859-1"), (200, "\"latin1\""), (400, "windows-1252")] {
        let media = format!("text/plain; charset={charset}");
        let recorder = Recorder::answering(move || response(status, &media, latin())).await;
        let reply = recorder.serve(&one("GET /", &json!({}))).call("call", json!({})).await;
        assert!(reply.text().ends_with("caf\u{e9} \u{20ac}"), "{reply:?}");
    }
}
