//! Options of a client, each with its default.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;
#[cfg(feature = "client-oauth")]
use serde_json::json;

use super::{
    client_limits::ClientLimits,
    shared_client::SharedClient,
    target::{IntoTarget, Target},
};
use crate::{
    client::{
        Client, Error,
        link::http_link::HeaderHook,
        operation::Alarm,
        receive::handlers::{
            AsyncAnswer, ChangeEvent, ElicitAnswer, FormRequest, Handlers, LogMessage, ProgressUpdate,
            SampleAnswer, SampleRequest, UrlRequest, async_handler,
        },
        requests::read_cache::ReadCacheBounds,
    },
    core::{
        arguments::BoxFuture,
        bound::Configure,
        client_request::Root,
        protocol::{Revision, check_extension},
    },
    fetch::Reach,
};

/// Options that a connection needs: what a builder sets, one field for each of its methods.
#[derive(Clone)]
pub(in crate::client) struct ClientOptions {
    pub(in crate::client) name: String,
    pub(in crate::client) version: String,
    pub(in crate::client) revision: Option<Revision>,
    pub(in crate::client) timeout: Duration,
    pub(in crate::client) request_timeout: Duration,
    pub(in crate::client) probe_timeout: Duration,
    pub(in crate::client) max_message: usize,
    pub(in crate::client) respawn: bool,
    pub(in crate::client) http_sse: bool,
    /// Whether a catalog may lead to another origin.
    pub(in crate::client) follows_origins: bool,
    /// Which addresses the server may have; `None` if the program has named it.
    pub(in crate::client) reach: Option<Reach>,
    /// Certificates of authorities in DER, in addition to those of the operating system.
    pub(in crate::client) roots: Vec<CertificateDer<'static>>,
    pub(in crate::client) inherit_environment: bool,
    pub(in crate::client) environment: Vec<(String, String)>,
    pub(in crate::client) hook: Option<HeaderHook>,
    #[cfg(feature = "client-oauth")]
    pub(in crate::client) oauth: Option<crate::client::OAuth>,
    pub(in crate::client) read_cache: ReadCacheBounds,
    pub(in crate::client) limits: ClientLimits,
    pub(in crate::client) alarm: Arc<Alarm>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: None,
            timeout: Duration::from_secs(60 * 60),
            request_timeout: Duration::from_secs(5 * 60),
            probe_timeout: Duration::from_secs(5),
            max_message: 64 << 20,
            respawn: false,
            http_sse: false,
            follows_origins: false,
            reach: None,
            roots: Vec::new(),
            inherit_environment: false,
            environment: Vec::new(),
            hook: None,
            #[cfg(feature = "client-oauth")]
            oauth: None,
            read_cache: ReadCacheBounds::default(),
            limits: ClientLimits::new(),
            alarm: Arc::default(),
        }
    }
}

/// A connection to a server, with options; created by [`Client::builder`].
#[must_use = "nothing is connected before `connect`"]
pub struct ClientBuilder {
    options: ClientOptions,
    handlers: Handlers,
    headers: Vec<(HeaderName, HeaderValue)>,
    hook: Option<HeaderHook>,
    invalid: Option<Error>,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("name", &self.options.name).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(in crate::client) fn new() -> Self {
        Self {
            options: ClientOptions::default(),
            handlers: Handlers::default(),
            headers: Vec::new(),
            hook: None,
            invalid: None,
        }
    }

    /// Sets the name and version that the server sees, also as the header `User-Agent`, `name/version mcp-runtime/version`,
    /// which [`header`](Self::header) replaces; those of this crate by default.
    pub fn info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.options.name = name.into();
        self.options.version = version.into();
        self
    }

    /// Uses only this revision; by default, the newest that both sides support.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.options.revision = Some(revision);
        self
    }

    /// Sets the timeout of a call, including all pages of a list, the rounds, the questions and the task of a call, and a
    /// new handshake; an hour by default. A call may override it. Connecting and lists have [separate
    /// limits](ClientLimits), which are shorter by default.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = limit;
        self
    }

    /// Sets the timeout of one request, unless the call overrides it; five minutes by default. A call may consist of
    /// several requests.
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.options.request_timeout = limit;
        self
    }

    /// Sets bounds on what the server can make the client wait for, receive and keep.
    pub fn limits(mut self, change: impl Configure<ClientLimits>) -> Self {
        self.options.limits = change(self.options.limits);
        self
    }

    /// Sets how long to wait for a response to `server/discover` before the client tries a legacy handshake as well; five
    /// seconds by default.
    pub fn probe_timeout(mut self, limit: Duration) -> Self {
        self.options.probe_timeout = limit;
        self
    }

    /// Sets the maximum size in bytes of a message from the server; 64 MiB by default.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.options.max_message = bytes.max(1 << 10);
        self
    }

    /// Sets how many contents of resources are cached, and how many bytes in total; 1,000 and 64 MiB by default. Those
    /// that were not used for long are evicted first. One entry, or none, disables the cache.
    pub fn read_cache(mut self, entries: usize, bytes: usize) -> Self {
        self.options.read_cache = ReadCacheBounds { entries, bytes };
        self
    }

    /// Starts a server's process again when a request finds it dead. The request during which it died is not repeated.
    pub fn respawn(mut self) -> Self {
        self.options.respawn = true;
        self
    }

    /// Uses HTTP+SSE, the transport of 2024-11-05; the URL is that of its event stream. By default a URL means streamable
    /// HTTP, which has replaced it.
    pub fn http_sse(mut self) -> Self {
        self.options.http_sse = true;
        self
    }

    /// Follows the [catalog](crate::guide::client#a-host-instead-of-an-endpoint) of a host to an endpoint of another origin,
    /// which gets no header of this builder; by default this is an error that names the endpoint. **Preview**: the format of the
    /// catalog is a draft.
    pub fn follow_origins(mut self) -> Self {
        self.options.follows_origins = true;
        self
    }

    /// Trusts these certificate authorities, in PEM, in addition to those of the operating system.
    pub fn root_certificates(mut self, pem: &str) -> Self {
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        match roots {
            Ok(roots) if !roots.is_empty() => self.options.roots.extend(roots),
            _ => self.invalid = Some(Error::invalid("the root certificates are not in PEM")),
        }
        self
    }

    /// Sets an environment variable of the server's process.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.environment.push((name.into(), value.into()));
        self
    }

    /// Passes the whole environment of this program to the server's process, with its credentials; by default it gets `PATH`,
    /// `HOME`, the language and a few others.
    pub fn inherit_environment(mut self) -> Self {
        self.options.inherit_environment = true;
        self
    }

    /// Sends a header with every HTTP request.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.headers.push((name, value));
            }
            _ => {
                self.invalid = Some(Error::invalid(format!("the header `{name}` or its value is not valid")));
            }
        }
        self
    }

    /// Sends `Authorization: Bearer` with every HTTP request.
    pub fn bearer_token(self, token: &str) -> Self {
        self.header(header::AUTHORIZATION.as_str(), &format!("Bearer {token}"))
    }

    /// Changes the headers of each HTTP request before it is sent, for tokens that change.
    pub fn headers_with(mut self, hook: impl Fn(&mut HeaderMap) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Gets access tokens from the server's authorization server when the server requires them.
    #[cfg(feature = "client-oauth")]
    pub fn oauth(mut self, oauth: crate::client::OAuth) -> Self {
        if let Some(extension) = oauth.extension() {
            self.handlers.extensions.insert(extension.to_owned(), json!({}));
        }
        self.options.oauth = Some(oauth);
        self
    }

    /// Declares an extension of the protocol that this program implements, with its settings, an object: a member of
    /// `extensions` in the capabilities that every request of 2026-07-28 has. Whether the server declares it,
    /// [`supports`](Client::supports) says. `OAuth::client_credentials` and `OAuth::enterprise`
    /// declare theirs.
    ///
    /// [`connect`](Self::connect) fails if the name is not a prefix and a name, such as `com.example/prices`.
    pub fn extension(mut self, name: impl Into<String>, settings: impl Into<Value>) -> Self {
        let (name, settings) = (name.into(), settings.into());
        match check_extension(&name, &settings) {
            Ok(()) => drop(self.handlers.extensions.insert(name, settings)),
            Err(error) => self.invalid = Some(Error::invalid(error)),
        }
        self
    }

    /// Shows the server's forms to the user, and declares the capability. An answer that accepts has the
    /// form's values; members that have a default in the schema may be left out. Values that the schema does not allow are
    /// not sent: the call fails with [`Error::Handler`].
    pub fn on_elicit<F, Fut>(mut self, f: F) -> Self
    where
        F: Fn(FormRequest) -> Fut + Send + Sync + 'static,
        Fut: AsyncAnswer<Answer = ElicitAnswer> + Send + 'static,
    {
        self.handlers.elicit = Some(async_handler(f));
        self
    }

    /// Shows the server's URLs to the user, and declares the capability; the value of an answer that accepts is not sent.
    pub fn on_elicit_url<F, Fut>(mut self, f: F) -> Self
    where
        F: Fn(UrlRequest) -> Fut + Send + Sync + 'static,
        Fut: AsyncAnswer<Answer = ElicitAnswer> + Send + 'static,
    {
        self.handlers.elicit_url = Some(async_handler(f));
        self
    }

    /// Asks this program's model on behalf of the server, and declares the capability.
    pub fn on_sample<F, Fut>(mut self, f: F) -> Self
    where
        F: Fn(SampleRequest) -> Fut + Send + Sync + 'static,
        Fut: AsyncAnswer<Answer = Result<SampleAnswer, String>> + Send + 'static,
    {
        self.handlers.sample = Some(async_handler(f));
        self
    }

    /// Declares that the model of [`on_sample`](Self::on_sample) can use the tools in a request.
    pub fn sample_with_tools(mut self) -> Self {
        self.handlers.sample_tools = true;
        self
    }

    /// Lists the folders that the user works in, and declares the capability.
    pub fn on_roots<F, Fut>(mut self, f: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: AsyncAnswer<Answer = Vec<Root>> + Send + 'static,
    {
        self.handlers.roots = Some(async_handler(move |()| f()));
        self
    }

    /// Receives the server's log messages in order. The function must not block.
    pub fn on_log(mut self, f: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.handlers.log = Some(Arc::new(f));
        self
    }

    /// Receives lines of a server over byte streams that are not messages, such as what it logs to stdout, for `mcp-dev`.
    #[cfg(feature = "cli")]
    #[doc(hidden)]
    pub fn __on_stray_line(mut self, f: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.handlers.stray_line = Some(Arc::new(f));
        self
    }

    /// Receives the progress of every call without its own function. The function must not block.
    pub fn on_progress(mut self, f: impl Fn(ProgressUpdate) + Send + Sync + 'static) -> Self {
        self.handlers.progress = Some(Arc::new(f));
        self
    }

    /// Receives changes on the server, and subscribes to those of its lists. The function must not block.
    pub fn on_change(mut self, f: impl Fn(ChangeEvent) + Send + Sync + 'static) -> Self {
        self.handlers.change = Some(Arc::new(f));
        self
    }

    /// Connects and negotiates a revision, but requests no lists.
    ///
    /// # Errors
    /// The server cannot be reached or started, or supports no revision of this client.
    pub fn connect(self, target: impl IntoTarget) -> BoxFuture<Result<Client, Error>> {
        // an `async fn` that is generic repeats an error in the type of its argument at the call and at its `.await`
        Box::pin(self.connect_to(target.into_target()))
    }

    async fn connect_to(mut self, Target(target): Target) -> Result<Client, Error> {
        if let Some(invalid) = self.invalid {
            return Err(invalid);
        }
        for rate in [&self.options.limits.sampling_rate, &self.options.limits.elicitation_rate] {
            rate.as_ref().map_err(Error::invalid)?;
        }
        let (headers, hook) = (std::mem::take(&mut self.headers), self.hook.take());
        if !headers.is_empty() || hook.is_some() {
            self.options.hook = Some(Arc::new(move |map: &mut HeaderMap| {
                for (name, value) in &headers {
                    map.insert(name.clone(), value.clone());
                }
                if let Some(hook) = &hook {
                    hook(map);
                }
            }));
        }
        SharedClient::connect(self.options, self.handlers, target).await.map(Client::of_shared)
    }
}
