//! Every bound and switch of the HTTP transport, each with its default.

#[path = "trusted_proxies.rs"]
mod trusted_proxies;

use std::{
    any::{Any, TypeId},
    fmt,
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use http::{Uri, request::Parts, uri::Authority};

pub(crate) use self::trusted_proxies::ForwardedClient;
use self::trusted_proxies::TrustedProxies;
use super::{LONGEST, Options};
use crate::auth::Authenticator;
use crate::core::{
    arguments::BoxFuture,
    bound::Texts,
    connection::{AccessRules, ImpliesFn, Principal},
    extensions::Extensions,
};

/// Copies one type from the request extensions of `http` into those of a request.
type Extract = Arc<dyn Fn(&dyn Any, &mut Extensions) + Send + Sync>;

/// A type that middleware inserts into HTTP requests.
#[derive(Clone)]
pub(crate) struct RequestType {
    pub(crate) id: TypeId,
    pub(crate) extract: Extract,
}

/// A user's check of whether the server can do its work.
#[derive(Clone)]
pub(crate) struct ReadinessCheck {
    /// For the log.
    pub(crate) name: Arc<str>,
    pub(crate) run: Arc<dyn Fn() -> BoxFuture<bool> + Send + Sync>,
}

/// The endpoints for health probes.
#[derive(Clone)]
pub(crate) struct HealthOptions {
    /// The paths of liveness and readiness; `None` if neither is served.
    pub(crate) paths: Option<(String, String)>,
    pub(crate) checks: Vec<ReadinessCheck>,
}

impl Default for HealthOptions {
    fn default() -> Self {
        let paths = Some(("/healthz".into(), "/readyz".into()));
        Self { paths, checks: Vec::new() }
    }
}

type FindCaller = Arc<dyn Fn(&Parts) -> Option<Principal> + Send + Sync>;

type FindAddress = Arc<dyn Fn(&Parts, Option<IpAddr>) -> Option<IpAddr> + Send + Sync>;

/// The bounds and switches of one server's HTTP transport.
#[derive(Clone)]
#[must_use]
pub struct HttpOptions {
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
    /// Sessions that are remembered as started or ended.
    pub(crate) max_session_records: usize,
    /// How long a client may take for a request's headers, and stay silent between requests.
    pub(crate) header_timeout: Duration,
    /// How long a client may take for a request's body.
    pub(crate) body_timeout: Duration,
    pub(crate) stateless: bool,
    pub(crate) session_lifetime: Duration,
    /// Sessions of which more is kept than their ids say.
    pub(crate) max_sessions: usize,
    /// Streams that are open for as long as their clients like.
    pub(crate) max_streams: usize,
    /// How long one of them stays open.
    pub(crate) max_stream_age: Duration,
    /// Whether events have ids.
    pub(crate) resumable: bool,
    pub(crate) caller: Option<FindCaller>,
    /// Authenticates callers, instead of `caller`.
    pub(crate) authenticator: Option<Arc<Authenticator>>,
    /// Which scopes imply others.
    pub(crate) implies: Option<ImpliesFn>,
    /// The address of a client behind a proxy.
    pub(crate) client_address: Option<FindAddress>,
    /// Proxies that name the address of a client.
    pub(crate) trusted_proxies: TrustedProxies,
    /// The problems with the given proxies.
    proxy_errors: Vec<String>,
    /// Whether their header was named.
    has_forwarded_header: bool,
    /// Callers are not told apart, and scopes are granted to all of them.
    pub(crate) trusts_all: bool,
    /// Types that middleware inserts into requests.
    pub(crate) request_types: Vec<RequestType>,
    pub(crate) health: HealthOptions,
    /// How long requests are still accepted after the signal to stop.
    pub(crate) shutdown_delay: Duration,
    /// Clients reach the server only through a proxy, which terminates TLS.
    pub(crate) behind_proxy: bool,
    /// Set when the server is built.
    #[cfg(feature = "server-card")]
    pub(crate) card: Option<super::ServerCard>,
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
            max_session_records: 50_000,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            stateless: false,
            session_lifetime: Duration::from_secs(24 * 60 * 60),
            max_sessions: 10_000,
            max_streams: 3072,
            max_stream_age: Duration::from_secs(2 * 60 * 60),
            resumable: true,
            caller: None,
            authenticator: None,
            implies: None,
            client_address: None,
            trusted_proxies: TrustedProxies::default(),
            proxy_errors: Vec::new(),
            has_forwarded_header: false,
            trusts_all: false,
            request_types: Vec::new(),
            health: HealthOptions::default(),
            shutdown_delay: Duration::ZERO,
            behind_proxy: false,
            #[cfg(feature = "server-card")]
            card: None,
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

impl Options {
    pub(super) fn http_tells_callers_apart(&self) -> bool {
        self.http.identifies_callers() || !self.http.request_types.is_empty()
    }

    /// Adds a check of an addition.
    pub(crate) fn add_readiness_check(
        &mut self,
        name: Arc<str>,
        run: Arc<dyn Fn() -> BoxFuture<bool> + Send + Sync>,
    ) {
        self.http.health.checks.push(ReadinessCheck { name, run });
    }

    /// The largest message of a client over any transport, in bytes.
    pub(crate) fn max_message(&self) -> usize {
        self.http.max_body.max(super::MAX_LINE)
    }

    /// How a server that identifies callers decides what they may do.
    pub(crate) fn access_rules(&self) -> AccessRules {
        let HttpOptions { authenticator, implies, .. } = &self.http;
        let acquirable = authenticator.as_ref().map(|auth| auth.scopes().to_vec()).unwrap_or_default();
        AccessRules { acquirable, implies: implies.clone(), visible: self.lists.visible.clone() }
    }

    /// The problem with the scopes of an item: no caller can have one of them.
    pub(crate) fn check_scopes(&self, scopes: &[String]) -> Option<String> {
        let listed = self.http.authenticator.as_ref()?.all_scopes()?;
        let implies = &self.http.implies;
        let is_granted = |scope: &&String| {
            listed.iter().any(|listed| {
                listed == *scope || implies.as_ref().is_some_and(|implies| implies(listed, scope))
            })
        };
        let missing = scopes.iter().find(|scope| !is_granted(scope))?;
        let fix = match crate::schema::nearest(missing, listed.iter().map(String::as_str)) {
            Some(listed) => format!("did you mean `{listed}`?"),
            None => "add it there if the authorization server grants it to those who ask, or to `.unlisted_scopes([..])` if not".to_owned(),
        };
        Some(format!(
            "needs the scope `{missing}`, which `.scopes([..])` of `Oauth` does not have, so that callers cannot ask for it\n{fix}"
        ))
    }

    /// The value of `WWW-Authenticate` for a caller that needs these scopes, separated by spaces.
    pub(crate) fn scope_challenge(&self, scopes: &str) -> Option<String> {
        self.http.authenticator.as_ref().map(|auth| auth.scope_challenge(scopes))
    }

    /// The types that middleware inserts into requests.
    pub(crate) fn request_type_ids(&self) -> Arc<[TypeId]> {
        self.http.request_types.iter().map(|request_type| request_type.id).collect()
    }
}

impl HttpOptions {
    /// Whether the endpoint seems to be at a URL that is published. Proxies may add a prefix to its path, but not a suffix.
    pub(crate) fn is_at(&self, url: &str) -> bool {
        let url: Result<Uri, _> = url.parse();
        url.map_or(true, |url| url.path().trim_end_matches('/').ends_with(self.path.trim_end_matches('/')))
    }

    /// The paths of the endpoint, of HTTP+SSE and of the probes.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        let health = self.health.paths.iter().flat_map(|(live, ready)| [live, ready]);
        [&self.path].into_iter().chain(&self.sse_path).chain(health)
    }

    /// Everything that cannot be served. The builder calls it once.
    pub(crate) fn check(&self) -> Vec<String> {
        let mut problems = self.proxy_errors.clone();
        if self.client_address.is_some() && !self.trusted_proxies.is_empty() {
            problems.push(
                "`client_address` and `trusted_proxies` both find the address of a client\nremove one of them".into(),
            );
        }
        if self.has_forwarded_header && self.trusted_proxies.is_empty() {
            problems.push(
                "`forwarded_header` names what trusted proxies write, and there are none\n\
                 name them: `.http(|http| http.trusted_proxies([\"10.0.0.0/8\"]))`"
                    .into(),
            );
        }
        for path in self.paths() {
            if !is_path(path) {
                problems.push(format!("`{path}` is not a path for an endpoint\nwrite one such as `/mcp`"));
            }
        }
        if self.sse_path.as_ref() == Some(&self.path) {
            problems
                .push(format!("`{}` is the path of both transports\nserve HTTP+SSE at `/sse`", self.path));
        }
        if let Some((live, ready)) = &self.health.paths
            && let Some(path) =
                [live, ready].into_iter().find(|path| self.paths().filter(|other| other == path).count() > 1)
        {
            problems.push(format!(
                "`{path}` is the path of a probe and of something else\n\
                 write `.http(|http| http.health_paths(\"/live\", \"/ready\"))`, or `.without_health()`"
            ));
        }
        for host in &self.allowed_hosts {
            if !is_authority(host) {
                problems.push(format!(
                    "`{host}` is not a host\nwrite `mcp.example.com` or `mcp.example.com:8443`"
                ));
            }
        }
        for origin in &self.allowed_origins {
            if !is_origin(origin) && origin != "null" {
                problems.push(format!(
                    "`{origin}` is not an origin\nwrite `https://app.example.com`, without a path"
                ));
            }
        }
        problems
    }
}

impl HttpOptions {
    /// Whether something says that clients reach the server through a proxy.
    pub(crate) fn is_behind_proxy(&self) -> bool {
        self.behind_proxy || self.client_address.is_some() || !self.trusted_proxies.is_empty()
    }
}

pub(crate) fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains(['{', '}', '*', '?', '#'])
}

/// Whether a text is a scheme and `host[:port]`.
pub(crate) fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, authority)| is_authority(authority))
}

/// Whether a text is `host[:port]`.
fn is_authority(text: &str) -> bool {
    let port_is_right =
        |authority: Authority| authority.as_str() == authority.host() || authority.port_u16().is_some();
    !text.contains(['*', '@']) && text.parse::<Authority>().is_ok_and(port_is_right)
}

impl HttpOptions {
    /// Serves requests for these hosts, instead of those for this machine's own names.
    ///
    /// An entry is a host (`mcp.example.com`, any port) or a host with a port. `X-Forwarded-Host` is ignored.
    pub fn allowed_hosts(mut self, hosts: impl Texts) -> Self {
        self.allowed_hosts.extend(hosts.into_texts());
        self
    }

    /// Admits pages of these origins (`https://app.example.com`, or `null`), instead of those of this machine, which
    /// are admitted only to this machine's own names.
    ///
    /// Requests without `Origin`, which no browser sends, are always admitted.
    pub fn allowed_origins(mut self, origins: impl Texts) -> Self {
        self.allowed_origins.extend(origins.into_texts());
        self
    }

    /// Serves requests for any host.
    ///
    /// For servers behind a proxy that checks hosts itself. Anywhere else it lets web pages reach the server through
    /// a name of their own. Origins are checked all the same: without
    /// [`allowed_origins`](Self::allowed_origins) no web page is admitted to a public host.
    pub fn any_host(mut self) -> Self {
        self.any_host = true;
        self
    }

    /// Sets how many bytes the body of an HTTP request may have; 4 MiB by default. More is `413`.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets how many HTTP connections may be open; 4096 by default, and half of them
    /// from one address. More wait to be accepted; those of an address that has its share are closed.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// Sets how many requests may be served at once over HTTP; 1024 by default, and
    /// half of them for one client. More are answered `503`.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests.max(1);
        self
    }

    /// Sets how long a client may take for the head of a request, and stay silent between requests; 30 s by default.
    pub fn header_timeout(mut self, limit: Duration) -> Self {
        self.header_timeout = limit.min(LONGEST);
        self
    }

    /// Sets how long a client may take for the body of a request; 60 s by default.
    pub fn body_timeout(mut self, limit: Duration) -> Self {
        self.body_timeout = limit.min(LONGEST);
        self
    }

    /// Serves clients of revisions before 2026-07-28 without sessions: any request is served by itself, by any replica.
    ///
    /// Requests cannot be cancelled then, and clients cannot be asked.
    pub fn stateless(mut self) -> Self {
        self.stateless = true;
        self
    }

    /// Sets how long a legacy session lasts, from `initialize` on; 24 hours by default, a year at most.
    pub fn session_lifetime(mut self, lifetime: Duration) -> Self {
        self.session_lifetime = lifetime.min(LONGEST);
        self
    }

    /// Sets how many legacy sessions may have stored state (log levels, subscriptions, open streams); 10,000
    /// by default.
    ///
    /// Other sessions use no memory. Beyond the limit, the state of the longest-idle session is dropped; the
    /// session itself continues. The state of sessions with open streams is kept.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions.max(1);
        self
    }

    /// Sets how many event streams may be open with `subscriptions/listen` or `GET`; 3072 by default, at most three
    /// quarters of the [connections](Self::max_connections) where the server accepts those, and
    /// half of that for one client. More are answered `503`.
    ///
    /// They count among the [subscribers](super::Limits::max_subscribers) as well.
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.max_streams = streams;
        self
    }

    /// Disables resumption: legacy clients cannot resume an event stream after its connection breaks.
    ///
    /// Their events have no ids and are not kept, and [`Context::close_stream`](crate::Context::close_stream) does
    /// nothing.
    pub fn without_resumption(mut self) -> Self {
        self.resumable = false;
        self
    }

    /// Whether callers are told apart.
    pub(crate) fn identifies_callers(&self) -> bool {
        self.caller.is_some() || self.authenticator.is_some()
    }

    /// Lets a granted scope imply others: `implies` gets a scope that was granted and one that an item requires, and
    /// returns whether the first includes the second. By default a scope includes itself only.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// // `notes` includes `notes:read`
    /// let server = mcp_runtime::server!()
    ///     .http(|http| {
    ///         http.implied_scopes(|granted, required| {
    ///             required.strip_prefix(granted).is_some_and(|rest| rest.starts_with(':'))
    ///         })
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn implied_scopes(mut self, implies: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> Self {
        self.implies = Some(Arc::new(implies));
        self
    }

    /// Tells callers apart by what `find` makes of a request's head; `None` is an anonymous caller,
    /// from whom everything with `scopes` is hidden.
    ///
    /// It runs before the body is read. Sessions belong to the caller that started them. A principal that has
    /// [expired](Principal::with_expiry), or whose subject is empty, is an anonymous caller. `find` does not see a header
    /// that a request has several times: one of them may be a proxy's, and another the client's.
    pub fn caller(mut self, find: impl Fn(&Parts) -> Option<Principal> + Send + Sync + 'static) -> Self {
        self.caller = Some(Arc::new(find));
        self
    }

    /// Tells callers apart by what middleware has put into requests, as `T` or as `Arc<T>`; functions take it as `&T`. A
    /// request without it comes from an anonymous caller, from whom everything with `scopes` is hidden.
    ///
    /// Sessions, tasks and the state of unfinished calls belong to the caller that started them.
    ///
    /// ```
    /// use mcp_runtime::{Principal, http::IntoPrincipal};
    ///
    /// #[derive(Clone)]
    /// struct User { id: u64 }
    ///
    /// impl IntoPrincipal for User {
    ///     fn into_principal(self) -> Option<Principal> {
    ///         Some(Principal::new("https://example.com", self.id.to_string()))
    ///     }
    /// }
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!().http(|http| http.caller_from::<User>()).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn caller_from<T: IntoPrincipal + Clone + Send + Sync + 'static>(self) -> Self {
        let find = |parts: &Parts| {
            let shared = parts.extensions.get::<Arc<T>>().map(|shared| T::clone(shared));
            shared.or_else(|| parts.extensions.get::<T>().cloned())?.into_principal()
        };
        self.from_request::<T>().caller(find)
    }

    /// Believes the proxies with these addresses, or in these networks, when they name the address of a client in
    /// `X-Forwarded-For`, or in the header of [`forwarded_header`](Self::forwarded_header). Other peers are clients
    /// themselves, whatever they write into a header.
    ///
    /// Entries are read from the right, where proxies append them, up to the first that is not a trusted proxy. An entry on
    /// the way that is not an address is answered `400`; `unknown` stands for the clients of the proxy that wrote it. A
    /// request without the header, such as a health check, is one of the proxy's own.
    ///
    /// One client uses half of each limit, and has its own
    /// [rate](super::Limits::rate); without this, all clients behind a proxy are one, unless [principals](Self::caller)
    /// are known. The connections of proxies are limited in total only.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!()
    ///     .http(|http| http.trusted_proxies(["10.0.0.0/8", "2001:db8::7"]))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Where [`into_service`](crate::Server::into_service) is mounted, the peer is what the HTTP server puts into the
    /// request's extensions: axum's `ConnectInfo<SocketAddr>`, or a plain `SocketAddr`. Without either, no header is
    /// believed.
    pub fn trusted_proxies(mut self, proxies: impl Texts) -> Self {
        for proxy in proxies.into_texts() {
            self.proxy_errors.extend(self.trusted_proxies.add(&proxy).err());
        }
        self
    }

    /// Sets the header in which [trusted proxies](Self::trusted_proxies) name a client; `X-Forwarded-For` by default.
    ///
    /// It must be the one that your proxy writes. Any other is what a client has written, and is ignored. `Forwarded` is
    /// read as [RFC 7239](https://www.rfc-editor.org/rfc/rfc7239) has it, any other name as a list of addresses, so that
    /// `X-Real-IP` and its like can be named as well.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!()
    ///     .http(|http| http.trusted_proxies(["10.0.0.0/8"]).forwarded_header("Forwarded"))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`build`](crate::ServerBuilder::build) fails if it is not the name of a header, or if no proxy is trusted.
    pub fn forwarded_header(mut self, name: &str) -> Self {
        self.proxy_errors.extend(self.trusted_proxies.set_header(name).err());
        self.has_forwarded_header = true;
        self
    }

    /// Names the address of a client that is not at the other end of the connection: behind a proxy, which is `peer`, and
    /// names the client in its own way; for a header with addresses, use
    /// [`trusted_proxies`](Self::trusted_proxies). `None` leaves it at `peer`.
    ///
    /// One client uses half of each limit; without this, all clients behind a
    /// proxy have that share together, unless [principals](Self::caller) are known. Anyone can write headers: read only
    /// the header that your proxy has written, and only if clients cannot reach the server directly. Connections are
    /// limited in total only, since they are the proxy's.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!()
    ///     .http(|http| {
    ///         http.client_address(|parts, _peer| {
    ///             parts.headers.get("cf-connecting-ip")?.to_str().ok()?.parse().ok()
    ///         })
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Where [`into_service`](crate::Server::into_service) is mounted, `peer` is what the HTTP server puts into the
    /// request's extensions: axum's `ConnectInfo<SocketAddr>`, or a plain `SocketAddr`. Without either, all clients
    /// without a principal are one.
    pub fn client_address(
        mut self,
        find: impl Fn(&Parts, Option<IpAddr>) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        self.client_address = Some(Arc::new(find));
        self
    }

    /// Grants every scope to every HTTP client, though the server cannot tell callers apart.
    ///
    /// Without this, a server whose items have `scopes` is not served over HTTP before [`caller`](Self::caller) or
    /// [`caller_from`](Self::caller_from) says who calls. Clients on stdio and in memory are always trusted.
    pub fn trust_all_callers(mut self) -> Self {
        self.trusts_all = true;
        self
    }

    /// Declares a type that middleware puts into requests as an extension, as `T` or as `Arc<T>`; functions take it
    /// as `&T`.
    ///
    /// A type that says who calls is declared with [`caller_from`](Self::caller_from) instead: otherwise sessions, tasks
    /// and unfinished calls are not bound to it.
    pub fn from_request<T: Clone + Send + Sync + 'static>(mut self) -> Self {
        self.request_types.push(RequestType {
            id: TypeId::of::<T>(),
            extract: Arc::new(|extensions: &dyn Any, found| {
                let Some(extensions) = extensions.downcast_ref::<http::Extensions>() else { return };
                if let Some(shared) = extensions.get::<Arc<T>>() {
                    found.insert(shared.clone());
                } else if let Some(value) = extensions.get::<T>() {
                    found.insert(value.clone());
                }
            }),
        });
        self
    }

    /// Sets the paths that answer probes: whether the process is alive, and whether it should get requests; `/healthz` and
    /// `/readyz` by default.
    ///
    /// A `GET` or `HEAD` is answered `200`, or `503` if the server is not [ready](Self::readiness) or has been told to
    /// stop. Probes name the server by its address, so that neither hosts nor callers are checked. They are part of
    /// [`run`](crate::ServerBuilder::run), of `serve_http` and of [`into_router`](crate::Server::into_router), but not of
    /// [`into_service`](crate::Server::into_service).
    pub fn health_paths(mut self, live: impl Into<String>, ready: impl Into<String>) -> Self {
        self.health.paths = Some((live.into(), ready.into()));
        self
    }

    /// Leaves out the paths for [probes](Self::health_paths), such as in a router whose application has its own.
    pub fn without_health(mut self) -> Self {
        self.health.paths = None;
        self
    }

    /// Adds a check without which the server is not ready, such as whether its database answers. `name` is for the log.
    ///
    /// Checks run when a probe asks for `/readyz`, one after the other and at most once a second. All of them together
    /// have a second.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// static CONNECTED: AtomicBool = AtomicBool::new(true);
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!()
    ///     .http(|http| http.readiness("database", async || CONNECTED.load(Ordering::Relaxed)))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn readiness<F, Fut>(mut self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        let run = Arc::new(move || -> BoxFuture<bool> { Box::pin(check()) });
        self.health.checks.push(ReadinessCheck { name: name.into(), run });
        self
    }

    /// Sets how long the server goes on as before when it is told to stop, except that `/readyz` is `503` and each response
    /// closes its connection; not at all by default, a year at most. The
    /// [shutdown timeout](super::Limits::shutdown_timeout) begins after it. Idle connections stay open for another second.
    ///
    /// For load balancers that send requests until a probe fails, or until they have heard of it: Kubernetes removes an
    /// endpoint while it stops its container. Some seconds are usual.
    pub fn shutdown_delay(mut self, delay: Duration) -> Self {
        self.shutdown_delay = delay.min(LONGEST);
        self
    }

    /// States that clients reach the server only through a proxy, which terminates TLS. Without it, and without
    /// [`trusted_proxies`](Self::trusted_proxies) or [`client_address`](Self::client_address), a server warns when it starts to serve plain HTTP on a public address.
    pub fn behind_proxy(mut self) -> Self {
        self.behind_proxy = true;
        self
    }

    /// Sets the path of the endpoint; `/mcp` by default.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }
}

/// Types that say who calls, as middleware puts them into requests; see
/// [`HttpOptions::caller_from`].
pub trait IntoPrincipal {
    /// The caller; `None` is an anonymous one.
    fn into_principal(self) -> Option<Principal>;
}

/// For middleware that puts the principal itself into requests.
impl IntoPrincipal for Principal {
    fn into_principal(self) -> Option<Principal> {
        Some(self)
    }
}
