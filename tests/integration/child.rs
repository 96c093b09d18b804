//! A fixture server as a child process, and a client of it that never waits for ever. The stdio tests use it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Nothing here takes nearly as long, unless it hangs.
const LIMIT: Duration = Duration::from_secs(30);

/// The fixture's command.
pub(crate) fn fixture() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fixture"))
}

/// A running fixture, ended when dropped.
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    errors: Option<thread::JoinHandle<String>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::spawn(&mut fixture())
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::with_output(command.stdout(Stdio::piped()), None)
    }

    /// Reads `output` instead of the child's own stdout.
    pub(crate) fn with_output(command: &mut Command, output: Option<Box<dyn Read + Send>>) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.unwrap_or_else(|| Box::new(child.stdout.take().unwrap()));
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let errors = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Self { input: child.stdin.take(), child, lines, errors: Some(errors) }
    }

    /// Shakes hands in that revision.
    pub(crate) fn legacy(revision: &str) -> Self {
        Self::start().greeted(revision)
    }

    /// The same server, after a handshake in that revision.
    pub(crate) fn greeted(self, revision: &str) -> Self {
        let mut server = self;
        server.send(&json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        }}));
        assert_eq!(server.receive()["result"]["protocolVersion"], revision);
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// The next line, as JSON; it must end, and be a JSON-RPC message.
    pub(crate) fn receive(&self) -> Value {
        self.receive_or_end().expect("stdout has ended")
    }

    /// Nothing if stdout has ended.
    pub(crate) fn receive_or_end(&self) -> Option<Value> {
        let line = match self.lines.recv_timeout(LIMIT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => panic!("the server does not answer"),
        };
        assert_eq!(line.last(), Some(&b'\n'), "half a line: {}", String::from_utf8_lossy(&line));
        let message: Value = serde_json::from_slice(&line).expect("stdout has messages only");
        let whole = |message: &Value| message["jsonrpc"] == "2.0";
        assert!(message.as_array().map_or_else(|| whole(&message), |all| all.iter().all(whole)), "{message}");
        Some(message)
    }

    /// Asks for something and waits for the answer; nothing else may come first.
    pub(crate) fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        let reply = self.receive();
        assert_eq!(reply["id"], message["id"], "{reply}");
        reply
    }

    /// Asks `count` until it says `what`.
    pub(crate) fn until_counted(&mut self, what: &str) {
        let start = Instant::now();
        loop {
            let reply = self.ask(&call("counted", "count", &json!({})));
            let text = reply["result"]["content"][0]["text"].as_str().unwrap().to_owned();
            if text.contains(what) {
                return;
            }
            assert!(start.elapsed() < LIMIT, "expected {what:?}, got {text:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn signal_to_stop(&self) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// How the process ended, and what it said on stderr.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < LIMIT, "the server does not end");
            thread::sleep(Duration::from_millis(5));
        };
        (status, self.errors.take().unwrap().join().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // it may have ended already
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// `_meta` of the stateless era.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A modern call of a tool.
pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta() });
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params })
}

/// The same call in a session.
pub(crate) fn legacy_call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params })
}

pub(crate) fn ping(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

pub(crate) fn cancel(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}
