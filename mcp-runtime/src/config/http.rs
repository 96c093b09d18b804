//! Every bound and switch of the HTTP transport, each with its default.

use std::{fmt, sync::Arc, time::Duration};

use http::{request::Parts, uri::Authority};

use crate::{
    connection::Caller,
    store::{EventBounds, EventStore},
};

type FindCaller = Arc<dyn Fn(&Parts) -> Option<Caller> + Send + Sync>;

/// The bounds and switches of one server's HTTP transport.
#[derive(Clone)]
pub(crate) struct HttpOptions {
    pub(crate) path: String,
    /// Where the transport of 2024-11-05 is served.
    pub(crate) sse_path: Option<String>,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) any_host: bool,
    /// Bytes of a request's body.
    pub(crate) max_body: usize,
    pub(crate) max_connections: usize,
    /// Requests that are served at once.
    pub(crate) max_requests: usize,
    /// Calls that run on after their client went away.
    pub(crate) max_detached: usize,
    /// Sessions that are remembered as ended.
    pub(crate) max_revoked: usize,
    /// How long a client may take for a request's headers, and stay silent between requests.
    pub(crate) header_timeout: Duration,
    /// How long a client may take for a request's body.
    pub(crate) body_timeout: Duration,
    pub(crate) stateless: bool,
    pub(crate) session_lifetime: Duration,
    /// Sessions of which more is kept than their ids say.
    pub(crate) max_sessions: usize,
    /// Streams that are opened with GET.
    pub(crate) max_streams: usize,
    /// Of those, the ones that wait for their clients to come back.
    pub(crate) max_waiting: usize,
    /// Bytes of bodies that are not complete yet.
    pub(crate) max_unfinished_bytes: usize,
    /// Bytes of messages that clients have not read yet.
    pub(crate) max_unread_bytes: usize,
    /// Whether events have ids.
    pub(crate) resumable: bool,
    /// What is kept of them in memory.
    pub(crate) event_bounds: EventBounds,
    /// Kept there instead.
    pub(crate) event_store: Option<Arc<dyn EventStore>>,
    pub(crate) caller: Option<FindCaller>,
    /// Callers are not told apart, and scopes are granted to all of them.
    pub(crate) trusts_all: bool,
    /// Types of middleware that look like callers, but are not declared as such.
    pub(crate) suspects: Vec<&'static str>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            sse_path: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            any_host: false,
            max_body: 4 << 20,
            max_connections: 4096,
            max_requests: 1024,
            max_detached: 256,
            max_revoked: 10_000,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            stateless: false,
            session_lifetime: Duration::from_secs(24 * 60 * 60),
            max_sessions: 10_000,
            max_streams: 4096,
            max_waiting: 256,
            max_unfinished_bytes: 128 << 20,
            max_unread_bytes: 64 << 20,
            resumable: true,
            event_bounds: EventBounds::default(),
            event_store: None,
            caller: None,
            trusts_all: false,
            suspects: Vec::new(),
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("path", &self.path)
            .field("allowed_hosts", &self.allowed_hosts)
            .field("allowed_origins", &self.allowed_origins)
            .field("any_host", &self.any_host)
            .field("stateless", &self.stateless)
            .finish_non_exhaustive()
    }
}

impl HttpOptions {
    /// Everything that cannot be served. The builder calls it once.
    pub(crate) fn check(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for path in [Some(&self.path), self.sse_path.as_ref()].into_iter().flatten() {
            if !path.starts_with('/') || path.contains(['{', '}', '*', '?', '#']) {
                problems.push(format!("`{path}` is not a path for an endpoint\nwrite one such as `/mcp`"));
            }
        }
        if self.sse_path.as_ref() == Some(&self.path) {
            problems
                .push(format!("`{}` is the path of both transports\nserve HTTP+SSE at `/sse`", self.path));
        }
        for host in &self.allowed_hosts {
            if !is_authority(host) {
                problems.push(format!(
                    "`{host}` is not a host\nwrite `mcp.example.com` or `mcp.example.com:8443`"
                ));
            }
        }
        for origin in &self.allowed_origins {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            let whole = authority.is_some_and(is_authority);
            if !whole && origin != "null" {
                problems.push(format!(
                    "`{origin}` is not an origin\nwrite `https://app.example.com`, without a path"
                ));
            }
        }
        problems
    }
}

/// Whether a text is `host[:port]`.
fn is_authority(text: &str) -> bool {
    let port_is_right =
        |authority: Authority| authority.as_str() == authority.host() || authority.port_u16().is_some();
    !text.contains(['*', '@']) && text.parse::<Authority>().is_ok_and(port_is_right)
}
