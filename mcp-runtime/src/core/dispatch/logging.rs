//! The minimum level of log messages: `logging/setLevel` before 2026-07-28, `_meta` of each request since.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).

use super::{
    Request,
    request::parse_level,
    response::{Reply, Response, ResultBody},
};
use crate::core::{jsonrpc::ProtocolError, server::Server};

const NOT_STORED: &str = "the log level could not be stored\ntry again later";

impl Server {
    pub(super) fn set_level(&self, request: Request<'_>) -> Result<Response, Reply> {
        let raw =
            request.params.get("level").ok_or_else(|| ProtocolError::invalid_params("`level` is missing"))?;
        let level = parse_level(raw, "level")?;
        // without a session there is nothing to set, but some clients treat an error as a broken server
        let Some(session) = request.context.session() else {
            return Ok(Reply::from(ResultBody::Empty).into());
        };
        if !session.set_level(level) {
            return Err(ProtocolError::internal(NOT_STORED).into());
        }
        Ok(Reply::from(ResultBody::Empty).into())
    }
}
