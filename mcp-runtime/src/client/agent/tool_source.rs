//! A server as a part of a toolset: its client, which may be connected when it is first needed, and what it lists. A
//! server that is not there is tried again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::resource_tools::resource_tools;
use crate::{
    client::{Client, Error, Refresh, ToolInfo, receive::handlers::AnswerFuture},
    core::sync::Mutex,
};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

pub(super) type ConnectFn = Box<dyn Fn() -> AnswerFuture<Result<Client, Error>> + Send + Sync>;

/// A tool of a server, or one of the functions that make its resources usable.
#[derive(Clone)]
pub(super) struct SourceEntry {
    pub(super) info: ToolInfo,
    pub(super) is_of_resources: bool,
}

/// A server in a toolset.
pub(super) struct ToolSource {
    pub(super) namespace: String,
    /// How it is connected, also again.
    connect: Option<ConnectFn>,
    link: tokio::sync::Mutex<SourceLink>,
    /// The tools of the last successful list.
    listed: Mutex<Option<Arc<Vec<SourceEntry>>>>,
    /// Why it was not there when it was last used.
    pub(super) failure: Mutex<Option<Error>>,
    /// Whether what is kept of it may come from a server that is gone.
    is_doubtful: AtomicBool,
}

struct SourceLink {
    client: Option<Client>,
    pause: Duration,
    /// When it is tried again, and why it failed.
    failed: Option<(Instant, Error)>,
}

impl ToolSource {
    pub(super) fn new(namespace: String, client: Option<Client>, connect: Option<ConnectFn>) -> Self {
        Self {
            namespace,
            connect,
            link: tokio::sync::Mutex::new(SourceLink { client, pause: FIRST_PAUSE, failed: None }),
            listed: Mutex::new(None),
            failure: Mutex::new(None),
            is_doubtful: AtomicBool::new(false),
        }
    }

    /// The client, connected if need be.
    pub(super) async fn client(&self) -> Result<Client, Error> {
        let mut link = self.link.lock().await;
        let Some(connect) = &self.connect else {
            return link.client.clone().ok_or_else(|| Error::not_connected("the toolset has no connection"));
        };
        if let Some(client) = link.client.as_ref().filter(|client| !is_closed(client)) {
            return Ok(client.clone());
        }
        if let Some((_, error)) = link.failed.as_ref().filter(|(until, _)| Instant::now() < *until) {
            return Err(error.clone());
        }
        link.client = None;
        match connect().await {
            Ok(client) => {
                (link.failed, link.pause) = (None, FIRST_PAUSE);
                link.client = Some(client.clone());
                Ok(client)
            }
            Err(error) => {
                link.failed = Some((Instant::now() + link.pause, error.clone()));
                link.pause = (link.pause * 2).min(LONGEST_PAUSE);
                Err(error)
            }
        }
    }

    /// Lists the tools that the server has now, unless its client may use a kept list.
    pub(super) async fn list(&self) -> Result<Arc<Vec<SourceEntry>>, Error> {
        let listed = self.list_now().await;
        self.note(&listed);
        let listed = listed?;
        *self.listed.lock() = Some(listed.clone());
        Ok(listed)
    }

    async fn list_now(&self) -> Result<Arc<Vec<SourceEntry>>, Error> {
        let client = self.client().await?;
        let is_doubtful = self.is_doubtful.load(Ordering::SeqCst) || is_closed(&client);
        let mut entries: Vec<SourceEntry> = Vec::new();
        if client.supports("tools") {
            let refresh = if is_doubtful { Refresh::Yes } else { Refresh::No };
            let tools = client.tools().refresh(refresh).await?;
            entries.extend(tools.into_iter().map(|info| SourceEntry { info, is_of_resources: false }));
        } else if is_doubtful {
            client.ping().await?;
        }
        if client.supports("resources") {
            for info in resource_tools() {
                if entries.iter().any(|entry| entry.info.name() == info.name()) {
                    tracing::warn!(
                        namespace = self.namespace,
                        tool = info.name(),
                        "the server has a tool of this name, which is used instead of its resources"
                    );
                } else {
                    entries.push(SourceEntry { info, is_of_resources: true });
                }
            }
        }
        Ok(Arc::new(entries))
    }

    /// The entry of this name, of what the server listed last or lists now.
    pub(super) async fn entry(&self, name: &str) -> Result<Option<SourceEntry>, Error> {
        let find = |entries: &[SourceEntry]| entries.iter().find(|entry| entry.info.name() == name).cloned();
        let known = self.listed.lock().clone();
        if let Some(entry) = known.as_deref().and_then(|entries| find(entries)) {
            return Ok(Some(entry));
        }
        Ok(find(&self.list().await?))
    }

    /// Remembers whether the server was there.
    pub(super) fn note<T>(&self, result: &Result<T, Error>) {
        let failure = result.as_ref().err();
        let is_gone = failure.is_some_and(|error| {
            matches!(
                error,
                Error::NotConnected { .. }
                    | Error::Closed { .. }
                    | Error::Timeout { .. }
                    | Error::Http { .. }
            )
        });
        if is_gone {
            self.is_doubtful.store(true, Ordering::SeqCst);
        } else if failure.is_none() {
            self.is_doubtful.store(false, Ordering::SeqCst);
        }
        if is_gone || failure.is_none() {
            *self.failure.lock() = failure.cloned();
        }
    }
}

/// Whether the connection has ended.
fn is_closed(client: &Client) -> bool {
    client.shared().connection().map_or(true, |connection| connection.link.is_closed())
}
