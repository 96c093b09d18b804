//! Settings: a struct with `#[mcp_config]` is read from flags, variables, a file and defaults. Every mistake is reported at
//! once, with its source; no value that is secret is in any text. A program contains this only if it names it.
//!
//! Over HTTP a server whose settings are missing or wrong does not start. Everywhere else it does, since a client would show
//! no more than that it did not: functions that take the settings, or state made of them, answer what is missing.

mod descriptor;
mod duration;
mod reading;
mod secret;
mod secret_texts;
mod setting;
mod sources;

#[cfg(feature = "cli")]
use std::ffi::OsString;
use std::{
    any::{Any, type_name},
    panic::Location as Caller,
    sync::Arc,
};

pub use descriptor::{
    AnyMember, Config, ConfigDescriptor, DurationText, MemberOf, SettingField, SettingMembers, config_id,
    config_schema, deserialize_config, flat_setting, next_slot, setting,
};
pub use secret::Secret;

use reading::{ConfigSchema, ConfigType, ReadConfig, Reading, check_declarations, short_name};
use secret_texts::SecretTexts;
use sources::{Flags, Surroundings};

use crate::core::{
    arguments::StateValue,
    error::BoxError,
    extensions::{Extensions, Unmade},
    item::BuildError,
    server::{Error, PendingSettings, Result, ServerBuilder, ServerSettings},
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
        self.pending().configs.push(ConfigType::of::<S>());
        self
    }

    /// Registers [state](Self::state) that is made of other state when the server is built: of
    /// [settings](Self::config), or of what was registered with `state` or `state_from` before.
    ///
    /// It runs once, if that value is valid. If it is not, or if this fails, the server does not start over HTTP; over
    /// stdio it starts, and functions that take `&T` answer why.
    ///
    /// ```no_run
    /// # use mcp_runtime::prelude::*;
    /// # use std::{io, path::{Path, PathBuf}};
    /// # #[mcp_config]
    /// # struct Settings { database: PathBuf }
    /// # struct Ledger;
    /// # impl Ledger { fn open(_: &Path) -> io::Result<Self> { Ok(Self) } }
    /// let server = mcp_runtime::server!()
    ///     .config::<Settings>()
    ///     .state_from(|settings: &Settings| Ledger::open(&settings.database))
    ///     .discover();
    /// ```
    #[track_caller]
    pub fn state_from<S: StateValue, T: StateValue, E: Into<BoxError>>(
        mut self,
        make: impl FnOnce(&S) -> Result<T, E> + Send + 'static,
    ) -> Self {
        let caller = Caller::caller();
        let make = move |state: &mut Extensions, is_skipped: bool| {
            let (source, own) = (type_name::<S>(), type_name::<T>());
            if state.provides_like::<T>() {
                return Made::Twice(format!(
                    "two values of type `{own}` are registered\n  --> {caller}\nregister one, or give each a type of its own"
                ));
            }
            if is_skipped {
                return Made::Unmade("this command makes no state".into());
            }
            match (state.get::<S>(), state.unmade::<S>()) {
                (Some(source), _) => match make(source).map_err(Into::into) {
                    Ok(value) => {
                        state.insert(value);
                        Made::Done
                    }
                    Err(error) => Made::Failed(short_name(own), in_full(&*error)),
                },
                (None, Some(unmade)) => Made::Unmade(unmade.0.clone()),
                (None, None) => Made::WithoutSource(format!(
                    "`.state_from(..)` takes `&{source}`, and no state of that type is registered before it\n  --> {caller}\nadd `.config::<{source}>()` or `.state(..)`"
                )),
            }
        };
        let maker = Maker { make: Box::new(make), insert_unmade: Extensions::insert_unmade::<T> };
        self.pending().makers.push(maker);
        self
    }

    fn pending(&mut self) -> &mut Pending {
        let settings: &mut Box<dyn PendingSettings> =
            self.settings.get_or_insert_with(|| Box::new(Pending::default()));
        let settings: &mut dyn Any = &mut **settings;
        settings.downcast_mut().unwrap_or_else(|| unreachable!("nothing else implements the trait"))
    }
}

/// An error with its causes.
fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let line = error.to_string();
        // many errors have their cause in their own text
        if !text.contains(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
        cause = error.source();
    }
    text
}

/// The outcome of making state from other state.
enum Made {
    Done,
    /// Its source does not exist, for this reason.
    Unmade(Arc<str>),
    /// The function for this type has failed, with this message.
    Failed(&'static str, String),
    /// Its source is not registered.
    WithoutSource(String),
    /// There is such a value.
    Twice(String),
}

/// Makes state, unless it is told to make none.
type MakeFn = Box<dyn FnOnce(&mut Extensions, bool) -> Made + Send>;

/// Makes state from other state.
struct Maker {
    make: MakeFn,
    insert_unmade: fn(&mut Extensions, Unmade),
}

/// The entries that `.config` and `.state_from` have collected.
#[derive(Default)]
struct Pending {
    configs: Vec<ConfigType>,
    makers: Vec<Maker>,
    flags: Flags,
    skips_state: bool,
}

impl Pending {
    fn schemas(&self, server: &str) -> Vec<ConfigSchema<'_>> {
        self.configs.iter().map(|config| ConfigSchema::new(config, server)).collect()
    }
}

impl PendingSettings for Pending {
    #[cfg(feature = "cli")]
    fn take_flags(&mut self, server: &str, arguments: Vec<OsString>) -> Vec<OsString> {
        if self.configs.is_empty() {
            return arguments;
        }
        let settings: Vec<_> = self.schemas(server).into_iter().flat_map(|schema| schema.settings).collect();
        let (flags, others) = Flags::take(&settings, arguments);
        self.flags = flags;
        others
    }

    #[cfg(feature = "cli")]
    fn skip_state(&mut self) {
        self.skips_state = true;
    }

    fn read(
        self: Box<Self>,
        server: &str,
        state: &mut Extensions,
        errors: &mut Vec<BuildError>,
    ) -> Box<dyn ServerSettings> {
        let schemas = self.schemas(server);
        errors.extend(check_declarations(&schemas).into_iter().map(BuildError::new));
        let surroundings =
            if self.configs.is_empty() { Surroundings::default() } else { Surroundings::of_process() };
        let is_read = |config: &ConfigType| !(config.is_given)(state);
        let (mut reading, read) = Reading::new(server, &schemas, is_read, &self.flags, &surroundings);
        let (mut problems, mut failures) = (Vec::new(), Vec::new());
        for (config, read) in self.configs.iter().zip(read) {
            if (config.is_given)(state) {
                continue;
            }
            let (value, own) = match read {
                ReadConfig::Value(value) => (Some(value), Vec::new()),
                ReadConfig::Problems(own) => (None, own),
            };
            match (reading.report(&own, &[]), value) {
                (None, Some(value)) => (config.insert)(value, state),
                (report, _) => {
                    let text = report.unwrap_or_else(|| Arc::from("the settings could not be read"));
                    (config.insert_unmade)(state, Unmade(text));
                }
            }
            problems.extend(own);
        }
        for maker in self.makers {
            let reason = match (maker.make)(state, self.skips_state) {
                Made::Done => continue,
                Made::Unmade(reason) => reason,
                Made::Failed(of, message) => {
                    // the error may have quoted what it could not use
                    let line = [format!("`{of}`: {}", reading.error_of_program(&message))];
                    failures.extend(line.clone());
                    reading.report(&[], &line).unwrap_or_else(|| Arc::from(""))
                }
                Made::WithoutSource(text) => {
                    errors.push(BuildError::new(text));
                    Arc::from("")
                }
                Made::Twice(text) => {
                    errors.push(BuildError::new(text));
                    continue;
                }
            };
            (maker.insert_unmade)(state, Unmade(reason));
        }
        reading.problems = reading.report(&problems, &failures);
        Box::new(reading)
    }

    fn mount(self: Box<Self>, prefix: &str, state: &mut Extensions, errors: &mut Vec<BuildError>) {
        for config in self.configs.iter().filter(|config| !(config.is_given)(state)) {
            let name = config.short_name();
            errors.push(BuildError::new(format!(
                "the server that is mounted as `{prefix}` has `.config::<{name}>()`, which only the outer one reads\n\
                 load them before: `.state({name}::load()?)`"
            )));
        }
        for maker in self.makers {
            let text = match (maker.make)(state, false) {
                Made::Done | Made::Unmade(_) => continue,
                Made::Failed(of, message) => {
                    // what it is made of may have come from `Settings::load()`
                    let message = SecretTexts::new().mask_error(&message);
                    format!("the server that is mounted as `{prefix}`: `{of}`: {message}")
                }
                Made::WithoutSource(text) | Made::Twice(text) => text,
            };
            errors.push(BuildError::new(text));
        }
    }
}

/// Reads settings without a server.
///
/// # Errors
/// Everything that is missing or wrong.
pub fn load_config<S: Config>() -> Result<S> {
    let config = ConfigType::of::<S>();
    let name = config.name.unwrap_or(S::DESCRIPTOR.package);
    let schemas = [ConfigSchema::new(&config, name)];
    let wrong = check_declarations(&schemas);
    if !wrong.is_empty() {
        return Err(Error::build(wrong.join("\n")));
    }
    let settings: Vec<_> = schemas.iter().flat_map(|schema| schema.settings.clone()).collect();
    let (flags, _commands) = Flags::take(&settings, std::env::args_os().skip(1).collect());
    let (reading, read) = Reading::new(name, &schemas, |_| true, &flags, &Surroundings::of_process());
    let (mut value, mut problems) = (None, Vec::new());
    for read in read {
        match read {
            ReadConfig::Value(read) => value = read.downcast::<S>().ok(),
            ReadConfig::Problems(own) => problems.extend(own),
        }
    }
    let report = reading.report(&problems, &[]);
    reading.remember_secrets();
    match (report, value) {
        (None, Some(value)) => Ok(*value),
        (report, _) => Err(Error::settings(report.map_or_else(String::new, |report| report.to_string()))),
    }
}
