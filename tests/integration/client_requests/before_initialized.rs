//! A client of a legacy revision is not sent requests before it has sent `notifications/initialized`.

use crate::prelude::*;

/// Asks for the client's roots
#[mcp_tool]
pub(crate) async fn places(ctx: &Context) -> Result<String, ToolError> {
    Ok(format!("{} roots", ctx.roots("places").await?.len()))
}

fn server() -> Server {
    mcp_runtime::server!()
        .tool::<places>()
        .detailed_errors()
        .http(|http| http.legacy_sse("/sse"))
        .build()
        .expect("a server")
}

#[track_caller]
fn assert_refused(reply: &Value) {
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    assert!(text_of(reply).contains("it has not sent `notifications/initialized` yet"), "{reply}");
}

pub(crate) fn initialized() -> Value {
    notification("notifications/initialized", json!({}))
}

pub(crate) fn no_roots(request: &Value) -> Value {
    assert_eq!(request["method"], "roots/list", "{request}");
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "roots": [] } })
}

#[tokio::test]
async fn over_byte_streams() {
    let mut client = LineConnection::serve(&server(), 1 << 16);
    client.reply_to(&initialize(0, "2025-11-25", &json!({ "roots": {} }))).await;
    assert_refused(&client.reply_to(&legacy_call(1, "places", &json!({}))).await);
    client.send(&initialized()).await;
    client.send(&legacy_call(2, "places", &json!({}))).await;
    let asked = client.message().await;
    client.send(&no_roots(&asked)).await;
    assert_eq!(text_of(&client.message().await), "0 roots");
}

#[tokio::test]
async fn over_http_with_random_and_with_shared_keys() {
    let key: [u8; 32] = std::array::from_fn(|n| u8::try_from(n).expect("a small number"));
    let shared =
        mcp_runtime::server!().tool::<places>().detailed_errors().stores(|stores| stores.keys([key]));
    for server in [server(), shared.build().expect("a server")] {
        let served = HttpServer::of(&server).await;
        let at = served.address;
        let capabilities = json!({ "roots": {} });
        let session = HttpRequest::initialize_with("2025-11-25", &capabilities).send(at).await.session();
        let call = |id: u64| HttpRequest::legacy(&session, id, "tools/call", &json!({ "name": "places" }));
        assert_refused(&call(1).send(at).await.json());
        let sent = HttpRequest::post(initialized().to_string()).session(&session).send(at).await;
        assert_eq!(sent.status, 202);
        let mut events = EventStream::open(&call(2), at).await.expect("a stream");
        let answer = no_roots(&events.message().await);
        assert_eq!(HttpRequest::post(answer.to_string()).session(&session).send(at).await.status, 202);
        assert_eq!(text_of(&events.message().await), "0 roots");
    }
}

#[tokio::test]
async fn over_http_sse() {
    let served = HttpServer::of(&server()).await;
    let mut client = HttpSse::open(served.address, "/sse", &[]).await;
    client.send(&initialize(0, "2024-11-05", &json!({ "roots": {} }))).await;
    client.message().await;
    client.send(&legacy_call(1, "places", &json!({}))).await;
    assert_refused(&client.message().await);
    client.send(&initialized()).await;
    client.send(&legacy_call(2, "places", &json!({}))).await;
    let asked = client.message().await;
    client.send(&no_roots(&asked)).await;
    assert_eq!(text_of(&client.message().await), "0 roots");
}
