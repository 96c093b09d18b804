//! The minimum level of log messages: `logging/setLevel` before 2026-07-28, `_meta` of each request since.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).

use super::{
    Request,
    request::parse_level,
    response::{Reply, ResultBody},
};
use crate::core::{jsonrpc::ProtocolError, server::Server};

impl Server {
    pub(super) fn set_level(&self, request: Request<'_>) -> Result<Reply, Reply> {
        let raw = request.params.level.ok_or_else(|| ProtocolError::invalid_params("`level` is missing"))?;
        let level = parse_level(raw, "level")?;
        // without a session there is nothing to set, but some clients treat an error as a broken server
        if request.context.session().is_some_and(|session| !session.set_level(level)) {
            let text = "the log level could not be stored\ntry again later";
            return Err(ProtocolError::internal(text).into());
        }
        Ok(ResultBody::Empty.into())
    }
}
