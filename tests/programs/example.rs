//! Builds examples and other programs of this workspace, and serves an example over HTTP.

use std::{
    ffi::OsStr,
    fs::File,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use crate::support::PATIENCE;

use super::{
    cache_dir,
    child::{self, Guard},
    profile_dir,
};

/// The binary of an example. The first call builds all of them, by the cargo and profile of this test run.
///
/// # Panics
///
/// If they do not build.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    static FOLDER: LazyLock<PathBuf> =
        LazyLock::new(|| build(&["--package", "mcp-examples", "--examples"]).join("examples"));
    FOLDER.join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

/// The binary of another program, built in the same way.
///
/// # Panics
///
/// If they do not build.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| build(&["--bins"]));
    FOLDER.join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

/// With the profile of this test run, so that what needs no other features is not rebuilt.
fn build(programs: &[&str]) -> PathBuf {
    let folder = profile_dir();
    let profile = folder.file_name().filter(|name| *name != "debug").unwrap_or(OsStr::new("test"));
    let mut cargo = super::cargo();
    cargo
        .args(["build", "--quiet", "--profile"])
        .arg(profile)
        .args(programs)
        .current_dir(super::workspace_dir());
    cargo.arg("--target-dir").arg(folder.parent().expect("a profile folder is in a target folder"));
    let _ = child::run(&mut cargo, "", PATIENCE).expect("cargo can be run").or_panic("building the programs");
    folder
}

/// An example that serves HTTP on a loopback port until it is dropped.
#[derive(Debug)]
pub struct Served {
    _process: Guard,
    address: SocketAddr,
}

impl Served {
    /// Starts the example in `dir` and waits until it accepts connections.
    ///
    /// # Panics
    ///
    /// If it does not; the message names its log.
    #[must_use]
    pub fn start(name: &str, dir: &Path) -> Self {
        let binary = binary(name);
        // between closing the port here and the example's opening it, another process may take it: then the
        // example exits, and another port is tried
        for _ in 0..5 {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
            let address = listener.local_addr().expect("a bound port has an address");
            drop(listener);
            let log = cache_dir("logs").join(format!("{name}-{}.txt", address.port()));
            let stderr = File::create(&log)
                .unwrap_or_else(|error| panic!("cannot write `{}`: {error}", log.display()));
            let process = Command::new(&binary)
                .args(["--http", &address.to_string()])
                .current_dir(dir)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(stderr)
                .spawn()
                .unwrap_or_else(|error| panic!("cannot start `{}`: {error}", binary.display()));
            let mut process = Guard(process);
            let started = Instant::now();
            while process.0.try_wait().expect("a child can be waited for").is_none() {
                if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
                    return Self { _process: process, address };
                }
                assert!(started.elapsed() < PATIENCE, "`{name}` does not listen\nread `{}`", log.display());
                thread::sleep(Duration::from_millis(20));
            }
        }
        panic!("`{name} --http` ends at once\nread the logs in `{}`", cache_dir("logs").display());
    }

    /// The address of its MCP endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}
