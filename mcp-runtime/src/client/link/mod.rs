//! Links to servers: each moves messages by its own rules, and hands what is not a response to the inbox.

pub(super) mod child_process;
pub(super) mod event_link;
pub(super) mod event_stream;
pub(super) mod http_link;
pub(super) mod outgoing;
pub(super) mod stream_link;

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
    pub(super) async fn request(&self, request: OutgoingRequest) -> Result<RawReply, LinkError> {
        match self {
            Self::Stream(link) => Ok(link.request(request).await?),
            Self::Http(link) => link.request(request).await,
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
