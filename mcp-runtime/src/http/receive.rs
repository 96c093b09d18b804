//! Reads the body of a request, within its bounds of size and time. The endpoint calls it.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::http::StatusCode;
use hyper::body::{Body, Bytes};

use super::reply::Refusal;
use crate::protocol::INVALID_REQUEST;

/// What is read of a body that is refused, so that its sender gets to see the answer.
const DISCARDED: usize = 8 << 20;

/// The whole body.
///
/// # Errors
/// It is longer than `limit`, takes longer than `patience`, or breaks off.
pub(super) async fn receive<B>(
    body: B,
    limit: usize,
    patience: Duration,
    expects: bool,
) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut body = Partial { body, first: Bytes::new(), rest: Vec::new(), limit };
    let declared = usize::try_from(body.body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        if !expects {
            body.discard().await;
        }
        return Err(Refusal::too_large());
    }
    // Nearly always the body came with the head, and the second poll finds it: no timer for that.
    let mut first = true;
    let quick = poll_fn(|cx| match body.poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if first => {
            first = false;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    });
    let received = match quick.await {
        Some(received) => received,
        None => match tokio::time::timeout(patience, poll_fn(|cx| body.poll(cx))).await {
            Ok(received) => received,
            Err(_) => return Err(Refusal::too_slow()),
        },
    };
    if received.is_err() {
        body.discard().await;
    }
    received
}

struct Partial<B> {
    body: B,
    /// Small bodies are one piece, which is not copied.
    first: Bytes,
    rest: Vec<u8>,
    limit: usize,
}

impl<B: Body<Data = Bytes> + Unpin> Partial<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Refusal>> {
        loop {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let data = match frame {
                None => return Poll::Ready(Ok(self.take())),
                Some(Err(_)) => {
                    let refusal =
                        Refusal::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the body breaks off");
                    return Poll::Ready(Err(refusal));
                }
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if self.first.len().max(self.rest.len()) + data.len() > self.limit {
                return Poll::Ready(Err(Refusal::too_large()));
            }
            if self.first.is_empty() {
                self.first = data;
            } else {
                if self.rest.is_empty() {
                    let more = usize::try_from(self.body.size_hint().lower()).unwrap_or(0).min(self.limit);
                    self.rest.reserve(self.first.len() + data.len() + more);
                    self.rest.extend_from_slice(&self.first);
                }
                self.rest.extend_from_slice(&data);
            }
            if self.body.is_end_stream() {
                return Poll::Ready(Ok(self.take()));
            }
        }
    }

    fn take(&mut self) -> Bytes {
        if self.rest.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            std::mem::take(&mut self.rest).into()
        }
    }

    /// Reads on for a moment: a connection closed over unread data is reset, and the answer lost with it.
    async fn discard(&mut self) {
        let mut left = DISCARDED;
        let read = poll_fn(|cx| {
            loop {
                match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        let size = frame.into_data().unwrap_or_default().len();
                        left = left.saturating_sub(size);
                        if left == 0 || self.body.is_end_stream() {
                            return Poll::Ready(());
                        }
                    }
                    None | Some(Err(_)) => return Poll::Ready(()),
                }
            }
        });
        let _in_time = tokio::time::timeout(Duration::from_secs(1), read).await;
    }
}
