//! Links to servers: each moves messages by its own rules, and hands what is not a response to the inbox.

pub(super) mod bearer_challenge;
mod broken_response;
pub(crate) mod child_process;
pub(super) mod event_link;
pub(super) mod event_stream;
pub(super) mod http_link;
mod http_reply;
mod http_stream;
pub(super) mod outgoing;
pub(super) mod stream_link;

use std::sync::Arc;

use super::Error;
use crate::core::{
    jsonrpc::replace_lone_surrogates,
    protocol::{INTERNAL_ERROR, Revision},
};
use child_process::ChildHandle;
use http_link::{HttpLink, Login};
use outgoing::OutgoingRequest;
use stream_link::StreamLink;

/// The transport of a connection.
pub(super) enum ServerLink {
    Stream(StreamLink),
    Http(Arc<HttpLink>),
}

impl ServerLink {
    /// Sends a request and waits for its response: the raw JSON of the result. Dropping the future cancels the request.
    pub(super) async fn request(&self, request: OutgoingRequest<'_>) -> Result<String, LinkError> {
        match self {
            Self::Stream(link) => Ok(link.request(request).await?),
            // boxed: it is several times larger
            Self::Http(link) => Box::pin(link.request(request)).await,
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, text: Vec<u8>) -> Result<(), LinkError> {
        match self {
            Self::Stream(link) => Ok(link.notify(text).await?),
            Self::Http(link) => link.post_message(&link.url, text, Login::Allowed(None)).await,
        }
    }

    /// Uses a legacy revision from now on, which requests over HTTP name.
    pub(super) fn set_legacy_revision(&self, revision: Revision) {
        match self {
            Self::Stream(link) => link.set_legacy_revision(revision),
            Self::Http(link) => link.set_legacy_revision(revision),
        }
    }

    /// Begins anew, as if nothing had been agreed.
    pub(super) fn forget_session(&self) {
        if let Self::Http(link) = self {
            link.forget_session();
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Stream(link) => link.close().await,
            Self::Http(link) => link.close().await,
        }
    }

    /// How often authorization was begun.
    pub(super) fn authorization_attempts(&self) -> u64 {
        match self {
            Self::Stream(_) => 0,
            Self::Http(link) => link.authorization_attempts(),
        }
    }

    /// The server's process, if it has one.
    pub(super) fn process(&self) -> Option<&ChildHandle> {
        match self {
            Self::Stream(link) => link.process.as_ref(),
            Self::Http(_) => None,
        }
    }

    /// Whether a stream has ended; over HTTP, each request has its own.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Self::Stream(link) if link.is_closed())
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self, Self::Http(_))
    }
}

/// How a request failed, where the client may do something about it.
pub(super) enum LinkError {
    /// The server does not know the session any more.
    SessionLost,
    Failed(Error),
}

impl LinkError {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::SessionLost => Error::not_connected("the server does not keep the session"),
            Self::Failed(error) => error,
        }
    }
}

impl From<Error> for LinkError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The `error` of a response.
pub(super) fn parse_error(json: &str) -> Error {
    let error: serde_json::Value = serde_json::from_str(&replace_lone_surrogates(json)).unwrap_or_default();
    // some servers send only the message
    let message = error["message"].as_str().or_else(|| error.as_str());
    Error::Protocol {
        code: error["code"].as_i64().unwrap_or(INTERNAL_ERROR),
        message: message.unwrap_or("an error without a message").to_owned(),
        data: error.get("data").cloned(),
    }
}
