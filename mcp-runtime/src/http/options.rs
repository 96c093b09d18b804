//! Every bound and switch of the HTTP transport, and the builder's methods that set them.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::Arc,
    time::Duration,
};

use axum::http::{Extensions, Method, Request, request::Parts};

use super::guard::split;
use crate::{
    context::Caller,
    registry::Problem,
    server::{LONGEST, RequestType, ServerBuilder},
    session::{Bounds, EventStore, Events},
};

type FindCaller = Arc<dyn Fn(&Parts) -> Option<Caller> + Send + Sync>;

/// The bounds and switches of one server's HTTP transport.
#[derive(Clone)]
pub(crate) struct HttpOptions {
    pub(super) path: String,
    /// Where the transport of 2024-11-05 is served.
    pub(super) sse_path: Option<String>,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) allowed_origins: Vec<String>,
    pub(super) any_host: bool,
    /// Bytes of a request's body.
    pub(super) max_body: usize,
    pub(super) max_connections: usize,
    /// Requests that are served at once.
    pub(super) max_requests: usize,
    /// Calls that run on after their client went away.
    pub(super) max_detached: usize,
    /// Sessions that are remembered as ended.
    pub(super) max_revoked: usize,
    /// How long a client may take for a request's headers, and stay silent between requests.
    pub(super) header_timeout: Duration,
    /// How long a client may take for a request's body.
    pub(super) body_timeout: Duration,
    pub(super) stateless: bool,
    pub(super) session_lifetime: Duration,
    /// Sessions of which more is kept than their ids say.
    pub(super) max_sessions: usize,
    /// Streams that are opened with GET.
    pub(super) max_streams: usize,
    /// Whether events have ids.
    pub(super) resumable: bool,
    /// What is kept of them in memory.
    pub(super) event_bounds: Bounds,
    /// Kept there instead.
    pub(super) event_store: Option<Arc<dyn EventStore>>,
    pub(super) caller: Option<FindCaller>,
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
            resumable: true,
            event_bounds: Bounds::default(),
            event_store: None,
            caller: None,
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
    /// The paths of all endpoints.
    pub(super) fn paths(&self) -> Vec<String> {
        std::iter::once(&self.path).chain(&self.sse_path).cloned().collect()
    }

    /// Whether there is an endpoint at that path.
    pub(super) fn serves(&self, path: &str) -> bool {
        self.path == path || self.sse_path.as_deref() == Some(path)
    }

    /// Whether a request opens a stream of the transport of 2024-11-05.
    pub(super) fn opens_old<B>(&self, request: &Request<B>) -> bool {
        request.method() == Method::GET && self.sse_path.as_deref() == Some(request.uri().path())
    }

    /// Where events are kept.
    pub(super) fn events(&self) -> Arc<dyn EventStore> {
        self.event_store.clone().unwrap_or_else(|| Arc::new(Events::new(self.event_bounds)))
    }

    /// Everything that cannot be served. The builder calls it once.
    pub(crate) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for path in std::iter::once(&self.path).chain(&self.sse_path) {
            if !path.starts_with('/') || path.contains(['{', '}', '*', '?', '#']) {
                problems.push(format!("`{path}` is no path for an endpoint\nwrite one such as `/mcp`"));
            }
        }
        if self.sse_path.as_ref() == Some(&self.path) {
            problems
                .push(format!("`{}` is the path of both transports\nserve HTTP+SSE at `/sse`", self.path));
        }
        for host in &self.allowed_hosts {
            if split(host).is_none() || host.contains(['/', '*', '@']) {
                problems
                    .push(format!("`{host}` is no host\nwrite `mcp.example.com` or `mcp.example.com:8443`"));
            }
        }
        for origin in &self.allowed_origins {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            let whole = authority.is_some_and(|a| split(a).is_some() && !a.contains(['/', '*', '@']));
            if !whole && origin != "null" {
                problems.push(format!(
                    "`{origin}` is no origin\nwrite `https://app.example.com`, without a path"
                ));
            }
        }
        problems.into_iter().map(Problem::new).collect()
    }
}

/// Options of the HTTP transport.
impl ServerBuilder {
    /// Serves requests for these hosts, instead of those for this machine's own names.
    ///
    /// An entry is a host (`mcp.example.com`, any port) or a host with a port. `X-Forwarded-Host` is not looked at.
    pub fn allowed_hosts<S: Into<String>>(mut self, hosts: impl IntoIterator<Item = S>) -> Self {
        self.options.http.allowed_hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Admits pages of these origins (`https://app.example.com`, or `null`), instead of those of this machine.
    ///
    /// Requests without `Origin`, which no browser sends, are always admitted.
    pub fn allowed_origins<S: Into<String>>(mut self, origins: impl IntoIterator<Item = S>) -> Self {
        self.options.http.allowed_origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Serves requests for any host.
    ///
    /// For servers behind a proxy that checks hosts itself. Anywhere else it lets web pages reach the server through
    /// a name of their own. Origins are checked all the same.
    pub fn any_host(mut self) -> Self {
        self.options.http.any_host = true;
        self
    }

    /// Sets how many bytes the body of an HTTP request may have; 4 MiB by default. More is `413`.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.options.http.max_body = bytes;
        self
    }

    /// Sets how many HTTP connections may be open; 4096 by default. More wait to be accepted.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.options.http.max_connections = connections.max(1);
        self
    }

    /// Sets how many requests may be served at once over HTTP; 1024 by default. More are answered `503`.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.options.http.max_requests = requests.max(1);
        self
    }

    /// Serves handshake-era clients without sessions: any request is served by itself, by any replica.
    ///
    /// Requests cannot be cancelled then, and clients cannot be asked.
    pub fn stateless(mut self) -> Self {
        self.options.http.stateless = true;
        self
    }

    /// Sets how long a session of the handshake era lasts, from `initialize` on; 24 hours by default, a year
    /// at most.
    pub fn session_lifetime(mut self, lifetime: Duration) -> Self {
        self.options.http.session_lifetime = lifetime.min(LONGEST);
        self
    }

    /// Sets of how many handshake-era sessions something may be remembered: log levels, subscriptions, open streams;
    /// 10 000 by default.
    ///
    /// A session costs no memory otherwise. Of one too many the session that has been idle for longest is forgotten:
    /// it goes on, without what it had set. Sessions with open streams are not forgotten.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.options.http.max_sessions = sessions.max(1);
        self
    }

    /// Sets how many event streams may be open with `GET`; 4096 by default. More are answered `503`.
    ///
    /// Their sessions count among the [subscribers](Self::max_subscribers) as well.
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.options.http.max_streams = streams;
        self
    }

    /// Sets whether clients of the handshake era can take up event streams whose connection broke; `true` by default.
    ///
    /// Without it events have no ids and are not kept, and [`Context::close_stream`](crate::Context::close_stream)
    /// does nothing.
    pub fn resumable(mut self, resumable: bool) -> Self {
        self.options.http.resumable = resumable;
        self
    }

    /// Sets how much of event streams is kept in memory for clients that come back: bytes of all events, streams, and
    /// events of one stream; 16 MiB, 4096 and 1024 by default.
    ///
    /// What is oldest goes first.
    pub fn max_events(mut self, bytes: usize, streams: usize, events: usize) -> Self {
        self.options.http.event_bounds = Bounds { bytes, streams, events };
        self
    }

    /// Keeps the events of streams in that store, instead of in memory.
    pub fn event_store(mut self, store: impl EventStore + 'static) -> Self {
        self.options.http.event_store = Some(Arc::new(store));
        self
    }

    /// Tells callers apart by what `find` makes of a request's head; `None` is an anonymous caller,
    /// from whom everything with `scopes` is hidden.
    ///
    /// It runs before the body is read. Sessions belong to the caller that started them.
    pub fn caller(mut self, find: impl Fn(&Parts) -> Option<Caller> + Send + Sync + 'static) -> Self {
        self.options.http.caller = Some(Arc::new(find));
        self.options.authenticates = true;
        self
    }

    /// Declares a type that middleware puts into requests as an extension, as `T` or as `Arc<T>`; functions take it
    /// as `&T`.
    pub fn from_request<T: Clone + Send + Sync + 'static>(mut self) -> Self {
        self.request_types.push(RequestType {
            id: TypeId::of::<T>(),
            extract: Arc::new(|extensions: &dyn Any, slots| {
                let Some(extensions) = extensions.downcast_ref::<Extensions>() else { return };
                if let Some(shared) = extensions.get::<Arc<T>>() {
                    slots.put(shared.clone());
                } else if let Some(value) = extensions.get::<T>() {
                    slots.put(value.clone());
                }
            }),
        });
        self
    }

    /// Serves HTTP+SSE as well, the transport of 2024-11-05 that newer revisions have replaced, at a path of its own.
    ///
    /// For clients that know no other; not at all by default. A client opens an event stream there with GET, and
    /// sends its messages to the URL that the first event names. The stream is its session: it ends when the
    /// connection does, and is not shared between replicas.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!().legacy_sse("/sse").build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn legacy_sse(mut self, path: impl Into<String>) -> Self {
        self.options.http.sse_path = Some(path.into());
        self
    }

    /// Sets the path of the endpoint; `/mcp` by default.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.http.path = path.into();
        self
    }
}
