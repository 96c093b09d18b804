//! Reads the body of a request, within its bounds of size and time; bodies that are not complete yet share a budget in
//! bytes.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::StatusCode;
use hyper::body::{Body, Bytes};

use super::response::HttpError;
use crate::{
    admission::{Budget, Permit},
    protocol::INVALID_REQUEST,
};

/// What is read of a body that is refused, so that its sender gets to see the response.
const DISCARDED: usize = 8 << 20;

/// The whole body.
///
/// # Errors
/// It is longer than `limit`, takes longer than `patience`, breaks off, or does not fit into the budget.
pub(super) async fn receive<B>(
    body: B,
    limit: usize,
    patience: Duration,
    expects: bool,
    budget: &Arc<Budget>,
) -> Result<BodyBytes, HttpError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let permit = budget.empty_permit();
    let mut body = Partial { body, first: Bytes::new(), rest: Vec::new(), limit, permit, charged: 0 };
    let declared = usize::try_from(body.body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        if !expects {
            body.discard().await;
        }
        return Err(HttpError::too_large());
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
            Err(_) => return Err(HttpError::too_slow()),
        },
    };
    match received {
        Ok(text) => Ok(BodyBytes { text, _permit: body.permit }),
        Err(refusal) => {
            body.rest = Vec::new();
            body.permit = budget.empty_permit();
            body.discard().await;
            Err(refusal)
        }
    }
}

/// A whole body, and what it takes of the budget.
pub(super) struct BodyBytes {
    pub(super) text: Bytes,
    _permit: Permit,
}

struct Partial<B> {
    body: B,
    /// Small bodies are one piece, which is not copied.
    first: Bytes,
    rest: Vec<u8>,
    limit: usize,
    /// Of the budget of bodies that are not complete.
    permit: Permit,
    /// Bytes that it holds.
    charged: usize,
}

impl<B: Body<Data = Bytes> + Unpin> Partial<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, HttpError>> {
        loop {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let data = match frame {
                None => return Poll::Ready(Ok(self.take())),
                Some(Err(_)) => {
                    let refusal =
                        HttpError::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the body breaks off");
                    return Poll::Ready(Err(refusal));
                }
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if self.first.len().max(self.rest.len()) + data.len() > self.limit {
                return Poll::Ready(Err(HttpError::too_large()));
            }
            let more = usize::try_from(self.body.size_hint().lower()).unwrap_or(0).min(self.limit);
            if self.first.is_empty() {
                self.first = data;
            } else {
                if self.rest.is_empty() {
                    self.rest.reserve(self.first.len() + data.len() + more);
                    self.rest.extend_from_slice(&self.first);
                }
                self.rest.extend_from_slice(&data);
            }
            if self.body.is_end_stream() {
                return Poll::Ready(Ok(self.take()));
            }
            // what is announced is charged before it comes, since room is made for it
            let bytes = self.first.len().max(self.rest.len()) + more;
            if bytes > self.charged {
                if !self.permit.grow(bytes - self.charged) {
                    return Poll::Ready(Err(HttpError::too_many_bodies()));
                }
                self.charged = bytes;
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

    /// Reads on for a moment: a connection closed over unread data is reset, and the response lost with it.
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
