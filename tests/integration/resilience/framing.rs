//! One message is one line, and one event is one line of data, whatever JSON a function returns.

use std::borrow::Cow;

use mcp_runtime::context::LogLevel;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::prelude::*;

/// JSON with every kind of line terminator between its tokens, containing what looks like a message.
const LINES: &str = "{\n\"a\":\r\n[1,\r2],\n\"b\":\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n}";

fn raw() -> Box<RawValue> {
    RawValue::from_string(LINES.to_owned()).expect("JSON")
}

/// JSON that is sent verbatim.
#[derive(Serialize)]
#[serde(transparent)]
struct Verbatim(Box<RawValue>);

impl JsonSchema for Verbatim {
    fn schema_name() -> Cow<'static, str> {
        "Verbatim".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// Logs and returns raw JSON
#[mcp_tool]
fn relay(ctx: &Context) -> Json<Verbatim> {
    ctx.log(LogLevel::Error, raw()).send();
    Json(Verbatim(raw()))
}

fn server() -> Server {
    mcp_runtime::server!()
        .tool::<relay>()
        .telemetry(|telemetry| telemetry.client_logging())
        .build()
        .expect("a server")
}

fn value() -> Value {
    serde_json::from_str(LINES).expect("JSON")
}

fn asks_for_logs(mut call: Value) -> Value {
    call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    call
}

#[tokio::test]
async fn raw_json_stays_on_one_line() {
    for legacy in [false, true] {
        let mut client = LineConnection::serve(&server(), 1 << 16);
        if legacy {
            client.shake_hands("2025-11-25").await;
            client.send(&legacy_call("relay", "relay", &json!({}))).await;
        } else {
            client.send(&asks_for_logs(call("relay", "relay", &json!({})))).await;
        }
        let logged = client.message().await;
        assert_eq!(logged["method"], "notifications/message", "{logged}");
        assert_eq!(logged["params"]["data"], value());
        let reply = client.message().await;
        assert_eq!((&reply["id"], &reply["result"]["structuredContent"]), (&json!("relay"), &value()));
        // and no other message was sent
        client.reply_to(&ping("next")).await;
    }
}

#[tokio::test]
async fn raw_json_stays_on_one_data_line_of_an_event() {
    let served = HttpServer::of(&server()).await;
    let session = HttpRequest::initialize("2025-11-25").send(served.address).await.session();
    let legacy = HttpRequest::legacy(&session, 7, "tools/call", &json!({ "name": "relay" }));
    let modern = HttpRequest::modern(7, "tools/call", json!({ "name": "relay" })).map_body(|body| {
        *body = asks_for_logs(body.take());
    });
    for request in [modern, legacy] {
        let whole = request.send(served.address).await;
        let mut messages = Vec::new();
        for event in events(whole.text()) {
            if let Some(message) = event.message() {
                let data = event.data.expect("data");
                assert!(!data.contains(['\n', '\r']), "{data:?}");
                messages.push(message);
            }
        }
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!(messages[0]["params"]["data"], value());
        assert_eq!((&messages[1]["id"], &messages[1]["result"]["structuredContent"]), (&json!(7), &value()));
    }
}
