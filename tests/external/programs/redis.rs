//! A `redis-server`, or a `valkey-server`, on a free port of the loopback interface, which ends with its test.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::{Command, Stdio},
    sync::Mutex,
    thread::sleep,
    time::Duration,
};

use mcp_tests::{programs::child::Guard, support::TestFolder};
use rustix::process::{Pid, Signal, kill_process};

use super::{Missing, replicas::free_addresses};

/// A running server, with an empty store unless it is told to keep it on disk.
#[derive(Debug)]
pub struct RedisServer {
    program: &'static str,
    port: u16,
    /// What it is always started with.
    settings: Vec<String>,
    process: Mutex<Option<Guard>>,
    /// Removed after the process has ended.
    folder: TestFolder,
}

impl RedisServer {
    /// Starts `redis-server`.
    ///
    /// # Errors
    ///
    /// If it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start() -> Result<Self, Missing> {
        Self::start_program("redis-server", &[])
    }

    /// Starts `redis-server` or `valkey-server`, with these arguments besides.
    ///
    /// # Errors
    ///
    /// If it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_program(program: &'static str, arguments: &[&str]) -> Result<Self, Missing> {
        let server = Self::place(program)?;
        server.restart(arguments);
        Ok(server)
    }

    /// Starts a sentinel, which watches a primary under the name `main`; it alone decides.
    ///
    /// # Errors
    ///
    /// If `redis-server` is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_sentinel(primary: &Self) -> Result<Self, Missing> {
        let mut sentinel = Self::place("redis-server")?;
        let (folder, port, watched) = (sentinel.folder.display(), sentinel.port, primary.port);
        let settings = format!(
            "port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor main 127.0.0.1 {watched} 1\n\
             sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n"
        );
        let file = sentinel.folder.write("sentinel.conf", settings);
        sentinel.settings = vec![file.display().to_string(), "--sentinel".into()];
        sentinel.restart(&[]);
        // it looks for replicas every 10 s otherwise
        sentinel.command(&["SENTINEL", "DEBUG", "info-period", "100"]);
        Ok(sentinel)
    }

    /// A server that was not started yet.
    fn place(program: &'static str) -> Result<Self, Missing> {
        if Command::new(program).arg("--version").output().is_err() {
            return Err(Missing(format!(
                "`{program}` is not installed: the Debian package of that name has it"
            )));
        }
        let [address] = free_addresses();
        let port = address.port();
        let folder = TestFolder::default();
        let settings =
            ["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
        let settings = settings.map(str::to_owned).into();
        Ok(Self { program, port, folder, settings, process: Mutex::default() })
    }

    /// Starts it again, with these arguments besides, in which `{port}` is its port. Without `--appendonly yes` it begins with
    /// an empty store.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&self, arguments: &[&str]) {
        self.kill();
        let process = Command::new(self.program)
            .args(&self.settings)
            .args(arguments.iter().map(|argument| argument.replace("{port}", &self.port.to_string())))
            .current_dir(&*self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        *self.process.lock().expect("no panic") = Some(Guard(process.expect("it starts")));
        for _ in 0..120_000 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
        panic!("`{}` does not listen", self.program);
    }

    /// Ends it at once.
    ///
    /// # Panics
    ///
    /// If another thread has panicked while it started it.
    pub fn kill(&self) {
        drop(self.process.lock().expect("no panic").take());
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.id()).expect("an id")).expect("an id");
        kill_process(pid, signal).expect("it is ours");
    }

    /// Its process.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn id(&self) -> u32 {
        self.process.lock().expect("no panic").as_ref().expect("it runs").0.id()
    }

    /// From now on it answers nothing, and its connections stay open.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// From now on it answers again.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL, without a database.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What it answers to a command, as text.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn command(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let mut sent = format!("*{}\r\n", words.len());
        for word in words {
            sent.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        sent.push_str("*1\r\n$4\r\nQUIT\r\n");
        stream.write_all(sent.as_bytes()).expect("sent");
        // a sentinel does not know `QUIT`
        stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a limit");
        let (mut answer, mut chunk) = (Vec::new(), [0; 16 * 1024]);
        while let Ok(length @ 1..) = stream.read(&mut chunk) {
            answer.extend_from_slice(&chunk[..length]);
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.strip_suffix("+OK\r\n").unwrap_or(&answer).to_owned()
    }

    /// Every key, and in how many milliseconds it expires: -1 if it does not, -2 if it did meanwhile.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn keys(&self) -> Vec<(String, i64)> {
        let keys = self.command(&["KEYS", "*"]);
        let names = keys.lines().filter(|line| !line.starts_with(['*', '$']));
        names
            .map(|name| {
                let left = self.command(&["PTTL", name]);
                (name.to_owned(), left.trim().trim_start_matches(':').parse().expect("a number"))
            })
            .collect()
    }

    /// Everything that it keeps, as it would be written to disk.
    pub fn everything(&self) -> String {
        let mut all = String::new();
        for (key, _) in self.keys() {
            all.push_str(&key);
            all.push('\n');
            for command in [["HGETALL", &key], ["GET", &key]] {
                all.push_str(&self.command(&command));
            }
            all.push_str(&self.command(&["ZRANGE", &key, "0", "-1"]));
        }
        all
    }
}
