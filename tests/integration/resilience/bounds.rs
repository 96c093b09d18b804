//! Bounds on what clients can make a server keep: long ids and tokens, unfinished bodies, calls over HTTP+SSE.

use super::{here, wait};
use crate::prelude::*;

fn with_token(mut call: Value, token: &Value) -> Value {
    call["params"]["_meta"]["progressToken"] = token.clone();
    call
}

#[tokio::test]
async fn a_long_progress_token_is_refused() {
    let server = mcp_runtime::server!().tool::<here>().build().expect("a server");
    let (long, short) = (json!("t".repeat(1100)), json!("t".repeat(1000)));
    let mut client = LineConnection::serve(&server, 1 << 16);
    let reply = client.reply_to(&with_token(call(1, "here", &json!({})), &long)).await;
    assert_eq!(error_code(&reply), -32602);
    let reply = client.reply_to(&with_token(call(2, "here", &json!({})), &short)).await;
    assert_eq!(text_of(&reply), "here");
    client.shake_hands("2025-06-18").await;
    let reply = client.reply_to(&with_token(legacy_call(3, "here", &json!({})), &long)).await;
    assert_eq!(error_code(&reply), -32602);

    let served = HttpServer::of(&server).await;
    let over_http = |token: &Value| {
        let params = json!({ "name": "here", "_meta": { "progressToken": token } });
        HttpRequest::modern(1, "tools/call", params)
    };
    let refused = over_http(&long).send(served.address).await;
    assert_eq!(refused.code(), -32602);
    assert!(refused.body.len() < 1000, "the token is not repeated: {}", refused.text());
    assert_eq!(text_of(&over_http(&short).send(served.address).await.json()), "here");
}

#[tokio::test]
async fn a_long_id_is_refused_and_not_echoed() {
    let server = mcp_runtime::server!().tool::<here>().build().expect("a server");
    let (long, short) = ("i".repeat(1100), "i".repeat(1000));
    let mut client = LineConnection::serve(&server, 1 << 16);
    client.send(&call(long.clone(), "here", &json!({}))).await;
    let reply = client.message().await;
    assert_eq!((error_code(&reply), reply.get("id")), (-32600, None));
    assert!(!reply.to_string().contains("iiii"), "{reply}");
    let reply = client.reply_to(&call(short.clone(), "here", &json!({}))).await;
    assert_eq!(text_of(&reply), "here");

    // revisions whose errors all have an id get that id, since their client would wait for ever
    let mut client = LineConnection::serve(&server, 1 << 16);
    client.shake_hands("2025-03-26").await;
    client.send(&legacy_call(long.clone(), "here", &json!({}))).await;
    let reply = client.message().await;
    assert_eq!((error_code(&reply), &reply["id"]), (-32600, &json!(long)));
    client
        .send(&json!([legacy_call(1, "here", &json!({})), legacy_call(long.clone(), "here", &json!({}))]))
        .await;
    let replies = client.message().await;
    let ids: Vec<_> = replies.as_array().expect("a batch").iter().map(|reply| reply["id"].clone()).collect();
    assert!(ids.len() == 2 && ids.contains(&json!(1)) && ids.contains(&json!(long)), "{ids:?}");
    // without an id that can be read, these revisions have no error at all
    client.send(&json!({ "jsonrpc": "2.0", "id": { "a": 1 }, "method": "ping" })).await;
    let reply = client.reply_to(&legacy_call(short.clone(), "here", &json!({}))).await;
    assert_eq!(reply["id"], short);

    let served = HttpServer::of(&server).await;
    let over_http = |id: &str| HttpRequest::modern(id, "tools/call", json!({ "name": "here" }));
    let refused = over_http(&long).send(served.address).await;
    assert_eq!((refused.status, refused.code(), refused.json().get("id")), (400, -32600, None));
    assert_eq!(text_of(&over_http(&short).send(served.address).await.json()), "here");
}

#[tokio::test]
async fn calls_over_http_sse_are_bounded_like_requests() {
    let gate = Gate::default();
    let builder = mcp_runtime::server!()
        .tool::<here>()
        .tool::<wait>()
        // of which one client may use half
        .http(|http| http.legacy_sse("/sse").max_requests(8));
    let served = HttpServer::start(builder.state(gate.clone())).await;
    let mut one = HttpSse::open(served.address, "/sse", &[]).await;
    let mut two = HttpSse::open(served.address, "/sse", &[]).await;
    for client in [&mut one, &mut two] {
        client.initialize(&json!({})).await;
    }
    // one after the other, so that it is known which calls get a permit
    for id in 1..=4 {
        let client = if id <= 2 { &one } else { &two };
        client.send(&legacy_call(id, "wait", &json!({}))).await;
        gate.more_entered(1).await;
    }
    for (client, id) in [(&mut one, 5), (&mut two, 6)] {
        client.send(&legacy_call(id, "wait", &json!({}))).await;
        let busy = within(client.message()).await;
        assert_eq!((&busy["id"], error_code(&busy)), (&json!(id), -32603), "{busy}");
        assert!(busy["error"]["message"].as_str().expect("a text").contains("busy"), "{busy}");
    }
    assert_eq!(gate.entered(), 4);
    gate.open(4);
    for _ in 0..2 {
        assert_eq!(text_of(&within(one.message()).await), "let go");
        assert_eq!(text_of(&within(two.message()).await), "let go");
    }
    one.send(&legacy_call(7, "here", &json!({}))).await;
    assert_eq!(text_of(&within(one.message()).await), "here");
}

#[tokio::test]
async fn batches_over_http_sse_are_bounded_like_requests() {
    let gate = Gate::default();
    let builder = mcp_runtime::server!()
        .tool::<wait>()
        // of which one client may use half
        .http(|http| http.legacy_sse("/sse").max_requests(8));
    let served = HttpServer::start(builder.state(gate.clone())).await;
    let mut client = HttpSse::open(served.address, "/sse", &[]).await;
    client.initialize_as("2025-03-26", &json!({})).await;
    let wait = |id: i64| legacy_call(id, "wait", &json!({}));
    client.send(&json!([wait(1), wait(2), wait(3)])).await;
    gate.until_entered(3).await;
    client.send(&json!([wait(4), wait(5)])).await;
    let busy = within(client.message()).await;
    for (n, id) in [(0, 4), (1, 5)] {
        assert_eq!((&busy[n]["id"], error_code(&busy[n])), (&json!(id), -32603), "{busy}");
    }
    assert_eq!(gate.entered(), 3);
    gate.open(3);
    assert_eq!(within(client.message()).await.as_array().map(Vec::len), Some(3));
    gate.open(2);
    client.send(&json!([wait(6), wait(7)])).await;
    assert_eq!(within(client.message()).await.as_array().map(Vec::len), Some(2));
}

/// Elicits
#[mcp_tool]
async fn ask(ctx: &Context) -> Result<String, ToolError> {
    let Name { name } = ctx.elicit("name", "What is your name?").await?;
    Ok(name)
}

fn answer(asked: &Value) -> Value {
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })
}

/// Otherwise, calls that wait for a client would hold their permits until they time out.
#[tokio::test]
async fn responses_and_cancellations_reach_a_full_server() {
    let served =
        HttpServer::start(mcp_runtime::server!().tool::<ask>().http(|http| http.max_requests(1))).await;
    let at = served.address;
    let capabilities = json!({ "elicitation": {} });
    let session = HttpRequest::initialize_with("2025-11-25", &capabilities).send(at).await.session();
    let initialized = HttpRequest::notification("notifications/initialized", &json!({}));
    assert_eq!(initialized.session(&session).send(at).await.status, 202);
    for id in [1, 2] {
        let call = HttpRequest::legacy(&session, id, "tools/call", &json!({ "name": "ask" }));
        let mut events = EventStream::open(&call, at).await.expect("a stream");
        let asked = events.message().await;
        let answers = id == 1;
        let message = if answers { answer(&asked) } else { cancelled(id) };
        let sent = HttpRequest::post(message.to_string()).session(&session).send(at).await;
        assert_eq!(sent.status, 202, "{message}");
        let mut replies = Vec::new();
        while let Some(message) = within(events.next()).await {
            if message["id"] == id {
                replies.push(text_of(&message).to_owned());
            }
        }
        assert_eq!(replies, if answers { vec!["Ada"] } else { vec![] });
    }
}
