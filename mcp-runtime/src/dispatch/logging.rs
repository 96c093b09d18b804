//! Which log messages a client wants: `logging/setLevel` in the handshake era, `_meta` of each request after it.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).

use serde_json::value::RawValue;

use super::{Refusal, Request, Status, reply::result, run::Begun};
use crate::{
    context::{LogLevel, any_forwarder},
    jsonrpc::{ProtocolError, text_of},
    protocol::META_LOG_LEVEL,
    server::Server,
};

impl Server {
    pub(super) fn set_level(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let raw = request.params.level.ok_or_else(|| ProtocolError::invalid_params("`level` is missing"))?;
        let level = level(raw, "level")?;
        let session = request.peer.link.as_deref().and_then(|link| link.session());
        let Some(session) = session else {
            let text =
                "there is no session to remember the level in\nserve HTTP with sessions, or speak 2026-07-28";
            return Err(ProtocolError::internal(text).into());
        };
        if !session.set_level(level) {
            let text = "there is no room to remember the level\nask again later";
            return Err(ProtocolError::internal(text).into());
        }
        result(out, request, self, None, |_| {});
        Ok(Begun::Done(Status::Ok))
    }
}

impl Request<'_> {
    /// The least level of the messages that this request asks for.
    pub(super) fn log_level(&self) -> Result<Option<LogLevel>, ProtocolError> {
        match self.params.meta.log_level {
            Some(raw) if self.revision.is_modern() => level(raw, META_LOG_LEVEL).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether events of the function belong to a client, so that it must be known which call it works for.
    pub(super) fn is_watched(&self, server: &Server) -> bool {
        server.settings().logging
            && any_forwarder()
            && if self.revision.is_modern() {
                self.params.meta.log_level.is_some()
            } else {
                self.peer.session_level().is_some()
            }
    }
}

fn level(raw: &RawValue, key: &str) -> Result<LogLevel, ProtocolError> {
    text_of(raw).and_then(|name| LogLevel::from_wire(&name)).ok_or_else(|| {
        let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        ProtocolError::invalid_params(format!("`{key}` is no level of log messages\nit is one of {known}"))
    })
}
