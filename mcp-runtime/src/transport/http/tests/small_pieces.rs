//! Bodies that arrive in small pieces.

use std::task::{Context as TaskContext, Poll};

use hyper::body::{Body, Bytes, Frame};

use super::*;

/// A text, some bytes at a time.
struct Pieces(Bytes, usize);

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let size = self.1.min(self.0.len());
        let piece = (size > 0).then(|| self.0.split_to(size));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The response to a message of this many bytes, which arrives in pieces of that size.
async fn send(handler: &Arc<HttpHandler>, bytes: usize, size: usize) -> Response<ResponseBody> {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        "_meta": { "x": "x".repeat(bytes) } } });
    let mut request = Request::builder().method("POST").uri("/mcp");
    for (name, value) in &Client::new(handler).headers {
        request = request.header(*name, value);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let body = IncomingBody::new(Pieces(message.to_string().into(), size));
    let response = handler.clone().handle(parts, body, Route::Mcp, None);
    tokio::time::timeout(TEST_TIMEOUT, response).await.expect("a response")
}

#[tokio::test]
async fn a_body_of_many_pieces_is_charged_in_a_few_steps() {
    let handler = HttpHandler::new(&server().build().expect("a server"), None);
    for (bytes, size) in [(3_000, 1), (100_000, 40), (1_000_000, 64)] {
        let before = handler.endpoint.budgets.bodies.taken();
        assert_eq!(send(&handler, bytes, size).await.status(), StatusCode::OK);
        let steps = handler.endpoint.budgets.bodies.taken() - before;
        assert!((1..50).contains(&steps), "{steps}");
    }
    assert_eq!(handler.endpoint.budgets.bodies.used(), 0);
}

#[tokio::test]
async fn a_body_of_too_many_small_pieces_is_refused() {
    let handler = HttpHandler::new(&server().build().expect("a server"), None);
    for (bytes, size) in [(20_000, 1), (3_000_000, 10)] {
        assert_eq!(send(&handler, bytes, size).await.status(), StatusCode::BAD_REQUEST);
    }
    assert_eq!(handler.endpoint.budgets.bodies.used(), 0);
}
