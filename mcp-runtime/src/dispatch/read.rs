//! `resources/read`.

use std::borrow::Cow;

use serde_json::json;

use super::{
    MayAsk, Refusal, Request, Status,
    reply::{Frame, framed, refused},
    round::Subject,
    run::{Begun, Drive, drive, enter_text},
};
use crate::{
    content::{ResourceDefaults, ResourceResult, resource_result},
    jsonrpc::{ProtocolError, error_reply, text_of},
    protocol::{self, Revision},
    registry::ResourceEntry,
    reply::Failure,
    server::Server,
};

impl Server {
    pub(super) fn read_resource(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let uri = request.uri()?;
        let registry = self.registry();
        let revision = request.revision;
        if revision.is_modern()
            && let Some(found) = registry.skills.find(&uri)
        {
            return self.read_skill(request, &uri, &found, out);
        }
        let found = registry.resource(&uri).filter(|(r, _)| request.viewer().sees(r.def.common.scopes));
        let Some((entry, variables)) = found else { return Err(not_found(&uri, revision).into()) };
        let entry = entry.clone();
        let common = &entry.def.common;
        let subject = Subject::new("resources/read", &uri, "{}");
        request.check_features(common.requires)?;
        let round = self.resume(&request, &subject)?;
        // what was made of a client's answers is for nobody else, and for no other time
        let cacheable = round.is_none();
        let make = || request.context(self, &entry.state, MayAsk::Yes(round.clone()));
        let (this, watched) = (entry.this.as_ref(), request.is_watched(self));
        let (outcome, context) = enter_text(entry.def.handler, common.args, &variables, this, watched, &make);
        let of = uri.clone().into_owned();
        let going =
            Drive { server: self, frame: request.frame(), context, make: Some(&make), limit: None, subject };
        let entry = entry.clone();
        Ok(drive(outcome, going, out, move |server, result, id, out| {
            server.finish_read(&entry, &of, cacheable, Frame { id, revision }, result, out)
        }))
    }

    fn finish_read(
        &self,
        entry: &ResourceEntry,
        uri: &str,
        cacheable: bool,
        frame: Frame<'_>,
        result: Result<ResourceResult, Failure>,
        out: &mut Vec<u8>,
    ) -> Status {
        let error = match result {
            Ok(result) => {
                framed(out, frame, self, result.meta.as_deref(), |object| {
                    let own = ResourceDefaults { uri, mime: entry.def.mime_type(), ui: entry.def.ui };
                    resource_result(object, &result, frame.revision, own);
                    if frame.revision.is_modern() {
                        let (ttl, public) = entry.def.cache.filter(|_| cacheable).unwrap_or((0, false));
                        object
                            .value("ttlMs", &ttl)
                            .str("cacheScope", if public { "public" } else { "private" });
                    }
                });
                return Status::Ok;
            }
            Err(failure) => refused(
                self,
                "resource",
                &entry.name,
                failure,
                |report| {
                    ProtocolError::invalid_params(format!("invalid URI `{uri}`: {report}"))
                        .with_data(json!({ "uri": uri }))
                },
                || not_found(uri, frame.revision),
            ),
        };
        error_reply(out, Some(frame.id), &error);
        Status::Ok
    }
}

impl<'a> Request<'a> {
    /// The URI of a request for what has one.
    pub(super) fn uri(&self) -> Result<Cow<'a, str>, ProtocolError> {
        let uri = self.params.uri.ok_or_else(|| ProtocolError::invalid_params("`uri` is missing"))?;
        text_of(uri).ok_or_else(|| ProtocolError::invalid_params("`uri` is not a string"))
    }
}

/// `-32602` in the stateless era, `-32002` before.
pub(super) fn not_found(uri: &str, revision: Revision) -> ProtocolError {
    let code = if revision.is_modern() { protocol::INVALID_PARAMS } else { protocol::RESOURCE_NOT_FOUND };
    ProtocolError::new(code, format!("no resource is `{uri}`")).with_data(json!({ "uri": uri }))
}
