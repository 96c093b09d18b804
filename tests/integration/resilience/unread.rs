//! Replies and replays that a client does not read: a large body is charged to its client until it is written, and the
//! stream that it is sent on stays open for as long.

use tokio::sync::Notify;

use crate::prelude::*;

/// Bytes of a large reply: more than the sockets of both sides buffer, and three are more than a client's share.
const LARGE: usize = 11 << 20;
/// Bytes of a reply that is charged.
const CHARGED: usize = 100 << 10;
/// More bytes than the share of a client.
const MORE_THAN_A_SHARE: usize = 33 << 20;

/// Returns a text of so many bytes
#[mcp_tool]
fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// Reports progress, and returns a text of so many bytes
#[mcp_tool]
async fn streamed(bytes: usize, ctx: &Context) -> String {
    ctx.progress(1).send();
    tokio::time::sleep(Duration::from_millis(50)).await;
    "x".repeat(bytes)
}

/// Messages of [`chatty`], which are nearly all that is kept for one client, and more than its connection takes unread.
const CHATS: usize = 9;

/// Reports progress in long messages, one after the other
#[mcp_tool]
async fn chatty(ctx: &Context) -> &'static str {
    for n in 1..=CHATS {
        ctx.progress(n as u64).message("x".repeat(850 << 10)).send();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    "said"
}

static OPEN: Notify = Notify::const_new();

/// Reports progress, and returns a text of so many bytes when it may
#[mcp_tool]
async fn gated(bytes: usize, ctx: &Context) -> String {
    ctx.progress(1).send();
    OPEN.notified().await;
    "x".repeat(bytes)
}

const ADA: &str = "192.0.2.1";
const BOB: &str = "192.0.2.2";

fn server() -> ServerBuilder {
    let tools = mcp_runtime::server!().tool::<text>().tool::<streamed>().tool::<chatty>().tool::<gated>();
    tools.with_handle(drop).http(|http| {
        http.client_address(|parts, _peer| parts.headers.get("x-client")?.to_str().ok()?.parse().ok())
    })
}

fn call(client: &str, tool: &str, bytes: usize) -> HttpRequest {
    let params = json!({ "name": tool, "arguments": { "bytes": bytes }, "_meta": { "progressToken": 1 } });
    HttpRequest::modern(7, "tools/call", params).header("x-client", client)
}

/// Sends a request, and reads no more than the head of its response.
async fn unread(request: &HttpRequest, at: SocketAddr) -> (HttpResponse, HttpConnection) {
    let mut connection = HttpConnection::over(narrow_socket(at).await);
    connection.send(request).await;
    (connection.head().await, connection)
}

#[tokio::test]
async fn large_replies_that_a_client_does_not_read_are_charged_to_it() {
    let served = HttpServer::start(server()).await;
    let at = served.address;
    let mut open = Vec::new();
    for n in 1..=3 {
        let (head, connection) = unread(&call(ADA, "text", LARGE), at).await;
        assert_eq!(head.status, 200, "{n}: as long as less than her share waits, half of 64 MiB");
        open.push(connection);
    }
    let refused = call(ADA, "text", CHARGED).send(at).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    let error = refused.json();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(7), &json!(-32603)));
    let message = "the reply is too large as long as this client has not read its other replies\nread them, and try again";
    assert_eq!(error["error"]["message"], message);
    // short replies, and other clients, are not affected
    assert_eq!(text_of(&call(ADA, "text", 60_000).send(at).await.json()).len(), 60_000);
    assert_eq!(text_of(&call(BOB, "text", CHARGED).send(at).await.json()).len(), CHARGED);
    drop(open);
    within(async { while call(ADA, "text", CHARGED).send(at).await.status != 200 {} }).await;
}

#[tokio::test]
async fn one_reply_may_exceed_the_share_of_its_client_and_those_on_event_streams_are_charged_as_well() {
    let served = HttpServer::start(server()).await;
    let at = served.address;
    let mut stream = EventStream::open(&call(ADA, "gated", CHARGED), at).await.expect("a stream");
    assert_eq!(stream.message().await["method"], "notifications/progress");
    let (mut whole, mut connection) = unread(&call(ADA, "text", MORE_THAN_A_SHARE), at).await;
    OPEN.notify_one();
    let reply = stream.message().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(7), &json!(-32603)));
    assert!(stream.next().await.is_none());
    let reply = call(BOB, "streamed", CHARGED).send(at).await.messages().pop().expect("a reply");
    assert_eq!(text_of(&reply).len(), CHARGED);
    connection.read_body(&mut whole).await;
    let streamed = call(ADA, "streamed", MORE_THAN_A_SHARE).send(at).await;
    for reply in [whole, streamed] {
        // an error has some bytes only
        let bytes = reply.body.len();
        assert!(reply.status == 200 && bytes > MORE_THAN_A_SHARE, "{}: {bytes} bytes", reply.status);
    }
}

/// A session of that client with an ended stream of large events; the id of the first.
async fn ended_stream(client: &str, at: SocketAddr) -> (String, String) {
    let session = HttpRequest::initialize("2025-11-25").header("x-client", client).send(at).await.session();
    let params = json!({ "name": "chatty", "_meta": { "progressToken": 1 } });
    let call = HttpRequest::legacy(&session, 1, "tools/call", &params).header("x-client", client);
    let sent = call.send(at).await;
    let first = events(sent.text()).into_iter().find_map(|event| event.id).expect("an id");
    (session, first)
}

fn resume(client: &str, session: &str, id: &str) -> HttpRequest {
    HttpRequest::standalone_stream(session).header("Last-Event-ID", id).header("x-client", client)
}

#[tokio::test]
async fn replays_of_an_ended_stream_are_charged_and_keep_their_streams_until_they_are_read() {
    let served = HttpServer::start(server().http(|http| http.max_streams(64))).await;
    let at = served.address;
    let (session, first) = ended_stream(ADA, at).await;
    let whole = resume(ADA, &session, &first).send(at).await;
    assert_eq!(messages(whole.text()).len(), CHATS + 1);
    let mut open = Vec::new();
    let refused = loop {
        let (head, connection) = unread(&resume(ADA, &session, &first), at).await;
        if head.status != 200 {
            break head.status;
        }
        open.push(connection);
        assert!(open.len() < 32, "neither bytes nor streams are left");
    };
    assert_eq!(refused, 503);
    assert!((4..=20).contains(&open.len()), "{}", open.len());
    let (his, first_of_his) = ended_stream(BOB, at).await;
    assert_eq!(resume(BOB, &his, &first_of_his).send(at).await.status, 200);
    drop(open);
    within(async { while resume(ADA, &session, &first).send(at).await.status != 200 {} }).await;
}

#[tokio::test]
async fn a_replay_that_is_not_read_holds_one_of_the_streams_of_its_client() {
    let served = HttpServer::start(server().http(|http| http.max_streams(6))).await;
    let at = served.address;
    let (session, first) = ended_stream(ADA, at).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let (head, connection) = unread(&resume(ADA, &session, &first), at).await;
        assert_eq!(head.status, 200);
        open.push(connection);
    }
    assert_eq!(unread(&resume(ADA, &session, &first), at).await.0.status, 503, "her share of the streams");
    assert!(
        EventStream::open(&HttpRequest::standalone_stream(&session).header("x-client", ADA), at)
            .await
            .is_err()
    );
    drop(open);
    within(async { while resume(ADA, &session, &first).send(at).await.status != 200 {} }).await;
}

#[tokio::test]
async fn events_are_replayed_as_they_were_sent() {
    let served = HttpServer::start(server()).await;
    for bytes in [1, 4 << 10, 5 << 10, 100 << 10] {
        let session = HttpRequest::initialize("2025-11-25").send(served.address).await.session();
        let params =
            json!({ "name": "streamed", "arguments": { "bytes": bytes }, "_meta": { "progressToken": 1 } });
        let sent = HttpRequest::legacy(&session, 1, "tools/call", &params).send(served.address).await;
        let sent = events(sent.text());
        let first = sent[0].id.clone().expect("the id of the priming event");
        let again = resume(ADA, &session, &first).send(served.address).await;
        let again = events(again.text());
        assert_eq!(again[0].id.as_ref(), Some(&first), "it begins with the event that its client has");
        assert_eq!(again[1..], sent[1..], "{bytes}");
    }
}

#[tokio::test]
async fn a_client_of_http_sse_that_leaves_too_much_unread_loses_its_stream() {
    let builder = server().http(|http| http.legacy_sse("/sse"));
    let served = HttpServer::start(builder).await;
    let at = served.address;
    let mut hers = HttpSse::open(at, "/sse", &[("x-client", ADA)]).await;
    hers.initialize(&json!({})).await;
    let call = |id: u32| {
        request(id, "tools/call", json!({ "name": "text", "arguments": { "bytes": 3 << 20 } })).to_string()
    };
    let mut last = 202;
    for id in 0..40 {
        last = hers.post(call(id)).await;
        if last != 202 {
            break;
        }
    }
    assert_eq!(last, 404, "the stream has ended");
    let mut his = HttpSse::open(at, "/sse", &[("x-client", BOB)]).await;
    his.initialize(&json!({})).await;
    for id in 0..3 {
        assert_eq!(his.post(call(id)).await, 202);
        let reply: Value = his.message().await;
        assert_eq!(text_of(&reply).len(), 3 << 20);
    }
}
