//! `resources/subscribe` and `resources/unsubscribe` of the handshake era, and who may subscribe to what in either.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;

use super::{
    MayAsk, Refusal, Request, Status,
    read::not_found,
    reply::{refused, result},
    run::{Begun, panicked},
};
use crate::{
    extract::{Subscription, Variable},
    jsonrpc::{ProtocolError, text_of},
    server::Server,
};

impl Server {
    pub(super) fn subscribe(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let uri = uri_of(&request)?;
        self.may_subscribe(&request, &uri)?;
        let link = request.peer.link.clone();
        let session = link.as_deref().and_then(|link| link.session());
        if !session.is_some_and(|session| session.subscribe(&uri)) {
            let text = "there is no room for another subscription\nunsubscribe from something";
            return Err(ProtocolError::internal(text).into());
        }
        result(out, request, self, None, |_| {});
        Ok(Begun::Done(Status::Ok))
    }

    pub(super) fn unsubscribe(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let uri = uri_of(&request)?;
        let link = request.peer.link.clone();
        if let Some(session) = link.as_deref().and_then(|link| link.session()) {
            session.unsubscribe(&uri);
        }
        result(out, request, self, None, |_| {});
        Ok(Begun::Done(Status::Ok))
    }

    /// Whether this client may be told of changes of that resource.
    ///
    /// # Errors
    /// It is not there for this client, or its own check refuses.
    pub(super) fn may_subscribe(&self, request: &Request<'_>, uri: &str) -> Result<(), ProtocolError> {
        let registry = self.registry();
        let found = registry.resource(uri).filter(|(r, _)| request.viewer().sees(r.def.common.scopes));
        let Some((entry, variables)) = found else { return Err(not_found(uri, request.revision)) };
        let Some(check) = entry.def.subscribe else { return Ok(()) };
        let text = |variable| match variable {
            Variable::One(text) => text,
            Variable::Many(parts) => parts.join("/"),
        };
        let variables = variables.into_iter().map(|(name, value)| (name, text(value))).collect();
        let wanted = Subscription { uri: uri.to_owned(), variables };
        let context = request.context(self, &entry.state, MayAsk::No);
        let allowed = catch_unwind(AssertUnwindSafe(|| check(Some((&wanted, context))).outcome))
            .unwrap_or_else(|panic| Some(Err(panicked(panic))))
            .unwrap_or(Ok(false));
        let unknown = || not_found(uri, request.revision);
        match allowed {
            Ok(true) => Ok(()),
            Ok(false) => Err(ProtocolError::invalid_params(format!("`{uri}` cannot be subscribed to"))
                .with_data(json!({ "uri": uri }))),
            Err(failure) => Err(refused(
                self,
                "subscription to",
                &entry.name,
                failure,
                ProtocolError::invalid_params,
                unknown,
            )),
        }
    }
}

fn uri_of<'a>(request: &Request<'a>) -> Result<std::borrow::Cow<'a, str>, ProtocolError> {
    let uri = request.params.uri.ok_or_else(|| ProtocolError::invalid_params("`uri` is missing"))?;
    text_of(uri).ok_or_else(|| ProtocolError::invalid_params("`uri` is not a string"))
}
