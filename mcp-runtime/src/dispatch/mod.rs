//! From one request to one reply, in any era, for any transport: routes methods, runs user functions in place or as
//! futures, and writes what they gave. Transports call [`Server::begin`].

mod complete;
mod cursor;
mod get;
mod hello;
mod listen;
mod lists;
mod logging;
mod read;
mod reply;
mod round;
mod run;
mod skill;
mod subscribe;
mod task;
mod tool;

pub(crate) use listen::Listening;
pub(crate) use reply::Status;
pub(crate) use run::{Begun, Running};

use crate::{
    context::{Asks, ClientData, Context, Inner, Peer, Round, Slots, Way},
    jsonrpc::{Message, Meta, Params, ProtocolError, RequestId, error_reply, text_of},
    protocol::{self, Revision},
    registry::ListKind,
    server::Server,
};

use std::{borrow::Cow, sync::Arc};

/// What a handshake settled.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    pub(crate) revision: Revision,
    pub(crate) client: ClientData,
}

/// A request on its way through dispatch.
#[derive(Clone, Copy)]
struct Request<'a> {
    /// Raw JSON.
    id: &'a str,
    params: &'a Params<'a>,
    revision: Revision,
    peer: &'a Peer,
}

/// Whether a function may ask its client.
enum MayAsk {
    /// This is what came back from earlier rounds.
    Yes(Option<Arc<Round>>),
    No,
}

/// An error reply, and the HTTP status that goes with it.
struct Refusal {
    error: ProtocolError,
    status: Status,
}

impl From<ProtocolError> for Refusal {
    fn from(error: ProtocolError) -> Self {
        Self { error, status: Status::Ok }
    }
}

impl Refusal {
    fn unknown_method(method: &str) -> Self {
        let error = ProtocolError::new(protocol::METHOD_NOT_FOUND, format!("unknown method `{method}`"));
        Self { error, status: Status::NotFound }
    }

    fn unavailable(text: &'static str) -> Self {
        Self { error: ProtocolError::internal(text), status: Status::Unavailable }
    }

    fn bad_request(error: ProtocolError) -> Self {
        Self { error, status: Status::BadRequest }
    }
}

impl Server {
    /// Serves one request; a message without id gets nothing.
    pub(crate) fn begin(
        &self,
        message: &Message<'_>,
        revision: Revision,
        peer: &Peer,
        out: &mut Vec<u8>,
    ) -> Begun {
        let Some(id) = message.id() else { return Begun::Done(Status::Ok) };
        let method = message.method().unwrap_or_default();
        let start = out.len();
        let request = Request { id, params: message.params(), revision, peer };
        match self.route(request, method, out) {
            Ok(begun) => begun,
            Err(refusal) => {
                out.truncate(start);
                error_reply(out, Some(id), &refusal.error);
                // only the stateless era maps errors to HTTP statuses
                Begun::Done(if revision.is_modern() { refusal.status } else { Status::Ok })
            }
        }
    }

    fn route(&self, request: Request<'_>, method: &str, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let Request { params: Params { meta, .. }, revision, .. } = request;
        if revision.is_modern() {
            check_meta(meta)?;
        }
        if meta.progress_token.is_some_and(|token| RequestId::from_raw(token).is_none()) {
            return Err(
                ProtocolError::invalid_params("`progressToken` is neither a string nor an integer").into()
            );
        }
        request.log_level()?;
        let offers = self.offers(revision);
        let subscribes = !revision.is_modern() && offers.changes.resources && request.has_session();
        match method {
            "tools/call" if offers.tools => self.call_tool(request, out),
            "tools/list" if offers.tools => self.list(request, ListKind::Tools, out),
            "resources/read" if offers.resources => self.read_resource(request, out),
            "resources/list" if offers.resources => self.list(request, ListKind::Resources, out),
            "resources/templates/list" if offers.resources => self.list(request, ListKind::Templates, out),
            "resources/directory/read" if offers.skills => self.read_directory(request, out),
            "skills/list" if offers.skills => self.list(request, ListKind::Skills, out),
            "skills/get" if offers.skills => self.get_skill(request, out),
            "prompts/get" if offers.prompts => self.get_prompt(request, out),
            "prompts/list" if offers.prompts => self.list(request, ListKind::Prompts, out),
            "tasks/get" if offers.tasks && revision.is_modern() => self.get_task(request),
            "tasks/update" if offers.tasks && revision.is_modern() => self.update_task(request),
            "tasks/cancel" if offers.tasks && revision.is_modern() => self.cancel_task(request),
            "resources/subscribe" if subscribes => self.subscribe(request, out),
            "resources/unsubscribe" if subscribes => self.unsubscribe(request, out),
            "subscriptions/listen" if revision.is_modern() => self.listen(request),
            "completion/complete" if offers.completions => self.complete(request, out),
            "server/discover" if revision.is_modern() => Ok(self.discover(request, out)),
            "logging/setLevel" if !revision.is_modern() && self.settings().logging => {
                self.set_level(request, out)
            }
            "ping" if !revision.is_modern() => {
                reply::result(out, request, self, None, |_| {});
                Ok(Begun::Done(Status::Ok))
            }
            _ => Err(Refusal::unknown_method(method)),
        }
    }

    /// The version that a request's `_meta` names; none in the handshake era.
    pub(crate) fn version_in<'a>(meta: &Meta<'a>) -> Result<Option<Cow<'a, str>>, ProtocolError> {
        let Some(raw) = meta.version else { return Ok(None) };
        text_of(raw)
            .map(Some)
            .ok_or_else(|| ProtocolError::invalid_params("the protocol version in `_meta` is not a string"))
    }

    /// `-32022`, listing what is served.
    #[allow(clippy::unused_self)] // what is served may become a server's choice
    pub(crate) fn unsupported_version(&self, requested: &str) -> ProtocolError {
        ProtocolError::new(protocol::UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version").with_data(
            serde_json::json!({ "supported": [Revision::LATEST.as_str()], "requested": requested }),
        )
    }
}

/// Every request of the stateless era says what its client can do.
fn check_meta(meta: &Meta<'_>) -> Result<(), Refusal> {
    let missing = |key: &str| {
        let text = format!("`_meta` lacks `{key}`\nevery request of 2026-07-28 carries its own metadata");
        Err(Refusal::bad_request(ProtocolError::invalid_params(text)))
    };
    if meta.version.is_none() {
        return missing(protocol::META_PROTOCOL_VERSION);
    }
    match meta.capabilities {
        None => missing(protocol::META_CLIENT_CAPABILITIES),
        Some(raw) if raw.get().starts_with('{') => Ok(()),
        Some(_) => {
            let text = format!("`{}` in `_meta` is not an object", protocol::META_CLIENT_CAPABILITIES);
            Err(Refusal::bad_request(ProtocolError::invalid_params(text)))
        }
    }
}

impl Request<'_> {
    fn frame(&self) -> reply::Frame<'_> {
        reply::Frame { id: self.id, revision: self.revision }
    }

    /// The context of this request, for an item with that state.
    fn context(&self, server: &Server, state: &Arc<Slots>, may_ask: MayAsk) -> Context {
        let way = match may_ask {
            MayAsk::Yes(round) if self.revision.is_modern() => Way::Rounds(round),
            MayAsk::Yes(_) => match self.peer.link.as_ref().and_then(|link| link.never()) {
                Some(why) => Way::Never(why),
                None => Way::Requests,
            },
            MayAsk::No => Way::Never("only tools, resources and prompts may ask"),
        };
        Context::new(Inner {
            revision: self.revision,
            state: state.clone(),
            peer: self.peer.clone(),
            client: self.client(),
            meta: self.params.meta.to_json(),
            progress: self.params.meta.progress_token.map(|token| crate::context::Channel::new(token.get())),
            // an unknown one was refused before
            log_level: self.log_level().unwrap_or_default(),
            cancel: crate::context::Cancel::default(),
            asks: Asks::new(way),
            settings: server.settings().clone(),
        })
    }

    /// What the client says of itself.
    fn client(&self) -> ClientData {
        if !self.revision.is_modern() {
            return self.peer.client.clone();
        }
        let owned = |raw: Option<&serde_json::value::RawValue>| raw.map(|raw| Arc::from(raw.get()));
        let meta = &self.params.meta;
        ClientData { info: owned(meta.client_info), capabilities: owned(meta.capabilities) }
    }

    /// Whether something is kept between this client's requests.
    fn has_session(&self) -> bool {
        self.peer.link.as_deref().is_some_and(|link| link.session().is_some())
    }

    fn viewer(&self) -> crate::context::Viewer<'_> {
        self.peer.viewer()
    }
}
