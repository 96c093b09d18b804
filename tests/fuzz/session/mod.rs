//! Plays a session that bytes describe: requests of every revision, answers, cancellations, garbage and pauses, in any
//! order, of a client that ends its input, or goes away, or does not read. Whatever is played:
//!
//! - each request gets one response, unless it was cancelled or its client has gone, and never two;
//! - nothing of a request is written after its response, nothing at all after the end of the connection, and all of it is
//!   JSON-RPC;
//! - every permit returns: of running and queued requests, of limited tools, of subscriptions and of tasks.
//!
//! `cargo fuzz` plays random bytes, a test plays the seeds and random changes of them.

mod heard;
mod probes;
mod script;
mod server;

use std::time::Duration;

use mcp_runtime::Server;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, WriteHalf, duplex, split},
    runtime::Builder,
    task::JoinHandle,
    time::{sleep, timeout},
};

use heard::Heard;
use script::{Script, Sent, Step};

/// Far longer than any session lasts, in paused time.
const PATIENCE: Duration = Duration::from_secs(600);
/// Longer than any call of the server lasts, or a task without a client.
const QUIET: Duration = Duration::from_secs(60);

/// How a session ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The client ends its input, and reads the rest.
    Input,
    /// The client goes away.
    Gone,
    /// The client has never read, and goes away.
    Unread,
}

/// Plays the session of these bytes.
///
/// # Panics
/// The server breaks a promise.
pub(crate) fn play(data: &[u8]) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let server = server::server();
        timeout(PATIENCE, session(&server, data)).await.expect("the session ends");
        sleep(QUIET).await;
        timeout(PATIENCE, probes::after_a_session(&server)).await.expect("the permits are back");
    });
}

/// A connection to the server.
struct Connection {
    served: JoinHandle<mcp_runtime::Result<()>>,
    reading: JoinHandle<()>,
    input: WriteHalf<DuplexStream>,
    heard: Heard,
}

impl Connection {
    /// `buffer`: bytes that are written but not read.
    fn open(server: &Server, buffer: usize, is_read: bool) -> Self {
        let (ours, theirs) = duplex(buffer);
        let (reader, writer) = split(theirs);
        let server = server.clone();
        let served = tokio::spawn(async move { server.serve(reader, writer).await });
        let (output, input) = split(ours);
        let heard = Heard::default();
        let reading = tokio::spawn({
            let heard = heard.clone();
            async move {
                if !is_read {
                    std::future::pending::<()>().await;
                }
                let mut lines = BufReader::new(output).lines();
                while let Some(line) = lines.next_line().await.expect("UTF-8") {
                    heard.push(&line);
                }
            }
        });
        Self { served, reading, input, heard }
    }

    /// `false` if the server has ended the connection.
    async fn write(&mut self, bytes: &[u8]) -> bool {
        matches!(timeout(PATIENCE / 4, self.input.write_all(bytes)).await, Ok(Ok(())))
    }

    async fn write_lines(&mut self, lines: &[Value]) -> bool {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.write(text.as_bytes()).await
    }

    /// Ends the input, and waits until the server has ended the output.
    async fn end(mut self) -> Heard {
        // what clients are asked and do not answer is waited for only as long as the connection lasts
        self.input.shutdown().await.expect("the end of the input");
        drop(self.input);
        self.served.await.expect("no panic").expect("the end of the input is not an error");
        self.reading.await.expect("no panic");
        self.heard
    }

    /// Goes away.
    async fn abandon(self) -> Heard {
        self.reading.abort();
        // the other half of the stream is dropped with the task
        if let Err(error) = self.reading.await {
            assert!(error.is_cancelled(), "{error}");
        }
        drop(self.input);
        let _may_be_an_error = self.served.await.expect("no panic");
        self.heard
    }
}

async fn session(server: &Server, data: &[u8]) {
    let mut script = Script(data);
    let era = script.byte();
    let ending = match era / 8 % 4 {
        0 | 1 => Ending::Input,
        2 => Ending::Gone,
        _ => Ending::Unread,
    };
    let buffer = if era / 32 % 2 == 0 { 1 << 16 } else { 64 };
    let mut connection = Connection::open(server, buffer, ending != Ending::Unread);
    let (mut sent, opening) = Sent::open(era);
    // of all steps together
    let mut pauses = PATIENCE / 2;
    let mut is_open = connection.write_lines(&opening).await;
    while let Some(step) = script.next().filter(|_| is_open) {
        match sent.step(&mut script, step, &connection.heard) {
            Step::Line(mut line) => {
                line.push(b'\n');
                is_open = connection.write(&line).await;
            }
            Step::Pause(pause) => {
                let pause = pause.min(pauses);
                pauses -= pause;
                sleep(pause).await;
            }
        }
    }
    let heard = if is_open && ending == Ending::Input {
        probes::before_the_end(&mut connection, &mut sent).await;
        connection.end().await
    } else {
        connection.abandon().await
    };
    heard.check(&sent, is_open && ending == Ending::Input);
}
