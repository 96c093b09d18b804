//! The server of the HTTP tests.

use tokio::sync::{Notify, Semaphore};

use crate::prelude::*;

/// Echoes its argument
#[mcp_tool]
async fn echo(message: String) -> String {
    message
}

/// Reports three steps, one of them backwards
#[mcp_tool]
async fn steps(ctx: &Context) -> String {
    for at in [10.0, 50.0, 50.0, 20.0, 100.0] {
        ctx.progress(at).total(100.0).send();
        tokio::task::yield_now().await;
    }
    "done".into()
}

/// Reports progress without yielding
#[mcp_tool]
fn burst(ctx: &Context) -> &'static str {
    ctx.progress(1.0).send();
    ctx.progress(2.0).send();
    "done"
}

/// Runs until it is released
#[mcp_tool]
async fn hold(probe: &Probe, ctx: &Context) -> String {
    let mut end = End { probe: probe.clone(), finished: false };
    probe.0.entered.add_permits(1);
    ctx.progress(1.0).send();
    match probe.0.release.acquire().await {
        Ok(permit) => permit.forget(),
        Err(_) => return "closed".into(),
    }
    end.finished = true;
    "let go".into()
}

/// Takes arguments that are mirrored in headers
#[mcp_tool]
async fn routed(
    #[mcp(header = "Region")] region: Option<String>,
    #[mcp(header = "Shard")] shard: Option<u32>,
    #[mcp(header = "Dry")] dry: Option<bool>,
) -> String {
    format!("{region:?} {shard:?} {dry:?}")
}

/// Returns the caller, and what the client has declared
#[mcp_tool]
async fn whoami(ctx: &Context) -> String {
    let caller = ctx.caller().map_or("anonymous", |caller| caller.subject());
    let client = ctx.client().map_or_else(|| "unknown".to_owned(), |client| client.name);
    format!("{caller} {client} {}", ctx.client_capabilities())
}

/// A text
#[mcp_resource(uri = "test://text")]
fn text() -> &'static str {
    "text"
}

/// Greets
#[mcp_prompt]
fn greet(name: String) -> String {
    format!("Greet {name}.")
}

/// Counts the calls of `hold`.
#[derive(Clone, Default)]
pub(super) struct Probe(pub(super) Arc<Seen>);

pub(super) struct Seen {
    pub(super) entered: Semaphore,
    pub(super) release: Semaphore,
    dropped: AtomicUsize,
    finished: AtomicUsize,
    ended: Notify,
}

impl Default for Seen {
    fn default() -> Self {
        let (entered, release) = (Semaphore::new(0), Semaphore::new(0));
        Self {
            entered,
            release,
            dropped: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            ended: Notify::new(),
        }
    }
}

struct End {
    probe: Probe,
    finished: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        let seen = &self.probe.0;
        (if self.finished { &seen.finished } else { &seen.dropped }).fetch_add(1, Ordering::SeqCst);
        seen.ended.notify_waiters();
    }
}

impl Probe {
    /// Waits until `calls` more calls have entered.
    pub(super) async fn entered(&self, calls: u32) {
        self.0.entered.acquire_many(calls).await.expect("open").forget();
    }

    pub(super) fn release(&self, calls: usize) {
        self.0.release.add_permits(calls);
    }

    /// Waits until `dropped` calls have been dropped and `finished` have returned.
    pub(super) async fn ended(&self, dropped: usize, finished: usize) {
        loop {
            let notified = self.0.ended.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let now = (self.0.dropped.load(Ordering::SeqCst), self.0.finished.load(Ordering::SeqCst));
            assert!(now.0 <= dropped && now.1 <= finished, "dropped and finished: {now:?}");
            if now == (dropped, finished) {
                return;
            }
            notified.await;
        }
    }
}

/// A builder with all of the above.
pub(super) fn builder(probe: &Probe) -> ServerBuilder {
    Server::builder("http-test", "1.0.0").discover_in(module_path!()).state(probe.clone())
}

/// The server that most tests use.
pub(super) async fn plain() -> HttpServer {
    HttpServer::start(builder(&Probe::default())).await
}
