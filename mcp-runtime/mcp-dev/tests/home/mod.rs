//! A folder in which tests run the program. It is also the home of the program, so that it finds nothing of this machine.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Removed when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mcp-dev-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder.canonicalize().expect("a path"))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-dev"));
        command.args(arguments).stdin(Stdio::null()).current_dir(&self.0);
        command
            .env("HOME", &self.0)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .expect("the program")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _result = fs::remove_dir_all(&self.0);
    }
}
