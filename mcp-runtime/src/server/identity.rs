//! What a server says of itself: its name and version, and what clients show beside them. Set on the builder, told by
//! dispatch in `initialize` and `server/discover`.

use super::ServerBuilder;
use crate::{
    content::{ContentWriter, Icon},
    item::BuildError,
    jsonrpc::Object,
    protocol::{META_SERVER_INFO, Revision},
};

/// The wire's `Implementation`, and the instructions.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) version: String,
    title: Option<String>,
    description: Option<String>,
    website: Option<String>,
    icons: Vec<Icon>,
    pub(crate) instructions: Option<String>,
    /// The wire's `serverInfo` for each revision.
    info: Vec<String>,
    /// The same with nothing but name and version.
    pub(crate) brief: String,
    /// The `_meta` of results in 2026-07-28.
    pub(crate) meta: String,
}

impl Identity {
    pub(super) fn new(name: String, version: String) -> Self {
        Self {
            name,
            version,
            title: None,
            description: None,
            website: None,
            icons: Vec::new(),
            instructions: None,
            info: Vec::new(),
            brief: String::new(),
            meta: String::new(),
        }
    }

    /// An icon that clients would reject.
    pub(super) fn problem(&self) -> Option<BuildError> {
        let bad = self.icons.iter().find_map(|icon| icon.validate().err())?;
        Some(BuildError::new(format!("the server's {bad}")))
    }

    pub(super) fn render(&mut self) {
        self.info = Revision::ALL.iter().map(|revision| self.json(Some(*revision))).collect();
        // on every result, so only what identifies the server
        self.brief = self.json(None);
        self.meta = format!("{{\"{META_SERVER_INFO}\":{}}}", self.brief);
    }

    /// Without a revision, name and version.
    fn json(&self, revision: Option<Revision>) -> String {
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        let knows = |since| revision.is_some_and(|revision| revision >= since);
        object.str("name", &self.name);
        if knows(Revision::V2025_06_18) {
            object.opt_str("title", self.title.as_deref());
        }
        object.str("version", &self.version);
        if let Some(revision) = revision.filter(|_| knows(Revision::V2025_11_25)) {
            object.opt_str("description", self.description.as_deref());
            ContentWriter(revision).write_icons(&mut object, &self.icons);
            object.opt_str("websiteUrl", self.website.as_deref());
        }
        object.end();
        String::from_utf8_lossy(&out).into_owned()
    }

    pub(crate) fn info(&self, revision: Revision) -> &str {
        self.info.get(revision.index()).map_or("{}", String::as_str)
    }
}

/// What the server says of itself: the wire's `serverInfo`, and `instructions`.
impl ServerBuilder {
    /// Sets the name: the wire's `serverInfo.name`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.identity.name = name.into();
        self
    }

    /// Sets the version: the wire's `serverInfo.version`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.identity.version = version.into();
        self
    }

    /// Sets the name for people: the wire's `serverInfo.title`; clients before 2025-06-18 do not see it.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.identity.title = Some(title.into());
        self
    }

    /// Sets what the server is for, in words for people: the wire's `serverInfo.description`; clients before 2025-11-25
    /// do not see it.
    ///
    /// What models should know is said with [`instructions`](Self::instructions).
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.identity.description = Some(text.into());
        self
    }

    /// Sets the wire's `serverInfo.websiteUrl`; clients before 2025-11-25 do not see it.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.identity.website = Some(url.into());
        self
    }

    /// Adds an icon, a URL or an [`Icon`], to the wire's `serverInfo.icons`; clients before 2025-11-25 do not see it.
    ///
    /// One that clients would reject is an error from [`build`](Self::build).
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.identity.icons.push(icon.into());
        self
    }

    /// Sets what models are told about the server's use: the wire's `instructions`.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.identity.instructions = Some(text.into());
        self
    }
}
