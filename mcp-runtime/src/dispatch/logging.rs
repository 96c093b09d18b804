//! Which log messages a client wants: `logging/setLevel` before 2026-07-28, `_meta` of each request since.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).

use serde_json::value::RawValue;

use super::{
    Request,
    response::{Reply, ResultBody},
};
use crate::{
    jsonrpc::{ProtocolError, decode_string},
    protocol::LogLevel,
    server::Server,
};

impl Server {
    pub(super) fn set_level(&self, request: Request<'_>) -> Result<Reply, Reply> {
        let raw = request.params.level.ok_or_else(|| ProtocolError::invalid_params("`level` is missing"))?;
        let level = level(raw, "level")?;
        // without a session there is nothing to set, and some clients take an error for a broken server
        if request.context.session().is_some_and(|session| !session.set_level(level)) {
            let text = "there is no room to keep the level\ntry again later";
            return Err(ProtocolError::internal(text).into());
        }
        Ok(ResultBody::Empty.into())
    }
}

pub(super) fn level(raw: &RawValue, key: &str) -> Result<LogLevel, ProtocolError> {
    decode_string(raw).and_then(|name| LogLevel::from_wire(&name)).ok_or_else(|| {
        let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        ProtocolError::invalid_params(format!("`{key}` is not a level of log messages\nit is one of {known}"))
    })
}
