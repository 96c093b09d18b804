//! Reads the body of a request within limits on its size and time. Bodies that are not complete yet share a budget of
//! bytes.

use std::{
    any::Any,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use super::{
    endpoint::{Endpoint, MessagePermit},
    headers::ProtocolHeaders,
    http_error::HttpError,
    request_connection::RequestConnection,
};
use crate::core::admission::Permit;

/// Bytes that are read of a refused body, so that its sender receives the response.
const MAX_DISCARDED: usize = 8 << 20;

/// Pieces with fewer bytes than this are small: each takes as long as hundreds of bytes.
const SMALL_PIECE: usize = 64;

/// How many of them a body may have, beside one for each 64 bytes.
const MAX_SMALL_PIECES: usize = 4_096;

/// The most bytes that are charged before they arrive, unless their sender announces more.
const CHARGE_STEP: usize = 64 << 10;

/// Bytes that are read of the body of a request that is refused for its head.
const MAX_REFUSED: usize = 64 << 10;

/// The body of a request, of whatever type the HTTP server has, so that the code that answers requests exists once, in this
/// crate. Bodies of hyper and axum need no allocation for that.
pub(super) enum IncomingBody {
    Hyper(Incoming),
    #[cfg(feature = "axum")]
    Axum(axum::body::Body),
    Other(Box<dyn Body<Data = Bytes, Error = Incomplete> + Send + Unpin>),
}

impl IncomingBody {
    pub(super) fn new<B: Body<Data = Bytes> + Send + Unpin + 'static>(body: B) -> Self {
        let mut body = Some(body);
        let any: &mut dyn Any = &mut body;
        #[cfg(feature = "axum")]
        if let Some(body) = any.downcast_mut::<Option<axum::body::Body>>().and_then(Option::take) {
            return Self::Axum(body);
        }
        if let Some(body) = any.downcast_mut::<Option<Incoming>>().and_then(Option::take) {
            return Self::Hyper(body);
        }
        Self::Other(Box::new(OtherBody(body)))
    }
}

/// The rest of a body cannot be read.
#[derive(Debug)]
pub(super) struct Incomplete;

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = Incomplete;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        let polled = match self.get_mut() {
            Self::Hyper(body) => ready!(Pin::new(body).poll_frame(cx)).map(Result::ok),
            #[cfg(feature = "axum")]
            Self::Axum(body) => ready!(Pin::new(body).poll_frame(cx)).map(Result::ok),
            Self::Other(body) => ready!(Pin::new(body).poll_frame(cx)).map(Result::ok),
        };
        Poll::Ready(polled.map(|frame| frame.ok_or(Incomplete)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Hyper(body) => body.is_end_stream(),
            #[cfg(feature = "axum")]
            Self::Axum(body) => body.is_end_stream(),
            Self::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Hyper(body) => body.size_hint(),
            #[cfg(feature = "axum")]
            Self::Axum(body) => body.size_hint(),
            Self::Other(body) => body.size_hint(),
        }
    }
}

/// A body whose errors have one type; `None` is an empty one.
struct OtherBody<B>(Option<B>);

impl<B: Body<Data = Bytes> + Unpin> Body for OtherBody<B> {
    type Data = Bytes;
    type Error = Incomplete;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        let Some(body) = &mut self.get_mut().0 else { return Poll::Ready(None) };
        Pin::new(body).poll_frame(cx).map_err(|_| Incomplete)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// Reads a complete body of at most `limit` bytes; `message` is the permit of the request.
///
/// # Errors
/// It is longer than the limit, takes too long, is incomplete, or exceeds what all bodies or those of its owner may hold.
pub(super) async fn read_body(
    body: IncomingBody,
    limit: usize,
    endpoint: &Endpoint,
    connection: &RequestConnection,
    expects_continue: bool,
    message: &mut MessagePermit,
) -> Result<RequestBody, HttpError> {
    let mut body = PartialBody {
        body,
        first: Bytes::new(),
        rest: Vec::new(),
        limit,
        endpoint,
        connection,
        permit: None,
        charged: 0,
        pieces: 0,
    };
    let declared = usize::try_from(body.body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        if !expects_continue {
            body.discard().await;
        }
        return Err(HttpError::body_too_large());
    }
    // Nearly always the body arrived with the head and the second poll returns it: that needs no timer.
    let mut first_poll = true;
    let quick = poll_fn(|cx| match body.poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if first_poll => {
            first_poll = false;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    });
    let received = match quick.await {
        Some(received) => received,
        // from here on a slow sender holds its own share of all requests, and no more
        None => match message.charge(&connection.owner()) {
            Ok(()) => {
                let time_limit = endpoint.options.body_timeout;
                match tokio::time::timeout(time_limit, poll_fn(|cx| body.poll(cx))).await {
                    Ok(received) => received,
                    Err(_) => return Err(HttpError::body_timeout()),
                }
            }
            Err(error) => Err(error),
        },
    };
    match received {
        Ok(text) => Ok(RequestBody { text, permit: body.permit }),
        Err(error) => {
            body.rest = Vec::new();
            body.permit = None;
            body.discard().await;
            Err(error)
        }
    }
}

/// A complete body, and its share of the budget.
pub(super) struct RequestBody {
    pub(super) text: Bytes,
    pub(super) permit: Option<Permit>,
}

struct PartialBody<'a> {
    body: IncomingBody,
    endpoint: &'a Endpoint,
    connection: &'a RequestConnection,
    /// Small bodies consist of one frame, which is not copied.
    first: Bytes,
    rest: Vec<u8>,
    limit: usize,
    /// For the bytes of a body that is not complete.
    permit: Option<Permit>,
    /// The number of these bytes.
    charged: usize,
    /// In how many pieces it has arrived so far.
    pieces: usize,
}

impl PartialBody<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, HttpError>> {
        loop {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let data = match frame {
                None => return Poll::Ready(Ok(self.take())),
                Some(Err(_)) => {
                    return Poll::Ready(Err(HttpError::bad_request("the body is incomplete")));
                }
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if self.first.len().max(self.rest.len()) + data.len() > self.limit {
                return Poll::Ready(Err(HttpError::body_too_large()));
            }
            self.pieces += 1;
            let sized = self.first.len().max(self.rest.len()) / SMALL_PIECE;
            if self.pieces > sized.saturating_add(MAX_SMALL_PIECES) {
                return Poll::Ready(Err(HttpError::bad_request("the body arrives in too many small pieces")));
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
            // announced bytes are charged before they arrive, since memory is reserved for them
            let bytes = self.first.len().max(self.rest.len()) + more;
            if bytes > self.charged
                && let Err(error) = self.charge(bytes)
            {
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Charges at least this many bytes, in steps that grow up to [`CHARGE_STEP`]: a body may arrive byte by byte.
    fn charge(&mut self, bytes: usize) -> Result<(), HttpError> {
        let (bodies, connection) = (&self.endpoint.budgets.bodies, self.connection);
        let permit = self.permit.get_or_insert_with(|| bodies.empty_permit(&connection.owner()));
        let step = bytes.max(self.charged + self.charged.min(CHARGE_STEP)).min(self.limit.max(bytes));
        for charged in [step, bytes] {
            if permit.grow(charged - self.charged) {
                self.charged = charged;
                return Ok(());
            }
        }
        Err(HttpError::too_many_body_bytes())
    }

    fn take(&mut self) -> Bytes {
        if self.rest.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            std::mem::take(&mut self.rest).into()
        }
    }

    /// Discards what its sender is still sending.
    async fn discard(&mut self) {
        discard(&mut self.body, MAX_DISCARDED, Duration::from_secs(1)).await;
    }
}

/// Discards the rest of a request that is refused for its head, so that the sender, which may have sent only the head so
/// far, receives the response and can use the connection again. A body that is longer, or too slow, ends the connection.
#[cold]
pub(super) async fn discard_refused(mut body: IncomingBody, headers: &ProtocolHeaders<'_>) {
    if !headers.expects_continue && body.size_hint().lower() <= MAX_REFUSED as u64 {
        discard(&mut body, MAX_REFUSED, Duration::from_millis(500)).await;
    }
}

/// Reads and discards data for some time: closing a connection with unread data resets it, and the response is lost.
async fn discard(body: &mut IncomingBody, mut remaining: usize, time: Duration) {
    // a piece takes as long as hundreds of bytes: at most 2,048 are discarded
    let least = remaining / 2_048;
    let read = poll_fn(|cx| {
        loop {
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let size = frame.into_data().unwrap_or_default().len().max(least);
                    remaining = remaining.saturating_sub(size);
                    if remaining == 0 || body.is_end_stream() {
                        return Poll::Ready(());
                    }
                }
                None | Some(Err(_)) => return Poll::Ready(()),
            }
        }
    });
    let _timed_out = tokio::time::timeout(time, read).await;
}

#[cfg(test)]
mod tests {
    use super::{
        super::{endpoint::MAX_UNFINISHED, service::HttpHandler},
        *,
    };
    use crate::core::{admission::Owner, server::Server};

    #[tokio::test]
    async fn a_body_that_has_to_wait_is_charged_also_if_it_arrived_as_a_whole() {
        let handler = HttpHandler::new(&Server::builder("test", "1").build().unwrap(), None);
        let charge = |body: &mut RequestBody| body.charge(&handler.endpoint, &Owner::local()).is_ok();
        let [mut first, mut second] =
            [MAX_UNFINISHED, 1].map(|bytes| RequestBody { text: vec![0; bytes].into(), permit: None });
        assert!(charge(&mut first) && !charge(&mut second));
        drop(first);
        assert!(charge(&mut second));
    }
}
