//! Links to servers: each moves messages by its own rules, and hands what is not a response to the inbox.

pub(super) mod bearer_challenge;
pub(super) mod child_process;
pub(super) mod event_link;
pub(super) mod event_stream;
pub(super) mod http_link;
pub(super) mod outgoing;
pub(super) mod stream_link;

use std::time::Duration;

use tokio::time::timeout;

use super::Error;
use http_link::HttpLink;
use outgoing::{OutgoingRequest, RawReply};
use stream_link::StreamLink;

/// The transport of a connection.
#[derive(Debug)]
pub(super) enum ServerLink {
    Stream(StreamLink),
    Http(HttpLink),
}

impl ServerLink {
    /// Sends a request and waits for its response, for as long as `limit`; dropping the future cancels it.
    pub(super) async fn request(
        &self,
        request: OutgoingRequest<'_>,
        limit: Option<Duration>,
    ) -> Result<RawReply, LinkError> {
        match (self, limit) {
            (Self::Stream(link), limit) => Ok(link.request(request, limit).await?),
            // boxed: it is several times larger
            (Self::Http(link), None) => Box::pin(link.request(request)).await,
            (Self::Http(link), Some(limit)) => {
                let reply = Box::pin(timeout(limit, link.request(request))).await;
                reply.unwrap_or(Err(Error::Timeout { after: limit }.into()))
            }
        }
    }

    pub(super) async fn notify(&self, text: Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Stream(link) => link.notify(text).await,
            Self::Http(link) => link.notify(text).await,
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Stream(link) => link.close().await,
            Self::Http(link) => link.close().await,
        }
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self, Self::Http(_))
    }
}

/// How a request failed, where the client may do something about it.
#[derive(Debug)]
pub(super) enum LinkError {
    /// The server does not know the session any more.
    SessionLost,
    Failed(Error),
}

impl From<Error> for LinkError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
