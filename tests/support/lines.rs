//! Lines of JSON over any pair of byte streams: a server in this process, or one in a child process.

use std::{
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use mcp_runtime::Server;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, duplex, split},
    process::{ChildStderr, ChildStdin, ChildStdout},
    task::JoinHandle,
};

use super::{SUBSCRIPTION, initialize, meta, notification, request, within};
use crate::programs::child::Guard;

/// What the server reads.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection. The server's output is read only when the test reads a message.
pub struct LineConnection {
    /// The server's input; `None` once closed. A test may take it to write from another task.
    pub input: Option<Input>,
    output: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    server: Serving,
}

enum Serving {
    Task(JoinHandle<mcp_runtime::Result<()>>),
    Process { child: Guard, errors: JoinHandle<String> },
}

impl LineConnection {
    /// Serves in this process, over a stream that buffers that many bytes in either direction.
    pub fn serve(server: &Server, capacity: usize) -> Self {
        let (ours, theirs) = duplex(capacity);
        let (reader, writer) = split(theirs);
        let server = server.clone();
        let served = tokio::spawn(async move { server.serve(reader, writer).await });
        let (output, input) = split(ours);
        Self::new(Box::new(input), Box::new(output), Serving::Task(served))
    }

    /// Runs a command that serves stdio.
    pub fn spawn(command: &mut Command) -> Self {
        let (mut child, input, errors) = start(command.stdout(Stdio::piped()));
        let output = child.0.stdout.take().and_then(|pipe| ChildStdout::from_std(pipe).ok());
        let output = Box::new(output.expect("a pipe"));
        Self::new(input, output, Serving::Process { child, errors })
    }

    /// The same, but reads `output` instead of the child's stdout, to which the command must be connected.
    pub fn spawn_with(command: &mut Command, output: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let (child, input, errors) = start(command);
        Self::new(input, Box::new(output), Serving::Process { child, errors })
    }

    fn new(input: Input, output: Box<dyn AsyncRead + Send + Unpin>, server: Serving) -> Self {
        Self { input: Some(input), output: BufReader::new(output), server }
    }

    /// Writes any bytes.
    pub async fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is closed");
        within(async {
            input.write_all(bytes).await?;
            input.flush().await
        })
        .await
        .expect("write");
    }

    /// Sends a message on a line of its own.
    pub async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// Sends a request with exactly these params, without waiting for its response.
    pub async fn start(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(&request(id, method, params)).await;
    }

    /// The next line; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        if within(self.output.read_until(b'\n', &mut line)).await.expect("read") == 0 {
            return None;
        }
        assert_eq!(line.last(), Some(&b'\n'), "half a line: {}", String::from_utf8_lossy(&line));
        let message: Value = serde_json::from_slice(&line).expect("lines have messages only");
        let whole = |message: &Value| message["jsonrpc"] == "2.0";
        assert!(message.as_array().map_or_else(|| whole(&message), |all| all.iter().all(whole)), "{message}");
        Some(message)
    }

    /// The next message.
    pub async fn message(&mut self) -> Value {
        self.next().await.expect("the stream has ended")
    }

    /// The next `count` messages.
    pub async fn messages(&mut self, count: usize) -> Vec<Value> {
        let mut messages = Vec::new();
        while messages.len() < count {
            messages.push(self.message().await);
        }
        messages
    }

    /// Sends a request and returns its response, which must be the next message.
    pub async fn reply_to(&mut self, message: &Value) -> Value {
        self.send(message).await;
        let reply = self.message().await;
        assert_eq!(reply["id"], message["id"], "{reply}");
        reply
    }

    /// The same for a request with exactly these params.
    pub async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        self.reply_to(&request(id, method, params)).await
    }

    /// Sends `initialize`, and returns its result.
    pub async fn initialize(&mut self, version: &str) -> Value {
        let mut reply = self.reply_to(&initialize("initialize", version, &json!({}))).await;
        assert_eq!(reply["result"]["protocolVersion"], version, "{reply}");
        reply["result"].take()
    }

    /// Performs the whole handshake.
    pub async fn shake_hands(&mut self, version: &str) {
        self.initialize(version).await;
        self.send(&notification("notifications/initialized", json!({}))).await;
    }

    /// Opens a listen stream, and returns what the server acknowledges.
    pub async fn listen(&mut self, id: &str, filter: Value) -> Value {
        let params = json!({ "notifications": filter, "_meta": meta() });
        self.start(id, "subscriptions/listen", params).await;
        let mut first = self.message().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert_eq!(first["params"]["_meta"], json!({ SUBSCRIPTION: id }), "{first}");
        first["params"]["notifications"].take()
    }

    /// Closes the server's input.
    pub async fn close_input(&mut self) {
        let mut input = self.input.take().expect("the input is closed");
        within(input.shutdown()).await.expect("shut down");
    }

    /// Drops the connection whatever the server is doing, without closing its input first.
    pub fn abort(&self) {
        match &self.server {
            Serving::Task(served) => served.abort(),
            Serving::Process { .. } => panic!("it is a process"),
        }
    }

    /// Waits until the server has returned, which must succeed.
    pub async fn served(self) {
        match self.server {
            Serving::Task(served) => within(served).await.expect("no panic").expect("no error"),
            Serving::Process { .. } => panic!("it is a process"),
        }
    }

    /// Sends the process SIGTERM.
    #[cfg(unix)]
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends the process a signal, `INT` for example.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let Serving::Process { child, .. } = &self.server else { panic!("it is not a process") };
        crate::programs::child::send(child.0.id(), name);
    }

    /// The exit status of the process, and its stderr.
    pub async fn exit(self) -> (ExitStatus, String) {
        let Serving::Process { mut child, errors } = self.server else { panic!("it is not a process") };
        within(async {
            loop {
                if let Some(status) = child.0.try_wait().expect("a child can be waited for") {
                    return (status, errors.await.expect("no panic"));
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }
}

fn start(command: &mut Command) -> (Guard, Input, JoinHandle<String>) {
    let child: Child =
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
    let mut child = Guard(child);
    let input = child.0.stdin.take().and_then(|pipe| ChildStdin::from_std(pipe).ok());
    let stderr = child.0.stderr.take().and_then(|pipe| ChildStderr::from_std(pipe).ok());
    let mut stderr = stderr.expect("a pipe");
    let errors = tokio::spawn(async move {
        let mut text = String::new();
        stderr.read_to_string(&mut text).await.expect("UTF-8");
        text
    });
    (child, Box::new(input.expect("a pipe")), errors)
}
