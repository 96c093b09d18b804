//! `resources/read`, `resources/subscribe` and `resources/unsubscribe`.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::json;

use super::{
    MayAsk, Request,
    call::ItemCall,
    request_state::BoundTo,
    response::{CacheHints, ReadEntry, Reply, Response, ResultBody},
};
use crate::{
    arguments::{CallParts, Input, TextArgument},
    context::{Context, Round},
    error::Failure,
    extensions::Extensions,
    invoke::{self, ClientError, ErrorContext, InputRequired, Invocation, Running, catch_panic},
    jsonrpc::{ProtocolError, text_of},
    protocol::{self, Revision},
    resource::{ResourceEntry, ResourceResult, Subscription, UriVariables},
    server::{Registry, Server},
};

/// A read of a resource.
struct Read<'a> {
    entry: Arc<ResourceEntry>,
    variables: UriVariables,
    uri: Cow<'a, str>,
    round: Option<Arc<Round>>,
}

impl Server {
    pub(super) fn read_resource(&self, request: Request<'_>, registry: &Registry) -> Result<Response, Reply> {
        let uri = request.uri()?;
        if request.revision.is_modern()
            && let Some(found) = registry.skills.find(&uri)
        {
            return Ok(self.read_skill(&uri, &found)?.into());
        }
        let Some((entry, variables)) = registry.resource(&uri, request.context) else {
            return Err(not_found(&uri, request.revision).into());
        };
        if !entry.item.requires.is_empty() {
            request.check_features(&entry.item.requires)?;
        }
        let round = request.round(self, || BoundTo::new("resources/read", &uri, "{}"))?;
        let read = Read { entry: entry.clone(), variables, uri, round };
        Ok(self.perform(request, read))
    }

    pub(super) fn subscribe(&self, request: Request<'_>, registry: &Registry) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        self.may_subscribe(&request, registry, &uri)?;
        let kept = request.context.session().is_some_and(|session| session.subscribe(&uri));
        if !kept {
            let text = "there is no room for another subscription\nend one with `resources/unsubscribe`";
            return Err(ProtocolError::internal(text).into());
        }
        Ok(ResultBody::Empty.into())
    }

    pub(super) fn unsubscribe(&self, request: Request<'_>) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        if let Some(session) = request.context.session() {
            session.unsubscribe(&uri);
        }
        Ok(ResultBody::Empty.into())
    }

    /// Whether this client may be notified of changes of that resource.
    ///
    /// # Errors
    /// It does not exist for this client, or its own check refuses.
    pub(super) fn may_subscribe(
        &self,
        request: &Request<'_>,
        registry: &Registry,
        uri: &str,
    ) -> Result<(), ProtocolError> {
        let revision = request.revision;
        let Some((entry, variables)) = registry.resource(uri, request.context) else {
            return Err(not_found(uri, revision));
        };
        let Some(check) = entry.subscribe else { return Ok(()) };
        let text = |variable| match variable {
            TextArgument::One(text) => text,
            TextArgument::Many(parts) => parts.join("/"),
        };
        let variables = variables.into_iter().map(|(name, value)| (name, text(value))).collect();
        let wanted = Subscription { uri: uri.to_owned(), variables };
        let context = request.make_context(self, &entry.state, MayAsk::No);
        let failure = match catch_panic(|| check(Some((&wanted, context))).outcome.unwrap_or(Ok(false))) {
            Ok(true) => return Ok(()),
            Ok(false) => {
                return Err(ProtocolError::invalid_params(format!("`{uri}` cannot be subscribed to"))
                    .with_data(json!({ "uri": uri })));
            }
            Err(failure) => failure,
        };
        let detailed = self.options().detailed_errors;
        let of = ErrorContext { kind: "subscription to", name: &entry.item.name, detailed };
        Err(match failure.into_client_error(of, revision) {
            ClientError::Arguments(report) => ProtocolError::invalid_params(report),
            ClientError::NotFound => not_found(uri, revision),
            ClientError::Message(text, _) => ProtocolError::internal(text),
            ClientError::Protocol(error) => error,
        })
    }
}

impl ItemCall for Read<'_> {
    type Output = ResourceResult;
    type Interruption = InputRequired;
    type Owned = Read<'static>;

    fn into_owned(self) -> Read<'static> {
        let Self { entry, variables, uri, round } = self;
        Read { entry, variables, uri: Cow::Owned(uri.into_owned()), round }
    }

    fn name(&self) -> &str {
        &self.uri
    }

    fn arguments(&self) -> &str {
        "{}"
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.state
    }

    fn may_ask(&self) -> MayAsk {
        MayAsk::Yes(self.round.clone())
    }

    fn start(
        &self,
        watched: bool,
        context: &dyn Fn() -> Context,
    ) -> Invocation<ResourceResult, InputRequired> {
        let parts = CallParts {
            input: Input::Text(&self.variables),
            args: self.entry.function.args,
            strict: false,
            tool: None,
            validator: None,
            this: self.entry.function.this.as_ref(),
            context,
        };
        invoke::start(self.entry.function.handler, parts, None, watched)
    }

    fn reply(&self, server: &Server, revision: Revision, result: Result<ResourceResult, Failure>) -> Reply {
        let (entry, uri) = (&self.entry, &*self.uri);
        let failure = match result {
            Ok(result) => {
                // what was made of a client's answers is for this client only, and for no other time
                let cache = entry.cache.filter(|_| self.round.is_none());
                let cache = cache.map_or(CacheHints::NONE, |(ttl, public)| CacheHints {
                    ttl: Duration::from_millis(ttl),
                    public,
                });
                let entry = ReadEntry::Resource(entry.clone());
                return ResultBody::Resource { result, uri: uri.into(), entry, cache }.into();
            }
            Err(failure) => failure,
        };
        let of = ErrorContext {
            kind: "resource",
            name: &entry.item.name,
            detailed: server.options().detailed_errors,
        };
        match failure.into_client_error(of, revision) {
            ClientError::Arguments(report) => {
                ProtocolError::invalid_params(format!("invalid URI `{uri}`: {report}"))
                    .with_data(json!({ "uri": uri }))
            }
            ClientError::NotFound => not_found(uri, revision),
            ClientError::Message(text, _) => ProtocolError::internal(text),
            ClientError::Protocol(error) => error,
        }
        .into()
    }

    fn interrupted(
        self,
        server: &Server,
        _: Revision,
        input: InputRequired,
        running: Running<ResourceResult>,
    ) -> Response {
        let bound = BoundTo::new("resources/read", &self.uri, "{}");
        server.input_required(&bound, running.context(), input).into()
    }
}

impl<'a> Request<'a> {
    /// The URI of a request that has one.
    pub(super) fn uri(&self) -> Result<Cow<'a, str>, ProtocolError> {
        let uri = self.params.uri.ok_or_else(|| ProtocolError::invalid_params("`uri` is missing"))?;
        text_of(uri).ok_or_else(|| ProtocolError::invalid_params("`uri` is not a string"))
    }
}

/// `-32602` in 2026-07-28, `-32002` before.
fn not_found(uri: &str, revision: Revision) -> ProtocolError {
    let code = if revision.is_modern() { protocol::INVALID_PARAMS } else { protocol::RESOURCE_NOT_FOUND };
    ProtocolError::new(code, format!("no resource is `{uri}`")).with_data(json!({ "uri": uri }))
}
