//! What a server says of itself: `server/discover` in the stateless era, `initialize` before it.

use super::{Handshake, Request, Status, reply::enveloped, run::Begun};
use crate::{
    context::ClientData,
    jsonrpc::{Message, Object, ProtocolError, array, error_reply, string, text_of},
    protocol::{self, META_SERVER_INFO, Revision},
    server::Server,
};

impl Server {
    /// `told`: whether this client can be told of changes.
    fn write_capabilities(&self, object: &mut Object<'_>, revision: Revision, told: bool) {
        let offers = self.offers(revision);
        object.object("capabilities", |c| {
            if offers.completions && revision >= Revision::V2025_03_26 {
                c.raw("completions", "{}");
            }
            if self.settings().logging {
                c.raw("logging", "{}");
            }
            for (key, offered, changes, subscribe) in [
                ("prompts", offers.prompts, offers.changes.prompts, false),
                ("resources", offers.resources, offers.changes.resources, offers.changes.resources),
                ("tools", offers.tools, offers.changes.tools, false),
            ] {
                if offered {
                    c.object(key, |c| {
                        if told && changes {
                            c.raw("listChanged", "true");
                        }
                        if told && subscribe {
                            c.raw("subscribe", "true");
                        }
                    });
                }
            }
            let tasks = offers.tasks && revision.is_modern();
            let extensions = [
                (protocol::SKILLS_EXTENSION, protocol::SKILLS_SETTINGS, offers.skills),
                (protocol::TASKS_EXTENSION, "{}", tasks),
                (protocol::UI_EXTENSION, protocol::UI_SETTINGS, offers.pages),
            ];
            if extensions.iter().any(|(_, _, offered)| *offered) {
                c.object("extensions", |e| {
                    for (key, settings, _) in extensions.iter().filter(|(_, _, offered)| *offered) {
                        e.raw(key, settings);
                    }
                });
            }
        });
    }

    /// The members that cacheable results of the stateless era have.
    pub(crate) fn cache_hints(&self, object: &mut Object<'_>) {
        let ttl = self.options().list_ttl;
        let shared = !ttl.is_zero() && !self.authenticates();
        object
            .value("ttlMs", &u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
            .str("cacheScope", if shared { "public" } else { "private" });
    }

    pub(super) fn discover(&self, request: Request<'_>, out: &mut Vec<u8>) -> Begun {
        enveloped(out, request.id, |object| {
            object.raw("resultType", "\"complete\"");
            array(object.key("supportedVersions"), [Revision::LATEST], |out, r| string(out, r.as_str()));
            self.write_capabilities(object, request.revision, true);
            object.opt_str("instructions", self.instructions());
            self.cache_hints(object);
            // other results only say who the server is; here clients look for what to show of it
            object.object("_meta", |meta| {
                meta.raw(META_SERVER_INFO, self.info_json(request.revision));
            });
        });
        Begun::Done(Status::Ok)
    }

    /// Serves `initialize`; `None` when it was refused. `told`: whether this client can be told of changes.
    pub(crate) fn initialize(
        &self,
        message: &Message<'_>,
        told: bool,
        out: &mut Vec<u8>,
    ) -> Option<Handshake> {
        let id = message.id()?;
        let params = message.params();
        let Some(asked) = params.protocol_version.and_then(text_of) else {
            let error = ProtocolError::invalid_params("`protocolVersion` is not a string");
            error_reply(out, Some(id), &error);
            return None;
        };
        let revision =
            Revision::from_wire(&asked).filter(|asked| !asked.is_modern()).unwrap_or(Revision::LATEST_LEGACY);
        enveloped(out, id, |object| {
            object.str("protocolVersion", revision.as_str());
            self.write_capabilities(object, revision, told);
            object.raw("serverInfo", self.info_json(revision));
            object.opt_str("instructions", self.instructions());
        });
        let owned = |raw: Option<&serde_json::value::RawValue>| raw.map(|raw| raw.get().into());
        let client = ClientData { info: owned(params.client_info), capabilities: owned(params.capabilities) };
        Some(Handshake { revision, client })
    }
}
