//! Bodies of HTTP: those that are whole, and those that come in parts.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;

pub(super) enum Body {
    Whole(Option<Bytes>),
    Parts(mpsc::Receiver<Bytes>),
}

impl Body {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }

    pub(super) fn parts(receiver: mpsc::Receiver<Bytes>) -> Self {
        Self::Parts(receiver)
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take()),
            Self::Parts(receiver) => receiver.poll_recv(context),
        };
        next.map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Parts(_) => SizeHint::default(),
        }
    }
}

/// The whole of a request's body; `None` if it is longer than `most`.
///
/// # Errors
/// The connection breaks.
pub(super) async fn read(mut body: Incoming, most: usize) -> Result<Option<Vec<u8>>, hyper::Error> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(part) = frame?.into_data() else { continue };
        if bytes.len() + part.len() > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Some(bytes))
}
