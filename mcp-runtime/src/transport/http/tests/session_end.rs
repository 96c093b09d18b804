//! Requests of a session that ends at the same moment.

use std::{
    pin::pin,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use super::*;
use crate::core::tool::{ToolCall, ToolDef};

/// Says when a function's future is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A server whose tool ends its caller's session on its first poll: after the request has been admitted, and before it
/// is among those in flight. Then it waits for ever.
fn handler(client: &Arc<OnceLock<Client>>, dropped: &Arc<AtomicBool>) -> Arc<HttpHandler> {
    let (client, dropped) = (client.clone(), dropped.clone());
    let tool = ToolDef::builder("end").handler(move |_: ToolCall| {
        let (client, dropped) = (client.clone(), Dropped(dropped.clone()));
        async move {
            let _dropped = dropped;
            let client = client.get().expect("a client");
            let ended = pin!(client.delete()).poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(ended, Poll::Ready(StatusCode::NO_CONTENT), "without waiting");
            std::future::pending::<&str>().await
        }
    });
    HttpHandler::new(&server().add(tool).build().expect("a server"), None)
}

#[tokio::test]
async fn a_request_that_is_started_while_its_session_ends_is_cancelled() {
    let (client, dropped) = (Arc::default(), Arc::default());
    let handler = handler(&client, &dropped);
    let session = Client::with_session(&handler, "2025-11-25").await;
    let own = client.get_or_init(|| session);
    assert_eq!(own.call(1, "end").await.status(), StatusCode::NOT_FOUND);
    assert!(dropped.load(Ordering::Relaxed));
    assert_eq!(handler.legacy.stored_sessions(), 0);
}

#[tokio::test]
async fn a_batch_that_is_started_while_its_session_ends_is_cancelled() {
    let (client, dropped) = (Arc::default(), Arc::default());
    let handler = handler(&client, &dropped);
    let session = Client::with_session(&handler, "2025-03-26").await;
    let own = client.get_or_init(|| session);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "end" } });
    assert_eq!(own.post(&json!([call])).await.status(), StatusCode::NOT_FOUND);
    assert!(dropped.load(Ordering::Relaxed));
    assert_eq!(handler.legacy.stored_sessions(), 0);
}

#[cfg(feature = "shared")]
#[tokio::test]
async fn a_session_that_a_server_of_another_version_has_ended_has_ended() {
    let memory = crate::core::store::Memory::default();
    let other = server().shared(memory.clone()).build().expect("a server");
    other.store().become_other_version();
    let this = server().shared(memory).build().expect("a server");
    let session = Client::with_session(&HttpHandler::new(&other, None), "2025-11-25").await;
    let here = Client { handler: HttpHandler::new(&this, None), ..session.clone() };
    assert_eq!(here.request(1, "tools/list", &json!({})).await.status(), StatusCode::OK);
    assert_eq!(session.delete().await, StatusCode::NO_CONTENT);
    assert_eq!(here.request(2, "tools/list", &json!({})).await.status(), StatusCode::NOT_FOUND);
    assert!(this.store().has_logged_other_version());
}
