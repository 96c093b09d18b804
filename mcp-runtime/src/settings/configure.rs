//! Options and items of a server that depend on its settings. Functions set them once the settings are read; without valid
//! settings they are not called, and then no function of an item is called either, since an option may protect it.

use std::{
    any::{TypeId, type_name},
    panic::Location,
    sync::Arc,
};

use super::{Config, ReadSettings};
use crate::{
    ToolError,
    core::{
        build_error::BuildError,
        extensions::Extensions,
        layer::{LayeredCall, Next, item_layer},
        secret_texts::SecretTexts,
        server::{Error, Result, ServerBuilder, short_name},
    },
};

/// Applies a function, and tells whether it could be called: the settings that it takes may be missing.
type ApplyFn = Box<dyn FnOnce(ServerBuilder, &Extensions) -> Result<(ServerBuilder, bool)> + Send>;

/// A function that configures a server.
pub(super) struct ConfigureFn {
    type_name: &'static str,
    /// The keys of the settings that it takes.
    keys: [TypeId; 3],
    caller: &'static Location<'static>,
    apply: ApplyFn,
}

impl ServerBuilder {
    /// Sets options, and adds items, that depend on [settings](Self::config): any method of the builder, such as
    /// `.http(..)`, `.auth(..)`, `.limits(..)` or `.add(..)`.
    ///
    /// The function is called once, when the server is built and its settings are valid, and never for `--help`, `--version`
    /// and `config`. If settings are missing or wrong, it is not called: over HTTP the server does not start, over stdio
    /// every call of its tools, resources and prompts answers what is missing, and `list` and `schema` print it beside what
    /// they know. State is made by [`state_from`](Self::state_from) and [`state_async`](Self::state_async).
    ///
    /// ```no_run
    /// use mcp_runtime::prelude::*;
    ///
    /// #[mcp_config]
    /// struct Settings {
    ///     /// The name under which clients reach the server
    ///     host: String,
    ///     /// Calls of one caller in a minute
    ///     #[mcp(default = 600)]
    ///     rate: u32,
    /// }
    ///
    /// fn main() -> mcp_runtime::Result<()> {
    ///     mcp_runtime::server!()
    ///         .config::<Settings>()
    ///         .configure(|server, settings: &Settings| {
    ///             Ok(server
    ///                 .http(|http| http.allowed_hosts([&settings.host]))
    ///                 .limits(|limits| limits.rate(&format!("{}/1m", settings.rate))))
    ///         })
    ///         .discover()
    ///         .run()
    /// }
    /// ```
    ///
    /// [`build`](Self::build) fails with the error of the function, without secret values. It also fails if the function calls
    /// `config` or `configure`.
    #[doc(alias("with_config", "options_from"))]
    #[track_caller]
    pub fn configure<S: Config>(
        mut self,
        set: impl FnOnce(Self, &S) -> Result<Self> + Send + 'static,
    ) -> Self {
        self.settings.get_or_insert_default().functions.push(ConfigureFn {
            type_name: type_name::<S>(),
            keys: Extensions::keys_like::<S>(),
            caller: Location::caller(),
            apply: Box::new(|server, state| match state.get::<S>() {
                Some(settings) => Ok((set(server, settings)?, true)),
                None => Ok((server, false)),
            }),
        });
        self
    }

    /// Reads the settings, once.
    pub(crate) fn read_settings(&mut self) {
        let Self { settings, info, state, errors, .. } = self;
        let Some(pending) = settings.as_deref_mut() else { return };
        if pending.read.is_none() {
            pending.read = Some(pending.read(&info.name, state, errors));
        }
    }

    /// Reads the settings and calls the functions that need them, once.
    ///
    /// # Errors
    /// A function fails.
    pub(crate) fn configured(mut self) -> Result<Self> {
        self.read_settings();
        let functions = self.settings.as_mut().map(|pending| std::mem::take(&mut pending.functions));
        let Some(functions) = functions.filter(|functions| !functions.is_empty()) else { return Ok(self) };
        let (mut pending, state) = (self.settings.take(), self.state.clone());
        let mut is_complete = true;
        for ConfigureFn { type_name, keys, caller, apply } in functions {
            if !state.contains_any(&keys) {
                let name = short_name(type_name);
                self.errors.push(BuildError::new(format!(
                    "`.configure(..)` takes `&{name}`, and nothing provides it\n  --> {caller}\nadd `.config::<{name}>()`"
                )));
                continue;
            }
            let (server, was_called) = apply(self, &state).map_err(|error| {
                let text = SecretTexts::mask_error(&error.to_string());
                Error::build(format!("`.configure(..)` has failed: {text}\n  --> {caller}"))
            })?;
            (self, is_complete) = (server, is_complete && was_called);
        }
        if self.settings.is_some() {
            self.errors.push(BuildError::new(
                "a function of `.configure(..)` calls `.config(..)` or `.configure(..)`\ncall them outside of it".to_owned(),
            ));
        }
        if let Some(read) = pending.as_mut().and_then(|pending| pending.read.as_mut()) {
            read.is_configured = true;
            if let Some(problems) = read.problems.clone().filter(|_| !is_complete) {
                read.is_incomplete = true;
                self.layers.insert(0, item_layer(move |_: LayeredCall, _: Next| refuse(problems.clone())));
            }
        }
        self.settings = pending;
        Ok(self)
    }
}

/// Answers a call of a server whose options are not set.
async fn refuse(problems: Arc<str>) -> crate::layer::Outcome {
    Err(ToolError::new(problems.to_string()))
}

impl ReadSettings {
    /// The note beside lists of a server that functions of `configure` did not complete.
    pub(crate) fn incomplete_note(&self) -> Option<String> {
        let problems = self.problems.as_deref().filter(|_| self.is_incomplete)?;
        Some(format!("items and options that need settings are missing here: {problems}"))
    }

    /// The error of a server that cannot be built, which missing settings may be the cause of; without secret values.
    pub(crate) fn explain_build_error(this: Option<&Self>, error: Error) -> Error {
        match this {
            Some(Self { is_incomplete: true, problems: Some(problems), .. }) => Error::settings(&**problems),
            Some(Self { is_configured: true, .. }) => {
                Error::build(SecretTexts::mask_error(&error.to_string()))
            }
            _ => error,
        }
    }
}
