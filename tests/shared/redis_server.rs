//! A `redis-server` on a free port of the loopback interface, which keeps nothing on disk and ends with its test.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::Mutex,
    thread::sleep,
    time::Duration,
};

use mcp_tests::external::{Missing, child::Guard};
use rustix::process::{Pid, Signal, kill_process};

pub(crate) struct RedisServer {
    port: u16,
    process: Mutex<Option<Guard>>,
}

impl RedisServer {
    pub(crate) fn start() -> Result<Self, Missing> {
        if Command::new("redis-server").arg("--version").output().is_err() {
            return Err(Missing(
                "`redis-server` is not installed: the Debian package of that name has it".into(),
            ));
        }
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let server = Self { port: free.expect("a port").port(), process: Mutex::default() };
        server.restart(&[]);
        Ok(server)
    }

    /// Starts it again, with these arguments besides.
    pub(crate) fn restart(&self, arguments: &[&str]) {
        self.kill();
        let port = self.port.to_string();
        let process = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(arguments)
            .current_dir(std::env::temp_dir())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        *self.process.lock().expect("no panic") = Some(Guard(process.expect("it starts")));
        for _ in 0..2000 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
        panic!("redis-server does not listen");
    }

    /// Ends it at once.
    pub(crate) fn kill(&self) {
        drop(self.process.lock().expect("no panic").take());
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.lock().expect("no panic");
        let id = process.as_ref().expect("it runs").0.id();
        let pid = Pid::from_raw(i32::try_from(id).expect("an id")).expect("an id");
        kill_process(pid, signal).expect("it is ours");
    }

    /// From now on it answers nothing, and its connections stay open.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What it answers to a command, as text.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let mut sent = format!("*{}\r\n", words.len());
        for word in words {
            sent.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        sent.push_str("*1\r\n$4\r\nQUIT\r\n");
        stream.write_all(sent.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.strip_suffix("+OK\r\n").unwrap_or(&answer).to_owned()
    }

    /// Every key, and in how many milliseconds it expires; less than zero if it does not.
    pub(crate) fn keys(&self) -> Vec<(String, i64)> {
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
    pub(crate) fn everything(&self) -> String {
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
