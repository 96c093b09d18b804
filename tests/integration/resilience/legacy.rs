//! Guarantees for legacy clients over HTTP.

use crate::prelude::*;

/// Returns at once
#[mcp_tool]
fn here() -> &'static str {
    "here"
}

/// Reports progress once, and never returns
#[mcp_tool]
async fn report_and_hang(ctx: &Context, gate: &Gate) -> &'static str {
    let _inside = gate.enter();
    ctx.progress(1.0).send();
    std::future::pending().await
}

#[tokio::test]
async fn an_unknown_revision_header_is_refused_for_every_method() {
    let served = HttpServer::start(mcp_runtime::server!().tool::<here>()).await;
    for revision in ["2025-06-18", "2025-11-25"] {
        let session = HttpRequest::initialize(revision).send(served.address).await.session();
        let notification = HttpRequest::notification("notifications/initialized", &json!({}));
        let request = HttpRequest::legacy(&session, 1, "tools/call", &json!({ "name": "here" }));
        for refused in [
            notification.session(&session),
            request,
            HttpRequest::standalone_stream(&session),
            HttpRequest::new("DELETE").session(&session),
        ] {
            let refused = refused.header("MCP-Protocol-Version", "1900-01-01");
            assert_eq!(within(refused.send(served.address)).await.status, 400, "{refused:?}");
        }
        // the session continues
        let request = HttpRequest::legacy(&session, 2, "tools/call", &json!({ "name": "here" }));
        assert_eq!(request.send(served.address).await.status, 200);
    }
}

#[tokio::test]
async fn the_stream_of_a_cancelled_call_cannot_be_resumed() {
    let gate = Gate::default();
    let builder = mcp_runtime::server!().tool::<report_and_hang>().state(gate.clone());
    let served = HttpServer::start(builder).await;
    let session = HttpRequest::initialize("2025-11-25").send(served.address).await.session();
    let params = json!({ "name": "report_and_hang", "_meta": { "progressToken": 1 } });
    let call = HttpRequest::legacy(&session, 1, "tools/call", &params);
    let mut events = EventStream::open(&call, served.address).await.expect("a stream");
    let mut last = None;
    loop {
        let event = events.next_event().await.expect("an event");
        last = event.id.clone().or(last);
        if event.message().is_some() {
            break;
        }
    }
    let cancel = HttpRequest::notification("notifications/cancelled", &json!({ "requestId": 1 }));
    assert_eq!(cancel.session(&session).send(served.address).await.status, 202);
    until(|| gate.dropped() == 1).await;
    while let Some(event) = within(events.next_event()).await {
        assert_eq!(event.message(), None, "a cancelled call is not answered");
        last = event.id.or(last);
    }
    let again =
        HttpRequest::standalone_stream(&session).header("Last-Event-ID", &last.expect("events have ids"));
    let refused = EventStream::open(&again, served.address).await.err().expect("an error response");
    assert_eq!(refused.status, 405);
    assert!(refused.header("allow").is_some_and(|allowed| allowed.contains("POST")));
}
