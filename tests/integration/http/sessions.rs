//! Sessions over sockets: event streams that are opened, broken, resumed and closed.

use mcp_runtime::store::Memory;

use super::{fixture::builder, legacy::session};
use crate::prelude::*;

/// Makes its client poll
#[mcp_tool]
async fn later(gate: &Gate, ctx: &Context) -> String {
    let closed = ctx.close_stream(Duration::from_millis(100));
    gate.pass().await;
    format!("closed: {closed}")
}

/// Events as text, without the chunked encoding.
async fn text(wire: &mut HttpConnection) -> Option<String> {
    wire.chunk().await.map(|chunk| String::from_utf8(chunk).expect("UTF-8"))
}

fn get(session: &str) -> HttpRequest {
    HttpRequest::standalone_stream(session)
}

fn id_in(event: &str) -> &str {
    event.lines().find_map(|line| line.strip_prefix("id: ")).unwrap_or_else(|| panic!("no id in {event}"))
}

#[tokio::test]
async fn a_client_polls_for_the_result() {
    let gate = Gate::default();
    let server = HttpServer::start(builder(&gate).tool::<later>()).await;
    let id = session(&server, "2025-11-25").await;
    let call = HttpRequest::legacy(&id, 7, "tools/call", &json!({"name": "later"}));
    let reply = call.send(server.address).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let at = id_in(reply.text()).to_owned();
    assert_eq!(reply.text(), format!("id: {at}\nretry: 100\ndata: \n\n"));
    gate.more_entered(1).await;
    gate.open(1);
    let resumed = get(&id).header("Last-Event-ID", &at).send(server.address).await;
    let events = resumed.messages();
    assert_eq!((events.len(), &events[0]["id"], text_of(&events[0])), (1, &json!(7), "closed: true"));
    // an older client cannot resume, so its stream stays open
    let id = session(&server, "2025-06-18").await;
    gate.open(1);
    let reply =
        HttpRequest::legacy(&id, 7, "tools/call", &json!({"name": "later"})).send(server.address).await;
    assert_eq!(text_of(&reply.json()), "closed: false");
}

#[tokio::test]
async fn the_response_is_kept_for_a_client_whose_connection_broke() {
    let gate = Gate::default();
    let server = HttpServer::start(builder(&gate)).await;
    let id = session(&server, "2025-11-25").await;
    let mut wire = HttpConnection::open(server.address).await;
    let params = json!({"name": "hold", "_meta": {"progressToken": 1}});
    wire.send(&HttpRequest::legacy(&id, 1, "tools/call", &params)).await;
    wire.head().await;
    let first = text(&mut wire).await.expect("an event");
    drop(wire);
    gate.more_entered(1).await;
    gate.open(1);
    gate.until_ended(0, 1).await;
    let resumed = get(&id).header("Last-Event-ID", id_in(&first)).send(server.address).await;
    let last: Vec<Value> = resumed.messages();
    assert_eq!(text_of(last.last().expect("a result")), "let go");
}

#[tokio::test]
async fn a_repeated_last_event_id_is_refused() {
    let server = HttpServer::start(builder(&Gate::default())).await;
    let id = session(&server, "2025-11-25").await;
    let repeated = get(&id).header("Last-Event-ID", "1").header("Last-Event-ID", "1");
    assert_eq!(repeated.send(server.address).await.status, 400);
}

#[tokio::test]
async fn standalone_streams_send_changes_and_end_with_session_and_server() {
    let built: Server = builder(&Gate::default()).build().expect("a server");
    let handle = built.handle();
    let mut server = HttpServer::of(&built).await;
    let id = session(&server, "2025-11-25").await;
    let other = session(&server, "2025-11-25").await;
    let (mut one, mut two) =
        (HttpConnection::open(server.address).await, HttpConnection::open(server.address).await);
    one.send(&get(&id)).await;
    two.send(&get(&other)).await;
    for wire in [&mut one, &mut two] {
        let head = wire.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert!(messages(&text(wire).await.expect("priming")).is_empty());
    }
    handle.tools_changed();
    for wire in [&mut one, &mut two] {
        let told = messages(&text(wire).await.expect("an event"));
        assert_eq!(told[0]["method"], "notifications/tools/list_changed");
    }
    let end = HttpRequest::new("DELETE").session(&id);
    assert_eq!(end.send(server.address).await.status, 204);
    assert!(one.chunk().await.is_none());
    assert_eq!(get(&id).send(server.address).await.status, 404);
    server.stop();
    assert!(two.chunk().await.is_none());
    server.stopped().await;
}

#[tokio::test]
async fn every_request_with_the_id_of_an_ended_session_is_404() {
    let gate = Gate::default();
    let key: [u8; 32] = std::array::from_fn(|n| u8::try_from(n).expect("a small number"));
    let shared = builder(&gate).stores(|stores| stores.keys([key])).shared(Memory::default());
    for builder in [builder(&gate), shared] {
        let server = HttpServer::start(builder).await;
        for version in ["2025-03-26", "2025-11-25"] {
            let id = session(&server, version).await;
            let initialize = HttpRequest::initialize(version).session(&id);
            let renewed = initialize.send(server.address).await;
            assert_eq!(renewed.status, 200, "the session is open");
            assert_ne!(renewed.session(), id);
            let params = HttpRequest::post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#);
            let params = params.session(&id);
            let refused = params.send(server.address).await;
            assert_eq!((refused.status, refused.code()), (200, -32602));
            let text = HttpRequest::post("{").session(&id);
            let refused = text.send(server.address).await;
            assert_eq!((refused.status, refused.code()), (400, -32700));

            let delete = HttpRequest::new("DELETE").session(&id);
            assert_eq!(delete.send(server.address).await.status, 204);
            let list = HttpRequest::legacy(&id, 1, "tools/list", &json!({}));
            for request in [initialize, params, text, list] {
                assert_eq!(request.send(server.address).await.status, 404, "{version}");
            }
        }
        let unknown = HttpRequest::initialize("2025-11-25").session("unknown").send(server.address).await;
        assert_eq!(unknown.status, 404);
        assert_eq!(unknown.json()["id"], 0);
    }
}
