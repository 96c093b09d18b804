//! The settings of a server on its command line: their flags, and the command that prints them.

use std::ffi::OsString;

use super::{Command, parse, print::print_bytes};
use crate::core::server::{Error, Result, Server, ServerBuilder};

impl ServerBuilder {
    /// Takes the flags of settings from the arguments, and parses the command in the others.
    pub(super) fn parse_with_settings(mut self, arguments: Vec<OsString>) -> Result<(Command, Self)> {
        let arguments = match &mut self.settings {
            Some(settings) => settings.take_flags(&self.info.name, arguments),
            None => arguments,
        };
        Ok((parse(arguments.into_iter())?, self))
    }
}

/// # Errors
/// The arguments have a flag of a setting, which was read when the server was built.
pub(super) fn report_late_flags(server: &Server, arguments: &[OsString]) -> Result<()> {
    let flags = arguments.iter().filter_map(|argument| argument.to_str()?.strip_prefix("--"));
    let names = flags.map(|flag| flag.split_once('=').map_or(flag, |(name, _)| name));
    match names.into_iter().find(|name| server.server_settings().is_some_and(|own| own.has_flag(name))) {
        Some(name) => Err(Error::usage(format!(
            "`--{name}` is a setting, and settings were read when the server was built\nset its variable, or call `.run_with_args(..)` on the builder, which reads flags"
        ))),
        None => Ok(()),
    }
}

/// Prints values and sources of settings; the error lists missing and invalid ones.
pub(super) fn print_settings(settings: Option<&(String, String, Option<String>)>) -> Result<()> {
    let Some((_, table, problems)) = settings else {
        return Err(Error::usage("this server has no settings\nadd `.config::<Settings>()` to its builder"));
    };
    print_bytes(table.as_bytes())?;
    problems.clone().map_or(Ok(()), |problems| Err(Error::settings(problems)))
}
