//! The process of a server over HTTP that is built and started here: on a free port, one after the other. It is replaced when its
//! program is another one, and started again when it has exited.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::super::{
    child::{Child, STABLE, Stop, pause_after},
    launch::Launcher,
    session::KnownTools,
    trace::Trace,
};
use crate::{report, server::visible};

/// The name of the process in the log.
const NAME: &str = "server";
/// How long a process may take to open its port, and how often it is tried.
const OPEN: Duration = Duration::from_secs(60);
const TRY: Duration = Duration::from_millis(25);

/// A process that accepts connections.
pub(super) struct Running {
    /// Counts all processes.
    pub(super) start: u64,
    pub(super) url: Url,
}

/// Why a process answers no more.
#[derive(Clone)]
pub(super) struct End {
    pub(super) start: u64,
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) running: Option<Arc<Running>>,
    /// The end of the last process.
    pub(super) end: Option<Arc<End>>,
    /// Whether none can be expected soon, and why.
    pub(super) failure: Option<Arc<str>>,
}

/// What comes after a process.
enum Next {
    Start,
    Pause(Duration),
    Nothing,
}

pub(super) struct Supervisor {
    launcher: Launcher,
    trace: Trace,
    tools: KnownTools,
    sender: watch::Sender<State>,
    starts: u64,
    failures: u32,
    last_failure: String,
}

impl Supervisor {
    pub(super) fn new(launcher: Launcher, trace: Trace, tools: KnownTools) -> (Self, watch::Receiver<State>) {
        let (sender, receiver) = watch::channel(State::default());
        let own =
            Self { launcher, trace, tools, sender, starts: 0, failures: 0, last_failure: String::new() };
        (own, receiver)
    }

    /// Keeps a process running until `token` is cancelled.
    pub(super) async fn run(mut self, token: CancellationToken) {
        loop {
            self.publish_failure();
            if !self.launcher.is_ready() {
                tokio::select! {
                    () = self.launcher.changed() => self.note_build(),
                    () = token.cancelled() => return,
                }
                continue;
            }
            match self.serve(&token).await {
                Next::Start => self.failures = 0,
                Next::Pause(pause) => {
                    self.publish_failure();
                    let generation = self.launcher.generation();
                    let end = sleep(pause);
                    tokio::pin!(end);
                    while self.launcher.generation() == generation {
                        tokio::select! {
                            () = &mut end => break,
                            () = self.launcher.changed() => {
                                self.note_build();
                                self.publish_failure();
                            }
                            () = token.cancelled() => return,
                        }
                    }
                    if self.launcher.generation() != generation {
                        self.failures = 0;
                    }
                }
                Next::Nothing => return,
            }
        }
    }

    fn note_build(&self) {
        if let Some(failure) = self.launcher.failure() {
            self.trace.note(NAME, &failure);
        }
    }

    /// Says whether clients wait in vain.
    fn publish_failure(&self) {
        let build = self.launcher.failure();
        let is_failing = self.failures >= 3 || build.is_some();
        let failure = is_failing.then(|| build.unwrap_or_else(|| self.last_failure.clone()).into());
        self.sender.send_modify(|state| state.failure = failure);
    }

    fn publish_end(&self, reason: &'static str, detail: String) {
        let end = Some(Arc::new(End { start: self.starts, reason, detail }));
        self.sender.send_modify(|state| (state.running, state.end) = (None, end));
    }

    /// Starts a process, and waits until it has ended.
    async fn serve(&mut self, token: &CancellationToken) -> Next {
        let Some(program) = self.launcher.program() else { return Next::Start };
        let generation = self.launcher.generation();
        self.starts += 1;
        self.tools.begin(generation);
        let port = match free_port().await {
            Ok(port) => port,
            Err(error) => return self.note_failure(&format!("a free port cannot be found: {error}")),
        };
        let program = program.at_port(port);
        let mut child = match Child::start(&program, &self.trace, NAME, Stop::Signal).await {
            Ok(child) => child,
            Err(error) => {
                return self.note_failure(&format!("`{}` cannot be started: {error}", program.name()));
            }
        };
        self.trace.state(NAME, "started", &program.name());
        let since = Instant::now();
        let opened = timeout(OPEN, opened(port));
        tokio::pin!(opened);
        let mut is_open = false;
        loop {
            tokio::select! {
                url = &mut opened, if !is_open => {
                    is_open = true;
                    let Ok(url) = url else {
                        child.stop();
                        self.end(&mut child).await;
                        return self.note_failure(&format!(
                            "the server has not opened port {port} of 127.0.0.1 within {} s: it must listen at the port that `{{port}}` stands for",
                            OPEN.as_secs(),
                        ));
                    };
                    let running = Running { start: self.starts, url };
                    self.sender.send_modify(|state| {
                        (state.running, state.failure) = (Some(Arc::new(running)), None);
                    });
                }
                line = child.stdout.recv() => {
                    if let Some(line) = line {
                        let line = visible(&String::from_utf8_lossy(&line));
                        report(&line);
                        self.trace.event("stderr", json!({ "session": NAME, "text": line }));
                        continue;
                    }
                    let status = child.status().await;
                    let status = status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
                    let stderr = child.stderr();
                    if since.elapsed() >= STABLE {
                        self.failures = 0;
                    }
                    self.publish_end("crashed", format!("the server has exited ({status}) before it answered, and is started again: send it again\n{stderr}"));
                    let lines = if stderr.is_empty() { String::new() } else { format!("\n{stderr}") };
                    return self.note_failure(&format!("the server has exited ({status}){lines}"));
                }
                () = self.launcher.changed() => {
                    self.note_build();
                    if self.launcher.failure().is_some() || self.launcher.generation() == generation {
                        continue;
                    }
                    // before it ends, so that the ends of its streams are not taken for those of its own
                    self.publish_end("restarted", "the server was restarted before it answered: send it again".to_owned());
                    child.stop();
                    self.end(&mut child).await;
                    self.trace.state(NAME, "stopped", "");
                    return Next::Start;
                }
                () = token.cancelled() => {
                    child.stop();
                    self.end(&mut child).await;
                    return Next::Nothing;
                }
            }
        }
    }

    /// Waits for the end of a process that was told to stop.
    async fn end(&self, child: &mut Child) {
        while child.stdout.recv().await.is_some() {}
        let _status = child.status().await;
    }

    /// It is started again, later and later.
    fn note_failure(&mut self, what: &str) -> Next {
        let pause = pause_after(self.failures);
        self.failures += 1;
        report(&format!("mcp-dev: {what}\nmcp-dev: it is started again in {} ms", pause.as_millis()));
        self.trace.state(NAME, "failed", what);
        what.clone_into(&mut self.last_failure);
        Next::Pause(pause)
    }
}

/// A port without a listener.
async fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?.local_addr()?.port())
}

/// The URL of a server, once it accepts connections.
async fn opened(port: u16) -> Url {
    let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), (Ipv6Addr::LOCALHOST, port).into()];
    loop {
        for address in addresses {
            if TcpStream::connect(address).await.is_ok()
                && let Ok(url) = Url::parse(&format!("http://{address}/"))
            {
                return url;
            }
        }
        sleep(TRY).await;
    }
}
