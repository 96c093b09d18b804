//! From one request to its reply, in any revision, for any transport: routes methods, looks items up, checks what must
//! hold before a function runs. Replies are values ([`response`]); functions run in [`invoke`](crate::invoke).

mod call;
mod completion;
mod connection_state;
mod inbound;
mod layer;
mod lifecycle;
mod lists;
mod logging;
mod pagination;
mod prompts;
mod request_state;
mod resources;
mod response;
mod skills;
mod subscriptions;
mod tasks;
mod tools;

pub(crate) use connection_state::{ConnectionState, THE_CLIENT};
pub(crate) use inbound::{
    Calls, Clients, Era, InFlight, Messages, Received, Registration, RunningRequest, Subscribed, era,
    start_batch,
};
#[cfg(all(test, feature = "http"))]
pub(crate) use layer::{Layer, LayeredCall, Layers, ReplyFuture};
use request_state::BoundTo;
#[cfg(feature = "http")]
pub(crate) use response::Status;
use response::{Listening, Response};
pub(crate) use response::{Reply, encode};
pub(crate) use subscriptions::Subscription;

use std::{borrow::Cow, sync::Arc};

use crate::{
    connection::{Access, ClientData, RequestContext},
    context::{Asks, Context, Inner, Round, Way, any_forwarder},
    extensions::Extensions,
    jsonrpc::{JsonRpcMessage, Meta, Params, ProtocolError, decode_string, is_valid_id},
    protocol::{self, LogLevel, META_LOG_LEVEL, Revision},
    server::{ListKind, Registry, Server},
};

/// A request on its way through dispatch.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// Raw JSON.
    pub(crate) id: &'a str,
    pub(crate) params: &'a Params<'a>,
    pub(crate) revision: Revision,
    pub(crate) context: &'a RequestContext,
}

/// Whether a function may send requests to its client.
enum MayAsk {
    /// This is what came back from earlier requests of the same call.
    Yes(Option<Arc<Round>>),
    No,
}

impl<'a> Request<'a> {
    /// The request that a message is; absent for notifications and responses.
    pub(crate) fn of(
        message: &'a JsonRpcMessage<'a>,
        revision: Revision,
        context: &'a RequestContext,
    ) -> Option<Self> {
        let (id, method) = (message.id()?, message.method()?);
        Some(Self { method, id, params: message.params(), revision, context })
    }

    /// Whether it opens a subscription, which is answered with a stream.
    pub(crate) fn is_listen(&self) -> bool {
        self.revision.is_modern() && self.method == "subscriptions/listen"
    }

    fn access(&self) -> Access<'a> {
        self.context.access()
    }

    /// The context of this request, for an item with that state.
    fn make_context(&self, server: &Server, state: &Arc<Extensions>, may_ask: MayAsk) -> Context {
        let way = match may_ask {
            MayAsk::Yes(round) if self.revision.is_modern() => Way::Rounds(round),
            MayAsk::Yes(_) => match self.context.connection.as_ref().and_then(|c| c.cannot_ask()) {
                Some(why) => Way::Never(why),
                None => Way::Requests,
            },
            MayAsk::No => Way::Never("only tools, resources and prompts may ask"),
        };
        let meta = &self.params.meta;
        Context::new(Inner {
            revision: self.revision,
            state: state.clone(),
            request: self.context.clone(),
            client: self.client(),
            meta: meta.to_json(),
            progress: meta.progress_token.map(|token| crate::context::Channel::new(token.get())),
            // an unknown one was refused before
            log_level: self.log_level().unwrap_or_default(),
            cancel: crate::context::Cancel::default(),
            asks: Asks::new(way),
            settings: server.settings().clone(),
        })
    }

    /// What comes back with a later round of a call, from the client that was asked; `None` in its first round.
    fn round<'b>(
        &self,
        server: &Server,
        bound: impl FnOnce() -> BoundTo<'b>,
    ) -> Result<Option<Arc<Round>>, ProtocolError> {
        let Params { input_responses, request_state, .. } = self.params;
        if !self.revision.is_modern() || (input_responses.is_none() && request_state.is_none()) {
            return Ok(None);
        }
        server.open_state(self, bound).map(Some)
    }

    /// The least level of the log messages that this request asks for.
    fn log_level(&self) -> Result<Option<LogLevel>, ProtocolError> {
        match self.params.meta.log_level {
            Some(raw) if self.revision.is_modern() => logging::level(raw, META_LOG_LEVEL).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether events of the function belong to a client, so that it must be known which call it works for.
    fn is_watched(&self, server: &Server) -> bool {
        server.settings().logging
            && any_forwarder()
            && if self.revision.is_modern() {
                self.params.meta.log_level.is_some()
            } else {
                self.context.session().is_some_and(|session| session.level().is_some())
            }
    }

    /// What the client says of itself.
    fn client(&self) -> ClientData {
        if !self.revision.is_modern() {
            return self.context.client.clone();
        }
        let owned = |raw: Option<&serde_json::value::RawValue>| raw.map(|raw| Arc::from(raw.get()));
        let meta = &self.params.meta;
        ClientData { info: owned(meta.client_info), capabilities: owned(meta.capabilities) }
    }

    /// What every request must satisfy, whatever its method.
    fn check(&self) -> Result<(), Reply> {
        let meta = &self.params.meta;
        if self.revision.is_modern() {
            check_meta(meta)?;
        }
        if meta.progress_token.is_some_and(|token| !is_valid_id(token)) {
            let text = format!(
                "`progressToken` is neither a string nor an integer of at most {} bytes",
                crate::jsonrpc::MAX_ID_BYTES
            );
            return Err(ProtocolError::invalid_params(text).into());
        }
        self.log_level()?;
        Ok(())
    }
}

impl Server {
    /// Answers one request, but not `subscriptions/listen`.
    fn answer(&self, request: Request<'_>) -> Response {
        self.route(request).unwrap_or_else(Response::Ready)
    }

    /// Answers `subscriptions/listen`.
    fn answer_listen(&self, request: Request<'_>) -> Listening {
        match request.check().and_then(|()| self.listen(request)) {
            Ok(subscription) => Listening::Stream(subscription),
            Err(reply) => Listening::Refused(reply),
        }
    }

    fn route(&self, request: Request<'_>) -> Result<Response, Reply> {
        request.check()?;
        let registry: &Arc<Registry> = &self.registry();
        let revision = request.revision;
        let modern = revision.is_modern();
        let offers = self.offers_of(registry, revision);
        let subscribes = || !modern && offers.changes.resources && request.context.session().is_some();
        Ok(match request.method {
            "tools/call" if offers.tools => self.call_tool(request, registry)?,
            "tools/list" if offers.tools => self.list(request, registry, ListKind::Tools)?,
            "resources/read" if offers.resources => self.read_resource(request, registry)?,
            "resources/list" if offers.resources => self.list(request, registry, ListKind::Resources)?,
            "resources/templates/list" if offers.resources => {
                self.list(request, registry, ListKind::Templates)?
            }
            "resources/directory/read" if offers.skills => self.read_directory(request, registry)?.into(),
            "skills/list" if offers.skills => self.list(request, registry, ListKind::Skills)?,
            "skills/get" if offers.skills => self.get_skill(request, registry)?.into(),
            "prompts/get" if offers.prompts => self.get_prompt(request, registry)?,
            "prompts/list" if offers.prompts => self.list(request, registry, ListKind::Prompts)?,
            "tasks/get" if offers.tasks && modern => self.get_task(request)?,
            "tasks/update" if offers.tasks && modern => self.update_task(request)?,
            "tasks/cancel" if offers.tasks && modern => self.cancel_task(request)?,
            "resources/subscribe" if subscribes() => self.subscribe(request, registry)?.into(),
            "resources/unsubscribe" if subscribes() => self.unsubscribe(request)?.into(),
            "completion/complete" if offers.completions => self.complete(request, registry)?,
            "server/discover" if modern => self.discover(request).into(),
            "logging/setLevel" if !modern && self.settings().logging => self.set_level(request)?.into(),
            "ping" if !modern => Reply::from(response::ResultBody::Empty).into(),
            method => Reply::unknown_method(method).into(),
        })
    }

    /// The version that a request's `_meta` names; absent before 2026-07-28.
    pub(crate) fn version_in<'a>(meta: &Meta<'a>) -> Result<Option<Cow<'a, str>>, ProtocolError> {
        let Some(raw) = meta.version else { return Ok(None) };
        decode_string(raw)
            .map(Some)
            .ok_or_else(|| ProtocolError::invalid_params("the protocol version in `_meta` is not a string"))
    }
}

/// `-32022`, listing what is served.
pub(crate) fn unsupported_version(requested: &str) -> ProtocolError {
    ProtocolError::new(protocol::UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version")
        .with_data(serde_json::json!({ "supported": [Revision::LATEST.as_str()], "requested": requested }))
}

/// Every request of 2026-07-28 says what its client can do.
fn check_meta(meta: &Meta<'_>) -> Result<(), Reply> {
    let missing = |key: &str| {
        let text = format!("`_meta` lacks `{key}`\nevery request of 2026-07-28 carries its own metadata");
        Err(Reply::bad_request(ProtocolError::invalid_params(text)))
    };
    if meta.version.is_none() {
        return missing(protocol::META_PROTOCOL_VERSION);
    }
    match meta.capabilities {
        None => missing(protocol::META_CLIENT_CAPABILITIES),
        Some(raw) if raw.get().starts_with('{') => Ok(()),
        Some(_) => {
            let text = format!("`{}` in `_meta` is not an object", protocol::META_CLIENT_CAPABILITIES);
            Err(Reply::bad_request(ProtocolError::invalid_params(text)))
        }
    }
}
