//! Invokes the function with events as Lambda sends them.

mod runtime_api;

use lambda_http::{Adapter, Context, lambda_runtime::LambdaEvent, request::LambdaRequest};
use serde_json::{Value, json};
use tower_service::Service as _;

const HOST: &str = "abc123.lambda-url.eu-central-1.on.aws";
/// The key that processes of the function share.
const KEY: &str = "00112233445566778899aabbccddeeff102132435465768798a9bacbdcedfe0f";

/// The event of a function URL, which is that of an HTTP API in version 2.0.
fn event(host: &str, method: &str, name: Option<&str>, body: &str) -> Value {
    let mut headers = json!({
        "host": host,
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
    });
    if let Some(name) = name {
        headers["mcp-name"] = name.into();
    }
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "abc123",
            "domainName": host,
            "domainPrefix": "abc123",
            "http": {
                "method": "POST",
                "path": "/mcp",
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "test",
            },
            "requestId": "1",
            "routeKey": "$default",
            "stage": "$default",
            "time": "24/Nov/2026:10:00:00 +0000",
            "timeEpoch": 1_795_514_400_000_u64,
        },
        "body": body,
        "isBase64Encoded": false,
    })
}

fn body(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// The status of a response, and its body.
async fn invoke(event: Value) -> (u64, Value) {
    let router = mcp_example_lambda::router(HOST).expect("a server");
    let mut function = Adapter::from(router);
    let payload: LambdaRequest = serde_json::from_value(event).expect("an event of Lambda");
    let response = function.call(LambdaEvent::new(payload, Context::default())).await.expect("a response");
    read(&serde_json::to_value(response).expect("JSON"))
}

fn read(response: &Value) -> (u64, Value) {
    let text = response["body"].as_str().unwrap_or_default();
    let status = response["statusCode"].as_u64().expect("a status");
    (status, serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}

#[tokio::test]
async fn a_call_is_one_invocation_without_a_handshake() {
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    let (status, reply) = invoke(event(HOST, "tools/call", Some("add"), &body("tools/call", params))).await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["result"]["content"][0]["text"], "3", "{reply}");
    let (status, reply) =
        invoke(event(HOST, "server/discover", None, &body("server/discover", json!({})))).await;
    assert_eq!(status, 200, "{reply}");
    assert!(reply["result"]["capabilities"]["tools"].is_object(), "{reply}");
}

#[tokio::test]
async fn a_body_in_base64_is_the_same_request() {
    let mut event = event(HOST, "tools/list", None, "");
    // {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
    event["body"] = "eyJqc29ucnBjIjoiMi4wIiwiaWQiOjEsIm1ldGhvZCI6InRvb2xzL2xpc3QiLCJwYXJhbXMiOnsiX21ldGEiOnsiaW8ubW9kZWxjb250ZXh0cHJvdG9jb2wvcHJvdG9jb2xWZXJzaW9uIjoiMjAyNi0wNy0yOCIsImlvLm1vZGVsY29udGV4dHByb3RvY29sL2NsaWVudENhcGFiaWxpdGllcyI6e319fX0=".into();
    event["isBase64Encoded"] = true.into();
    let (status, reply) = invoke(event).await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["result"]["tools"][0]["name"], "add", "{reply}");
}

#[tokio::test]
async fn a_request_for_another_host_is_refused() {
    let (status, reply) =
        invoke(event("evil.example", "tools/list", None, &body("tools/list", json!({})))).await;
    assert_eq!(status, 403, "{reply}");
}

#[tokio::test]
async fn a_request_of_a_page_from_elsewhere_is_refused() {
    let list = event(HOST, "tools/list", None, &body("tools/list", json!({})));
    assert_eq!(invoke(list.clone()).await.0, 200);
    for origin in ["https://evil.example", "null", "http://localhost:3000"] {
        let mut list = list.clone();
        list["headers"]["origin"] = origin.into();
        let (status, reply) = invoke(list).await;
        assert_eq!(status, 403, "{origin}: {reply}");
    }
}

#[test]
fn the_answer_to_a_question_reaches_another_process_which_goes_on_by_the_sealed_state() {
    let (own, other) = (KEY.to_owned(), KEY.chars().rev().collect::<String>());
    let process = |key: &str, more: Value| {
        let mut params = json!({ "name": "book", "arguments": { "people": 2 } });
        params.as_object_mut().zip(more.as_object()).into_iter().for_each(|(params, more)| {
            params.extend(more.clone());
        });
        let event = event(HOST, "tools/call", Some("book"), &body("tools/call", params));
        let variables = [("MCP_HOST", HOST), ("MCP_SERVER_KEYS", key)];
        let (id, response) =
            runtime_api::invoke(env!("CARGO_BIN_EXE_mcp-example-lambda"), &variables, &event);
        (id, read(&response))
    };
    let (first, (status, question)) = process(&own, json!({}));
    assert_eq!((status, &question["result"]["resultType"]), (200, &json!("input_required")), "{question}");
    let asked = &question["result"]["inputRequests"]["agreement"]["params"]["message"];
    assert_eq!(asked, "A table for 2?", "{question}");
    let agreement = json!({ "agreement": { "action": "accept", "content": { "agrees": true } } });
    let answer = json!({ "requestState": question["result"]["requestState"], "inputResponses": agreement });
    let (second, (status, reply)) = process(&own, answer.clone());
    assert_ne!(first, second);
    assert_eq!(status, 200, "{reply}");
    assert_eq!(
        reply["result"]["content"][0]["text"],
        format!("booked for 2: asked by process {first}, answered by process {second}"),
        "{reply}"
    );
    // a process with another key cannot read it
    let (_, (status, refused)) = process(&other, answer);
    assert_eq!((status, &refused["error"]["code"]), (200, &json!(-32602)), "{refused}");
}
