//! The environment on which the files of clients depend: the system, the home directory, variables and the project's
//! folder. These are values of one struct, so that the places of all systems are tested on each.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    Linux,
    Mac,
    Windows,
}

/// Without `Debug`: variables may be secret.
pub(super) struct Surroundings {
    pub(super) platform: Platform,
    pub(super) home: PathBuf,
    pub(super) variables: HashMap<String, OsString>,
    /// The folder of the project.
    pub(super) folder: PathBuf,
}

impl Surroundings {
    /// The surroundings of this process.
    ///
    /// # Errors
    /// The home directory or the current folder is unknown.
    pub(super) fn of_process() -> Result<Self, String> {
        let platform = if cfg!(windows) {
            Platform::Windows
        } else if cfg!(target_os = "macos") {
            Platform::Mac
        } else {
            Platform::Linux
        };
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let named = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Ok(Self {
            platform,
            home: home.ok_or("the home directory of this user is unknown")?,
            variables: named.collect(),
            folder: std::env::current_dir()
                .map_err(|error| format!("the current folder cannot be read: {error}"))?,
        })
    }

    fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables.get(name).filter(|value| !value.is_empty())
    }

    /// The folder that a variable names, or else one in the home directory.
    fn folder_of(&self, variable: &str, inside_home: &str) -> PathBuf {
        let named = self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.unwrap_or_else(|| self.home.join(inside_home))
    }

    /// A path in the home directory.
    pub(super) fn in_home(&self, path: &str) -> PathBuf {
        self.home.join(path)
    }

    /// A path in the folder that a variable names, or else in one in the home directory.
    pub(super) fn in_named(&self, variable: &str, inside_home: &str, path: &str) -> PathBuf {
        self.folder_of(variable, inside_home).join(path)
    }

    /// A path in the folder where programs with a window keep their settings.
    pub(super) fn in_config(&self, path: &str) -> PathBuf {
        match self.platform {
            Platform::Linux => self.in_named("XDG_CONFIG_HOME", ".config", path),
            Platform::Mac => self.home.join("Library/Application Support").join(path),
            Platform::Windows => self.in_named("APPDATA", "AppData/Roaming", path),
        }
    }

    /// The folders of Windows packages whose names begin like this.
    pub(super) fn packages(&self, prefix: &str) -> Vec<PathBuf> {
        if self.platform != Platform::Windows {
            return Vec::new();
        }
        let folder = self.in_named("LOCALAPPDATA", "AppData/Local", "Packages");
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut found: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)))
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found
    }

    /// The program of that name in `PATH`.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        let endings: &[&str] = match self.platform {
            Platform::Windows => &["exe", "cmd", "bat"],
            _ => &[""],
        };
        let folders = std::env::split_paths(self.variable("PATH")?).collect::<Vec<_>>();
        let absolute = folders.iter().filter(|folder| folder.is_absolute());
        let candidates = absolute
            .flat_map(|folder| endings.iter().map(move |ending| folder.join(name).with_extension(ending)));
        candidates.into_iter().find(|path| is_executable(path))
    }

    /// A path as users read it, with `~`.
    pub(super) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(inside) => format!("~/{}", inside.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
