//! A PostgreSQL server on a free port of the loopback interface, with an empty database, which ends with its test.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use mcp_tests::{programs::child::Guard, support::TestFolder};

use super::{Missing, replicas::free_addresses};

/// A user without rights, since the server refuses to run as root.
const UNPRIVILEGED: u32 = 65_534;

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    port: u16,
    _process: Guard,
    /// Removed after the process has ended.
    _folder: TestFolder,
}

/// Statements of a connection that stays open.
#[derive(Debug)]
pub struct Session {
    statements: ChildStdin,
    results: BufReader<std::process::ChildStdout>,
    _process: Guard,
}

impl PostgresServer {
    /// Starts the server with files of its own.
    ///
    /// # Errors
    ///
    /// If it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start() -> Result<Self, Missing> {
        let programs = programs().ok_or_else(|| {
            Missing("PostgreSQL is not installed: the Debian package `postgresql` has it".to_owned())
        })?;
        let [address] = free_addresses();
        let port = address.port();
        let folder = TestFolder::default();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            chown(&*folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("the folder is ours");
        }
        let command = |name: &str| {
            let mut command = Command::new(programs.join(name));
            if is_root {
                command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
            }
            command.current_dir(&*folder).stdin(Stdio::null());
            command
        };
        let files = folder.join("data");
        let made = command("initdb")
            .args([
                "--username=postgres",
                "--auth=trust",
                "--no-sync",
                "--no-locale",
                "--encoding=UTF8",
                "-D",
            ])
            .arg(&files)
            .output()
            .expect("`initdb` starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let process = command("postgres")
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-p", &port.to_string()])
            .arg("-k")
            .arg(&*folder)
            .arg("-D")
            .arg(&files)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = Self { port, _process: Guard(process.expect("it starts")), _folder: folder };
        for _ in 0..12_000 {
            // it accepts connections before it answers them
            if TcpStream::connect(("127.0.0.1", port)).is_ok() && server.try_query("SELECT 1").is_some() {
                return Ok(server);
            }
            sleep(Duration::from_millis(10));
        }
        panic!("PostgreSQL does not answer");
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    fn psql(&self) -> Command {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-v", "ON_ERROR_STOP=1"]);
        psql.arg(self.url());
        psql
    }

    fn try_query(&self, statement: &str) -> Option<String> {
        let output = self.psql().args(["-c", statement]).output().expect("`psql` starts");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The rows that a statement returns, one a line.
    ///
    /// # Panics
    ///
    /// If it fails.
    #[must_use]
    pub fn query(&self, statement: &str) -> String {
        self.try_query(statement).unwrap_or_else(|| panic!("`{statement}` has failed"))
    }

    /// Opens a connection.
    ///
    /// # Panics
    ///
    /// If `psql` does not start.
    #[must_use]
    pub fn open(&self) -> Session {
        let mut process =
            self.psql().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("`psql` starts");
        Session {
            statements: process.stdin.take().expect("a pipe"),
            results: BufReader::new(process.stdout.take().expect("a pipe")),
            _process: Guard(process),
        }
    }
}

impl Session {
    /// Executes statements to their end.
    ///
    /// # Panics
    ///
    /// If one fails.
    pub fn execute(&mut self, statements: &str) {
        writeln!(self.statements, "{statements}; SELECT 'done';").expect("it runs");
        let mut line = String::new();
        self.results.read_line(&mut line).expect("a result");
        assert_eq!(line, "done\n", "{statements}");
    }
}

/// The folder with the server's programs, which Debian does not have in `PATH`.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let of_debian = versions.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_all = |folder: &Path| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file());
    std::env::split_paths(&path).chain(of_debian).find(|folder| has_all(folder))
}
