//! Settings as the command `install` passes them to a client.

use std::sync::Arc;

use serde_json::Value;

use super::{
    reading::{ReadSetting, ReadSettings},
    sources::Source,
};
use crate::core::server::SettingToInstall;

impl ReadSettings {
    /// The values that are invalid, and not only missing; `None` without any.
    pub(crate) fn wrong(&self) -> Option<Arc<str>> {
        self.report(&self.wrong)
    }

    /// The settings that a client must set when it starts the server, to reproduce the current values.
    pub(crate) fn to_install(&self) -> Vec<SettingToInstall> {
        let absolute = |text: String| match std::path::absolute(&text) {
            Ok(path) if !text.starts_with('~') => path.to_str().map_or(text, str::to_owned),
            _ => text,
        };
        let mut all: Vec<SettingToInstall> = Vec::new();
        for ReadSetting { setting, value, source, given } in &self.settings {
            let given = given.clone().map(|given| match given {
                // the client starts the server in another folder
                Value::String(text) if setting.is_path() => absolute(text),
                Value::String(text) => text,
                value => value.to_string(),
            });
            let is_in_file = value.is_some() && *source == Source::File;
            all.push(SettingToInstall {
                variable: setting.variable.clone(),
                given,
                description: setting.description().to_owned(),
                is_secret: setting.is_secret,
                is_required: setting.is_required && !is_in_file,
                is_used: true,
                flag: setting.flag.clone(),
            });
        }
        for one in &mut all {
            // the user need not add a secret that is optional and not used
            one.is_used = !one.is_secret || one.is_required || self.has(&one.variable);
        }
        if let Some(path) = self.file.path.as_ref().filter(|_| self.file.is_named) {
            all.push(SettingToInstall {
                variable: format!("{}CONFIG", self.prefix),
                given: path.to_str().map(|path| absolute(path.to_owned())),
                description: "the file of settings".to_owned(),
                is_secret: false,
                is_required: false,
                is_used: true,
                flag: "config".to_owned(),
            });
        }
        all
    }

    /// Whether a flag or a variable gives the setting of that variable.
    fn has(&self, variable: &str) -> bool {
        let found = self.settings.iter().find(|read| read.setting.variable == variable);
        found.is_some_and(|read| {
            matches!(read.source, Source::Flag | Source::Variable) && read.value.is_some()
        })
    }
}
