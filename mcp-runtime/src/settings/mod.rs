//! Settings: a struct with `#[mcp_config]` is read from flags, variables, a file and defaults. Every mistake is reported at
//! once, with its source; no value that is secret is in any text.
//!
//! Over HTTP a server whose settings are missing or wrong does not start. Everywhere else it does, since a client would show
//! no more than that it did not: functions that take the settings, or state made of them, answer what is missing.

mod configure;
mod descriptor;
mod duration;
mod reading;
mod secret;
mod setting;
mod sources;
#[cfg(feature = "install")]
mod to_install;

use std::{ffi::OsString, sync::Arc};

pub use descriptor::{
    AnyMember, Config, ConfigDescriptor, MemberOf, SettingField, SettingMembers, config_id, config_schema,
    deserialize_config, flat_setting, next_slot, setting,
};
pub use secret::Secret;

use configure::ConfigureFn;
pub(crate) use reading::ReadSettings;
use reading::{ConfigSchema, ConfigType, check_declarations};
use sources::{Flags, Surroundings};

use crate::core::{
    build_error::BuildError,
    extensions::Extensions,
    server::{Error, Result, Server, ServerBuilder},
};

impl ServerBuilder {
    /// Reads settings, a struct with `#[mcp_config]`, for functions that take them as `&S`: from flags (with
    /// [`run`](Self::run)), environment variables, a TOML file and defaults, in this order. See
    /// [the guide](crate::guide::settings).
    ///
    /// If some are missing or wrong, the server does not start over HTTP. Over stdio it starts, and functions that take
    /// them answer what is missing and how to set it.
    ///
    /// A value of the same type that is registered with [`state`](Self::state) is used instead, as tests do.
    ///
    /// ```no_run
    /// use mcp_runtime::{config::Secret, prelude::*};
    ///
    /// #[mcp_config]
    /// struct Settings {
    ///     /// Key of the exchange-rate service
    ///     rates_key: Secret<String>,
    ///     #[mcp(default = 5, range(1..=60))]
    ///     timeout: u64,
    /// }
    ///
    /// fn main() -> mcp_runtime::Result<()> {
    ///     mcp_runtime::server!().config::<Settings>().discover().run()
    /// }
    /// ```
    #[doc(alias("settings", "options", "env", "flags"))]
    pub fn config<S: Config>(mut self) -> Self {
        self.settings.get_or_insert_default().configs.push(ConfigType::of::<S>());
        self
    }
}

/// The settings of a builder, which `.config` has collected.
#[derive(Default)]
pub(crate) struct PendingSettings {
    configs: Vec<ConfigType>,
    flags: Flags,
    functions: Vec<ConfigureFn>,
    read: Option<ReadSettings>,
}

impl PendingSettings {
    fn schemas(&self, server: &str) -> Vec<ConfigSchema<'_>> {
        self.configs.iter().map(|config| ConfigSchema::new(config, server)).collect()
    }

    /// Takes the flags of settings from the program's arguments; returns the others. `server` is the server's name.
    pub(crate) fn take_flags(&mut self, server: &str, arguments: Vec<OsString>) -> Vec<OsString> {
        let settings: Vec<_> = self.schemas(server).into_iter().flat_map(|schema| schema.settings).collect();
        let (flags, others) = Flags::take(&settings, arguments);
        self.flags = flags;
        others
    }

    /// The settings, if they were read.
    pub(crate) fn as_read(&self) -> Option<&ReadSettings> {
        self.read.as_ref()
    }

    /// The settings in this state, and why some are not there.
    pub(crate) fn loaded(&self, state: &Extensions) -> Extensions {
        state.only(self.configs.iter().map(|config| config.key))
    }

    /// The settings, if they were read.
    pub(crate) fn into_read(self) -> Option<ReadSettings> {
        self.read
    }

    /// Reads the settings, and adds them to the state: in place of those that are missing or wrong, the reason.
    fn read(&self, server: &str, state: &mut Extensions, errors: &mut Vec<BuildError>) -> ReadSettings {
        let schemas = self.schemas(server);
        errors.extend(check_declarations(&schemas).into_iter().map(BuildError::new));
        let surroundings = Surroundings::of_process();
        let is_read = |config: &ConfigType| !(config.is_given)(state);
        let (mut reading, read) = ReadSettings::new(server, &schemas, is_read, &self.flags, &surroundings);
        let mut problems = Vec::new();
        for (config, read) in self.configs.iter().zip(read) {
            if (config.is_given)(state) {
                continue;
            }
            let own = read.as_ref().err().cloned().unwrap_or_default();
            match (reading.report(&own), read) {
                (None, Ok(value)) => (config.insert)(value, state),
                (report, _) => {
                    let text = report.unwrap_or_else(|| Arc::from("the settings could not be read"));
                    state.reserve(config.key);
                    state.fill(config.key, Err(text));
                }
            }
            problems.extend(own);
        }
        reading.problems = reading.report(&problems);
        reading
    }

    /// Reports those of a builder that is mounted as `prefix`, which are not read.
    pub(crate) fn mount(&self, prefix: &str, state: &Extensions, errors: &mut Vec<BuildError>) {
        for config in self.configs.iter().filter(|config| !(config.is_given)(state)) {
            let name = config.short_name();
            errors.push(BuildError::new(format!(
                "the server that is mounted as `{prefix}` has `.config::<{name}>()`, which only the outer one reads\n\
                 load them before: `.state({name}::load()?)`"
            )));
        }
        if !self.functions.is_empty() {
            errors.push(BuildError::new(format!(
                "the server that is mounted as `{prefix}` has `.configure(..)`, which only the outer one applies\n\
                 mount it there: `.configure(|server, settings: &Settings| Ok(server.mount(..)))`"
            )));
        }
    }
}

impl Server {
    /// Checks whether everything that functions need is there.
    ///
    /// # Errors
    /// Settings are missing or wrong.
    pub(crate) fn check_settings(&self) -> Result<()> {
        match self.server_settings().and_then(ReadSettings::problems) {
            Some(problems) => Err(Error::settings(problems)),
            None => Ok(()),
        }
    }

    /// Logs what is missing or wrong: the server is served nevertheless, and functions that need it say so.
    pub(crate) fn log_settings(&self) {
        if let Some(problems) = self.server_settings().and_then(ReadSettings::problems) {
            tracing::error!("{problems}");
        }
    }
}

/// Reads settings without a server.
///
/// # Errors
/// Everything that is missing or wrong.
pub fn load_config<S: Config>() -> Result<S> {
    let mut settings = PendingSettings { configs: vec![ConfigType::of::<S>()], ..PendingSettings::default() };
    let name = S::DESCRIPTOR.name.unwrap_or(S::DESCRIPTOR.package);
    let _commands = settings.take_flags(name, std::env::args_os().skip(1).collect());
    let (mut state, mut errors) = (Extensions::default(), Vec::new());
    let reading = settings.read(name, &mut state, &mut errors);
    if !errors.is_empty() {
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        return Err(Error::build(texts.join("\n")));
    }
    state.take().ok_or_else(|| Error::settings(reading.problems().unwrap_or_default()))
}
