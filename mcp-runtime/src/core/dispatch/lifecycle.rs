//! The server's declarations about itself: `server/discover` since 2026-07-28, `initialize` before.

use super::{
    Request,
    response::{CacheHints, Reply, ResultBody},
};
use crate::core::{
    admission::Owner,
    connection::{ClientConnection, ClientData},
    jsonrpc::{Object, Params, ProtocolError, decode_string, write_array, write_string},
    protocol::{META_SERVER_INFO, Revision},
    server::{Declared, Server},
};

/// The result of a successful `initialize`.
#[derive(Clone)]
pub(crate) struct Handshake {
    pub(crate) revision: Revision,
    pub(crate) client: ClientData,
}

impl Server {
    /// `can_notify`: whether the transport can send this client notifications of changes.
    fn write_capabilities(&self, object: &mut Object<'_>, revision: Revision, can_notify: bool) {
        let registry = self.registry();
        let mut declared = Declared::new(revision, can_notify && self.has_handle(), self.publishes());
        if self.settings().logging {
            declared.member("logging", "{}");
        }
        if self.offers_tools(&registry) {
            declared.list("tools");
        }
        registry.capabilities.iter().for_each(|capability| capability.declare(&mut declared));
        // older revisions do not have the member
        if revision.is_modern() {
            for (name, settings) in &self.options().extensions {
                declared.extension(name.clone(), settings.clone());
            }
        }
        declared.write(object);
    }

    /// How long lists and skills may be cached, and by whom.
    pub(crate) fn cache_hints(&self) -> CacheHints {
        if self.awaits_items() {
            return CacheHints::NONE;
        }
        let ttl = self.options().lists.ttl;
        CacheHints { ttl, public: !ttl.is_zero() && !self.options().tells_callers_apart() }
    }

    pub(super) fn discover(&self, request: Request<'_>) -> Reply {
        let mut out = Vec::with_capacity(512);
        let mut object = Object::new(&mut out);
        write_array(object.key("supportedVersions"), [Revision::LATEST], |out, revision| {
            write_string(out, revision.as_str());
        });
        self.write_capabilities(&mut object, request.revision, true);
        object.opt_str("instructions", self.instructions());
        self.cache_hints().write(&mut object);
        // other results carry the short form of the server's info; clients display this one
        object.object("_meta", |meta| {
            meta.raw(META_SERVER_INFO, self.identity().info(request.revision));
        });
        ResultBody::Lifecycle(out.split_off(1)).into()
    }

    /// Answers `initialize`; the handshake is `None` if the request is refused or invalid. `can_notify`: whether the
    /// transport can send this client notifications of changes; `rate_owner`: from whose rate the request is taken, if
    /// it has not been.
    pub(crate) fn initialize(
        &self,
        params: &Params<'_>,
        can_notify: bool,
        rate_owner: Option<Owner>,
        connection: Option<&dyn ClientConnection>,
    ) -> (Reply, Option<Handshake>) {
        self.observe_initialize(connection, || {
            match rate_owner.map_or(Ok(()), |owner| self.take_rate_at_once(|| owner)) {
                Ok(()) => self.negotiate(params, can_notify),
                Err(reached) => (Reply::limited(&reached), None),
            }
        })
    }

    fn negotiate(&self, params: &Params<'_>, can_notify: bool) -> (Reply, Option<Handshake>) {
        let Some(requested) = params.get("protocolVersion").and_then(decode_string) else {
            let error = ProtocolError::invalid_params("`protocolVersion` is not a string");
            return (error.into(), None);
        };
        let revision = requested.parse().ok().filter(|revision: &Revision| !revision.is_modern());
        let revision = revision.unwrap_or(Revision::LATEST_LEGACY);
        let mut out = Vec::with_capacity(512);
        let mut object = Object::new(&mut out);
        object.str("protocolVersion", revision.as_str());
        self.write_capabilities(&mut object, revision, can_notify);
        object.raw("serverInfo", self.identity().info(revision));
        object.opt_str("instructions", self.instructions());
        let owned = |raw: Option<&serde_json::value::RawValue>| raw.map(|raw| raw.get().into());
        let client = ClientData {
            info: owned(params.get("clientInfo")),
            capabilities: owned(params.get("capabilities")),
        };
        let reply = ResultBody::Lifecycle(out.split_off(1)).into();
        (reply, Some(Handshake { revision, client }))
    }
}
