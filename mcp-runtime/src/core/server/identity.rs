//! The server's description of itself, written once for each revision.

use crate::core::{
    config::ServerInfo,
    content::ContentWriter,
    jsonrpc::Object,
    protocol::{META_SERVER_INFO, Revision},
};

/// `serverInfo` on the wire, and `instructions`.
#[derive(Clone)]
pub(crate) struct Identity {
    info: ServerInfo,
    /// `serverInfo` on the wire for each revision.
    by_revision: Vec<String>,
    /// `serverInfo` with nothing but name and version.
    pub(crate) brief: String,
    /// The `_meta` of results in 2026-07-28, which only identifies the server.
    pub(crate) meta: String,
}

impl Identity {
    pub(super) fn new(info: ServerInfo) -> Self {
        let brief = write_info(&info, None);
        Self {
            by_revision: Revision::ALL.iter().map(|revision| write_info(&info, Some(*revision))).collect(),
            meta: format!("{{\"{META_SERVER_INFO}\":{brief}}}"),
            brief,
            info,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.info.name
    }

    pub(super) fn version(&self) -> &str {
        &self.info.version
    }

    pub(super) fn instructions(&self) -> Option<&str> {
        self.info.instructions.as_deref()
    }

    pub(crate) fn info(&self, revision: Revision) -> &str {
        self.by_revision.get(revision.index()).map_or("{}", String::as_str)
    }
}

/// `serverInfo` as far as the revision has it; name and version only without a revision.
fn write_info(info: &ServerInfo, revision: Option<Revision>) -> String {
    let mut out = Vec::new();
    let mut object = Object::new(&mut out);
    object.str("name", &info.name);
    if revision.is_some_and(|revision| revision >= Revision::V2025_06_18) {
        object.opt_str("title", info.title.as_deref());
    }
    object.str("version", &info.version);
    if let Some(revision) = revision.filter(|revision| *revision >= Revision::V2025_11_25) {
        object.opt_str("description", info.description.as_deref());
        ContentWriter(revision).write_icons(&mut object, &info.icons);
        object.opt_str("websiteUrl", info.website.as_deref());
    }
    object.end();
    String::from_utf8_lossy(&out).into_owned()
}
