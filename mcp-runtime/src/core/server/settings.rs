//! The interface between settings and a builder or a server. The folder `settings` implements it, and is in a program only
//! if that has settings: only the builder's methods there make one of these.

use std::any::Any;
#[cfg(feature = "cli")]
use std::ffi::OsString;

use serde_json::Value;

#[cfg(any(feature = "cli", feature = "http", feature = "stdio"))]
use super::Server;
#[cfg(any(feature = "cli", feature = "http"))]
use super::{Error, Result};
use crate::core::{extensions::Extensions, item::BuildError};

/// The settings of a builder.
pub(crate) trait PendingSettings: Any + Send {
    /// Takes the flags of settings from the program's arguments; returns the others. `server` is the server's name.
    #[cfg(feature = "cli")]
    fn take_flags(&mut self, server: &str, arguments: Vec<OsString>) -> Vec<OsString>;

    /// Reads the settings, and adds them to the state: in place of those that are missing or wrong, the reason.
    fn read(
        self: Box<Self>,
        server: &str,
        state: &mut Extensions,
        errors: &mut Vec<BuildError>,
    ) -> Box<dyn ServerSettings>;

    /// Reports those of a builder that is mounted as `prefix`, which are not read.
    fn mount(self: Box<Self>, prefix: &str, state: &Extensions, errors: &mut Vec<BuildError>);
}

/// The settings of a server.
#[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line prints them"))]
pub(crate) trait ServerSettings: Send + Sync {
    /// The values that are missing or invalid, and how to set them.
    fn problems(&self) -> Option<&str>;

    /// Whether the program's arguments have flags that cannot be read.
    fn has_wrong_flags(&self) -> bool;

    /// Whether there are none: the program may have passed the values with `.state(..)`.
    fn is_empty(&self) -> bool;

    /// Whether a flag, without `--`, is one of them.
    fn has_flag(&self, name: &str) -> bool;

    /// Their part of `--help`.
    fn help(&self) -> String;

    /// Their values and where these come from, without those that are secret.
    fn table(&self) -> String;

    /// Their schema, with flags and variables.
    fn schema(&self) -> Value;

    /// The values that are invalid, and not only missing; `None` without any.
    #[cfg(feature = "install")]
    fn wrong(&self) -> Option<std::sync::Arc<str>>;

    /// The settings that a client must set when it starts the server, to reproduce the current values.
    #[cfg(feature = "install")]
    fn to_install(&self) -> Vec<super::SettingToInstall>;
}

#[cfg(any(feature = "cli", feature = "http", feature = "stdio"))]
impl Server {
    pub(crate) fn server_settings(&self) -> Option<&dyn ServerSettings> {
        self.0.server_settings.as_deref()
    }

    /// Checks whether everything that functions need is there.
    ///
    /// # Errors
    /// Settings are missing or wrong.
    #[cfg(any(feature = "cli", feature = "http"))]
    pub(crate) fn check_settings(&self) -> Result<()> {
        match self.server_settings().and_then(ServerSettings::problems) {
            Some(problems) => Err(Error::settings(problems)),
            None => Ok(()),
        }
    }

    /// Logs what is missing or wrong: the server is served nevertheless, and functions that need it say so.
    #[cfg(feature = "stdio")]
    pub(crate) fn log_settings(&self) {
        if let Some(problems) = self.server_settings().and_then(ServerSettings::problems) {
            tracing::error!("{problems}");
        }
    }
}
