//! Batches of 2025-03-26: their responses, notifications and pings do not wait for capacity, and their requests do.

use crate::{
    client_requests::before_initialized::{initialized, no_roots, places},
    prelude::*,
};

const REVISION: &str = "2025-03-26";

/// Echoes its argument
#[mcp_tool]
fn echo(message: String) -> String {
    message
}

/// A server with the tools above and `hang`, which counts its calls and never returns.
fn builder(hung: &Arc<AtomicUsize>) -> ServerBuilder {
    let hung = hung.clone();
    let hang = ToolDef::builder("hang").handler(move |_: ToolCall| {
        hung.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<&'static str>()
    });
    Server::builder("batches", "1").tool::<places>().tool::<echo>().add(hang).detailed_errors()
}

/// A connection on which one request runs at once.
async fn connect() -> (LineConnection, Arc<AtomicUsize>) {
    let hung = Arc::default();
    let server = builder(&hung).limits(|limits| limits.max_in_flight(1)).build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    client.reply_to(&initialize(0, REVISION, &json!({ "roots": {} }))).await;
    (client, hung)
}

fn call(id: i64, tool: &str) -> Value {
    legacy_call(id, tool, &json!({}))
}

fn echoed(id: i64) -> Value {
    legacy_call(id, "echo", &json!({ "message": format!("m{id}") }))
}

/// Two messages of which one is an array: that one, and the other.
fn array_and_other(messages: [Value; 2]) -> (Value, Value) {
    let [first, second] = messages;
    if first.is_array() { (first, second) } else { (second, first) }
}

#[tokio::test]
async fn a_response_in_a_batch_is_delivered_before_its_requests_have_their_turn() {
    let (mut client, _) = connect().await;
    client.send(&initialized()).await;
    for others in [vec![], vec![echoed(2)], vec![ping(2), echoed(3)]] {
        client.send(&call(1, "places")).await;
        let asked = client.message().await;
        let expected = others.len();
        let mut batch = others;
        batch.push(no_roots(&asked));
        client.send(&json!(batch)).await;
        client.send(&notification("notifications/other", json!({}))).await;
        assert_eq!(text_of(&client.message().await), "0 roots", "{batch:?}");
        if expected > 0 {
            let replies = client.message().await;
            assert_eq!(replies.as_array().map(Vec::len), Some(expected), "{replies}");
        }
    }
}

#[tokio::test]
async fn what_a_queued_batch_says_of_the_handshake_and_of_other_requests_is_handled_at_once() {
    let (mut client, hung) = connect().await;
    client.send(&call(1, "hang")).await;
    // waits for the first call, which it cancels
    client.send(&json!([cancelled(1), call(2, "places"), initialized()])).await;
    let asked = client.message().await;
    client.send(&no_roots(&asked)).await;
    let replies = client.message().await;
    assert_eq!((text_of(&replies[0]), &replies[0]["id"]), ("0 roots", &json!(2)), "{replies}");
    assert_eq!(hung.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_member_that_is_cancelled_while_its_batch_is_queued_does_not_run() {
    let (mut client, hung) = connect().await;
    client.send(&call(1, "hang")).await;
    client.send(&json!([call(2, "hang"), echoed(3), call(4, "hang"), cancelled(4)])).await;
    // all of its members are cancelled
    client.send(&json!([call(5, "hang"), call(6, "hang")])).await;
    for id in [2, 5, 6, 1] {
        client.send(&cancelled(id)).await;
    }
    let replies = client.message().await;
    assert_eq!(replies.as_array().map(Vec::len), Some(1), "{replies}");
    assert_eq!((text_of(&replies[0]), &replies[0]["id"]), ("m3", &json!(3)));
    client.reply_to(&ping("end")).await;
    assert_eq!(hung.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_batch_that_is_refused_as_busy_answers_its_pings() {
    let hung = Arc::default();
    let builder = builder(&hung).limits(|limits| limits.max_in_flight(1).max_queued(0));
    let mut client = LineConnection::serve(&builder.build().expect("a server"), 1 << 16);
    client.reply_to(&initialize(0, REVISION, &json!({ "roots": {} }))).await;
    client.send(&initialized()).await;
    client.send(&call(1, "places")).await;
    let asked = client.message().await;
    client.send(&json!([no_roots(&asked), echoed(2), ping(3)])).await;
    let (replies, reply) = array_and_other([client.message().await, client.message().await]);
    assert_eq!((&replies[0]["id"], error_code(&replies[0])), (&json!(2), -32603), "{replies}");
    assert_eq!((&replies[1]["id"], &replies[1]["result"]), (&json!(3), &json!({})), "{replies}");
    assert_eq!(text_of(&reply), "0 roots");
}

#[tokio::test]
async fn responses_and_pings_in_batches_reach_a_full_endpoint_over_http_sse() {
    let hung = Arc::default();
    let builder = builder(&hung).http(|http| http.legacy_sse("/sse").max_requests(1));
    let served = HttpServer::start(builder).await;
    let mut client = HttpSse::open(served.address, "/sse", &[]).await;
    client.initialize_as(REVISION, &json!({ "roots": {} })).await;
    for others in [vec![ping(2)], vec![ping(2), echoed(3)]] {
        client.send(&call(1, "places")).await;
        let asked = client.message().await;
        client.send(&ping("alone")).await;
        assert_eq!(client.message().await["result"], json!({}), "the endpoint is full");
        let expected = others.len();
        let mut batch = others;
        batch.push(no_roots(&asked));
        client.send(&json!(batch)).await;
        let (replies, reply) = array_and_other([client.message().await, client.message().await]);
        assert_eq!(replies.as_array().map(Vec::len), Some(expected), "{replies}");
        assert_eq!(replies[0]["result"], json!({}), "{replies}");
        if expected == 2 {
            assert_eq!((&replies[1]["id"], error_code(&replies[1])), (&json!(3), -32603), "{replies}");
        }
        assert_eq!(text_of(&reply), "0 roots");
    }
}

#[tokio::test]
async fn responses_and_pings_in_batches_reach_a_full_endpoint_over_http() {
    let hung = Arc::default();
    let served = HttpServer::start(builder(&hung).http(|http| http.max_requests(1))).await;
    let at = served.address;
    let capabilities = json!({ "roots": {} });
    let session = HttpRequest::initialize_with(REVISION, &capabilities).send(at).await.session();
    let post = async |body: Value| HttpRequest::post(body.to_string()).session(&session).send(at).await;
    assert_eq!(post(json!([initialized()])).await.status, 202);
    for with_call in [false, true] {
        let name = json!({ "name": "places" });
        let call = HttpRequest::legacy(&session, 1, "tools/call", &name);
        let mut events = EventStream::open(&call, at).await.expect("a stream");
        let asked = events.message().await;
        let mut batch = vec![ping(2), no_roots(&asked)];
        if with_call {
            batch.push(echoed(3));
        }
        let reply = post(json!(batch)).await;
        if with_call {
            assert_eq!(reply.status, 503, "{}", reply.text());
        } else {
            assert_eq!(reply.json(), json!([{ "jsonrpc": "2.0", "id": 2, "result": {} }]));
        }
        assert_eq!(text_of(&events.message().await), "0 roots");
        // the call has released its permit by then
        assert_eq!(events.next().await, None);
    }
}

#[tokio::test]
async fn a_client_that_sends_only_batches_is_notified_of_changes() {
    let server = Server::builder("batches", "1").tool::<echo>().build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    let handle = server.handle();
    client.initialize(REVISION).await;
    client.send(&json!([initialized(), ping(1)])).await;
    assert_eq!(client.message().await[0]["id"], 1);
    handle.tools_changed();
    assert_eq!(client.message().await["method"], "notifications/tools/list_changed");
}
