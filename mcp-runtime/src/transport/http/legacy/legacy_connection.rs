//! The clients of requests of legacy revisions that have a session, which receives the server's requests and stores
//! settings.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::{event_id::StreamKind, resumable::OpenStream, session_id::Session, sessions::Sessions};
use crate::{
    core::{
        connection::{
            ClientConnection, HttpHead, NOT_INITIALIZED, PendingResponse, SessionState, SubscribeError,
        },
        protocol::{LogLevel, Revision},
    },
    transport::http::request_connection::RequestConnection,
};
use tokio_util::sync::CancellationToken;

/// The client of calls of a legacy revision, which continue when it disconnects: that of a session, or none in stateless
/// mode, where it is the one of its request.
pub(in crate::transport::http) struct LegacyClient(pub(super) Option<Arc<SessionConnection>>);

impl LegacyClient {
    /// The event stream of the response.
    pub(in crate::transport::http) fn stream(&self) -> Arc<OpenStream> {
        match &self.0 {
            Some(client) => client.stream().clone(),
            None => Arc::new(OpenStream::new(StreamKind::Call, None, None, Revision::LATEST_LEGACY)),
        }
    }

    /// Whether a function has requested that the response's stream be closed, so that the stream has to be opened first.
    pub(in crate::transport::http) fn is_closing(&self) -> bool {
        let open = self.0.as_ref().and_then(|client| client.stream.get());
        open.is_some_and(|open| open.stream.is_closing())
    }
}

/// The client of a request within a session.
pub(super) struct SessionConnection {
    pub(super) request: Arc<RequestConnection>,
    // not the endpoint: a call may continue as a task, which must not keep its server alive
    pub(super) sessions: Arc<Sessions>,
    pub(super) session: Arc<Session>,
    pub(super) shutdown: CancellationToken,
    /// The event stream of the request's response, once it is needed.
    pub(super) stream: OnceLock<Arc<OpenStream>>,
}

impl SessionConnection {
    /// The event stream of the response.
    fn stream(&self) -> &Arc<OpenStream> {
        self.stream.get_or_init(|| {
            let session = self.sessions.table.open_stream(self.session.uid, &self.request.owner());
            let logs = self.sessions.event_logs.as_ref();
            Arc::new(OpenStream::new(StreamKind::Call, session, logs, self.session.revision))
        })
    }
}

impl ClientConnection for SessionConnection {
    fn notify(&self, message: Vec<u8>) {
        self.request.notify(message);
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        self.request.deliver(message)
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        let Sessions { records, pending, ended, .. } = &*self.sessions;
        // where replicas share a store, another one may have got the notification
        if ended.is_none() && records.is_initializing(&self.session) {
            return Err(NOT_INITIALIZED);
        }
        let pending = pending.expect_response(self.session.uid)?;
        // checked last: pending requests are closed after this has fired
        if self.shutdown.is_cancelled() { Err("the server is stopping") } else { Ok(pending) }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.request.header(name)
    }

    fn transport(&self) -> Option<&'static str> {
        Some("tcp")
    }

    fn http_head(&self) -> Option<HttpHead<'_>> {
        self.request.http_head()
    }

    fn session(&self) -> Option<&dyn SessionState> {
        Some(self)
    }

    fn close_stream(&self, retry: Duration) -> bool {
        // clients of older revisions do not accept the empty event that contains the id to resume from
        let supported = self.session.revision >= Revision::V2025_11_25 && self.request.accepts().stream;
        if !supported || !self.stream().is_resumable() {
            return false;
        }
        self.stream().stream.close(retry);
        self.request.outbound().wake();
        true
    }
}

impl SessionState for SessionConnection {
    fn digest(&self) -> Option<Box<str>> {
        let digest = Sha256::digest(self.session.uid);
        Some(URL_SAFE_NO_PAD.encode(&digest[..12]).into())
    }

    fn level(&self) -> Option<LogLevel> {
        self.sessions.table.level(&self.session.uid)
    }

    fn set_level(&self, level: LogLevel) -> bool {
        self.sessions.table.set_level(&self.session.uid, &self.request.owner(), level)
    }

    fn subscribe(&self, uri: &str) -> Result<(), SubscribeError> {
        self.sessions.table.subscribe(&self.session.uid, &self.request.owner(), uri)
    }

    fn unsubscribe(&self, uri: &str) {
        self.sessions.table.unsubscribe(&self.session.uid, uri);
    }
}
