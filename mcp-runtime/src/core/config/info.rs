//! The server's description of itself: `serverInfo` and `instructions` on the wire.

use crate::core::content::Icon;

/// The server's description of itself: `serverInfo` and `instructions` on the wire.
#[derive(Debug, Clone)]
#[must_use]
pub struct ServerInfo {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) website: Option<String>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) instructions: Option<String>,
    #[cfg(feature = "server-card")]
    pub(crate) card: super::server_card::CardInfo,
}

impl ServerInfo {
    pub(crate) fn new(name: String, version: String) -> Self {
        Self {
            name,
            version,
            title: None,
            description: None,
            website: None,
            icons: Vec::new(),
            instructions: None,
            #[cfg(feature = "server-card")]
            card: super::server_card::CardInfo::default(),
        }
    }

    /// Sets `name` on the wire; by default the name of the crate that invokes `server!()`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets `version` on the wire; by default the version of the crate that invokes `server!()`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets the name that users see: `title` on the wire. Clients before 2025-06-18 do not get it.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets `description` on the wire, for users. Clients before 2025-11-25 do not get it.
    ///
    /// Models read [`instructions`](Self::instructions).
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Sets `websiteUrl` on the wire. Clients before 2025-11-25 do not get it.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.website = Some(url.into());
        self
    }

    /// Adds an icon, a URL or an [`Icon`], to `icons` on the wire. Clients before 2025-11-25 do not get them.
    ///
    /// [`build`](crate::ServerBuilder::build) refuses icons that clients would reject.
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.icons.push(icon.into());
        self
    }

    /// Sets how models should use the server: `instructions` on the wire.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }
}
