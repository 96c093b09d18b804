//! Every option of a server as plain data, each with its default. The public module `config` has them, one group for each
//! method of the builder.

#[cfg_attr(not(feature = "http"), path = "no_http.rs")]
pub(crate) mod http;
mod info;
#[cfg(feature = "server-card")]
mod server_card;
mod telemetry;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

#[cfg(feature = "http")]
pub use http::HttpOptions;
#[cfg(feature = "http")]
pub(crate) use http::{ForwardedClient, ReadinessCheck};
pub use info::ServerInfo;
#[cfg(feature = "server-card")]
pub(crate) use server_card::{CARD_SUFFIX, ServerCard};
pub use telemetry::TelemetryOptions;

pub use crate::core::connection::ItemView;
use crate::core::{
    admission::Rate,
    callback::Callback,
    changes::SubscriptionLimits,
    connection::{Access, Principal, VisibleFn},
    crypto::{GENERATE, Key, KeyRing},
    extensions::Extensions,
};

/// The longest time of any option, a year: its end can be computed on every platform.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The largest message on a byte stream: bytes of one line.
pub(crate) const MAX_LINE: usize = 4 << 20;

/// Every option of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) limits: Limits,
    pub(crate) lists: ListOptions,
    pub(crate) stdio: StdioOptions,
    pub(crate) stores: Stores,
    /// Options of capabilities and of the authentication of callers, by type.
    pub(crate) of_capabilities: Extensions,
    pub(crate) telemetry: TelemetryOptions,
    /// Extensions of the protocol that the program has, with their settings as JSON.
    pub(crate) extensions: Vec<(String, String)>,
    /// Whether failures show their cause to the client.
    pub(crate) detailed_errors: bool,
    #[cfg(feature = "http")]
    pub(crate) http: HttpOptions,
}

impl Options {
    /// Whether results may differ between callers, so that no shared cache may keep them: functions and scopes see who
    /// calls, or what middleware has put into the request.
    pub(crate) fn tells_callers_apart(&self) -> bool {
        self.http_tells_callers_apart() || self.stdio.caller.is_some()
    }

    /// What additions have brought, of one type.
    pub(crate) fn added<T: Clone + Send + Sync + 'static>(&self) -> Vec<T> {
        self.of_capabilities.get::<Vec<T>>().cloned().unwrap_or_default()
    }

    /// Takes over what an addition brings, or the additions of a mounted builder.
    pub(crate) fn add_all<T: Clone + Send + Sync + 'static>(&mut self, more: Vec<T>) {
        self.of_capabilities.insert([self.added(), more].concat());
    }

    /// Whether the server answers at this path over HTTP, without the card.
    #[cfg(feature = "server-card")]
    fn has_http_path(&self, path: &str) -> bool {
        self.http.paths().any(|known| known == path) || self.telemetry.metrics_path.as_deref() == Some(path)
    }
}

/// Bounds that hold for all transports.
#[derive(Debug, Clone)]
#[must_use]
pub struct Limits {
    pub(crate) max_in_flight: usize,
    pub(crate) max_queued: usize,
    /// Unset for the transport's own default.
    pub(crate) shutdown_timeout: Option<Duration>,
    pub(crate) write_timeout: Duration,
    pub(crate) client_request_timeout: Duration,
    pub(crate) subscriptions: SubscriptionLimits,
    /// How often one caller may send a request, or what is wrong with that.
    pub(crate) rate: Option<Result<Rate, String>>,
    /// Invalid tokens of one address.
    pub(crate) invalid_tokens: Result<Rate, String>,
    pub(crate) max_consumed_calls: usize,
    /// For functions without their own time limit.
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_concurrency_per_caller: Option<usize>,
    /// Bytes of a result, for items without their own limit.
    pub(crate) max_result: Option<usize>,
    /// Limits of capabilities, by type.
    pub(crate) of_capabilities: Extensions,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_in_flight: 256,
            max_queued: 1024,
            shutdown_timeout: None,
            write_timeout: Duration::from_secs(30),
            client_request_timeout: Duration::from_secs(5 * 60),
            subscriptions: SubscriptionLimits::default(),
            rate: None,
            invalid_tokens: Ok(Rate::new(60, Duration::from_secs(60))),
            max_consumed_calls: 10_000,
            timeout: None,
            max_concurrency_per_caller: None,
            max_result: None,
            of_capabilities: Extensions::default(),
        }
    }
}

impl Limits {
    /// Sets how often one caller may send a request: `"60/1m"`, `"5/s"`, a number and a time in `ms`, `s`, `m` or `h`.
    /// Not limited by default.
    ///
    /// A caller is a [principal](crate::Principal), or else an address. It may use the whole rate at once, and then gets it
    /// back evenly. More is refused, over HTTP with `429` and `Retry-After` before the body is read, elsewhere with
    /// `-32603`. Items have [rates](crate::guide::limits#rates) of their own besides, and so has a builder that is
    /// [mounted](crate::ServerBuilder::mount): all its items together.
    ///
    /// [`build`](crate::ServerBuilder::build) fails if it is not a rate.
    pub fn rate(mut self, rate: &str /* "60/1m" */) -> Self {
        self.rate = Some(Rate::parse(rate));
        self
    }

    /// Sets how many calls [`consume_once`](crate::Context::consume_once) remembers until they can no longer be retried,
    /// at all replicas together if they [share a store](crate::ServerBuilder::shared); 10,000 by default. Then it returns an
    /// error, and so it does if one client has half of them.
    pub fn max_consumed_calls(mut self, calls: usize) -> Self {
        self.max_consumed_calls = calls;
        self
    }

    /// Sets the time limit of functions without their own `timeout`, a year at most; unlimited by default.
    ///
    /// It holds for tools, resources, prompts, and the functions of `list` and `complete`, as far as they are `async` or
    /// `blocking`; a plain function cannot be interrupted. Calls of tools with `task` are limited by their own `timeout`
    /// only.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit.min(LONGEST));
        self
    }

    /// Sets how many calls of tools, resources and prompts one caller may run at once; not limited by
    /// default. More are refused. Items may set further limits.
    pub fn max_concurrency_per_caller(mut self, calls: usize) -> Self {
        self.max_concurrency_per_caller = Some(calls.max(1));
        self
    }

    /// Sets the maximum size, in bytes, of the result of a tool, resource or prompt without its own `max_result`;
    /// unlimited by default.
    ///
    /// A longer text of a tool is cut, with a notice; any other longer result is an error that names the size. See
    /// [results](crate::guide::limits#results).
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.max_result = Some(bytes);
        self
    }

    /// Sets how many calls may run at once on one connection; 256 by default.
    pub fn max_in_flight(mut self, calls: usize) -> Self {
        self.max_in_flight = calls.max(1);
        self
    }

    /// Sets how many requests of one connection may wait for a running call to end; 1024 by default.
    pub fn max_queued(mut self, requests: usize) -> Self {
        self.max_queued = requests;
        self
    }

    /// Sets how long calls may continue after the input has ended or the process received a signal to stop, a year at
    /// most. Those that exceed it are answered with an error. The default is 1.5 s on stdio, where the official clients kill a
    /// server soon after that, and 10 s elsewhere.
    pub fn shutdown_timeout(mut self, limit: Duration) -> Self {
        self.shutdown_timeout = Some(limit.min(LONGEST));
        self
    }

    /// Sets how long a client may read nothing before its connection is closed, over HTTP and on byte
    /// streams; 30 s by default, a year at most.
    ///
    /// On stdio the server waits for the host, however long that takes.
    pub fn write_timeout(mut self, limit: Duration) -> Self {
        self.write_timeout = limit.min(LONGEST);
        self
    }

    /// Sets how long a legacy client may take to respond when a function sends it a request; 5 minutes by default.
    pub fn client_request_timeout(mut self, limit: Duration) -> Self {
        self.client_request_timeout = limit.min(LONGEST);
        self
    }

    /// Sets how many subscribers a server has at once, over all transports; 5000 by default, and at most half of them for one
    /// client. More are refused: over HTTP with `503`.
    ///
    /// Every open `subscriptions/listen` is a subscriber, and so is every connection, or session with an open stream,
    /// of a legacy client that is notified of changes. Over HTTP other limits are reached first by default:
    /// `max_connections` and `max_streams`. If you raise those, you may have to raise this one.
    pub fn max_subscribers(mut self, subscribers: usize) -> Self {
        self.subscriptions.subscribers = subscribers;
        self
    }

    /// Sets how many resources one subscriber may subscribe to; 1024 by default.
    pub fn max_subscriptions(mut self, resources: usize) -> Self {
        self.subscriptions.uris = resources;
        self
    }
}

/// Options of the lists of tools, resources, prompts and skills.
#[derive(Debug, Clone)]
#[must_use]
pub struct ListOptions {
    pub(crate) page_size: usize,
    pub(crate) ttl: Duration,
    pub(crate) require_descriptions: bool,
    pub(crate) strict: bool,
    pub(crate) visible: Option<VisibleFn>,
    pub(crate) listed: Option<VisibleFn>,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            page_size: 1000,
            ttl: Duration::ZERO,
            require_descriptions: false,
            strict: false,
            visible: None,
            listed: None,
        }
    }
}

impl ListOptions {
    /// Sets how many entries a page has; 1000 by default.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = entries.max(1);
        self
    }

    /// Sets how long clients of 2026-07-28 may cache lists: `ttlMs` on the wire; not at all by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Shows an item only to callers for whom this rule returns `true`, such as those of a plan or a tenant. For the others
    /// it does not exist: it is not in their lists, and a call of it is the error for an unknown item.
    ///
    /// It is asked for each item of a list and for each call, so it must be fast; a rule that panics hides the item. It
    /// is asked over HTTP, where the caller is `None` if it is anonymous, and not for the host on stdio, who has started
    /// the server, unless that is a [caller](StdioOptions::caller). Like `scopes`, it needs a server that identifies its callers. If what it says changes for a caller,
    /// publish that with [`tools_changed`](crate::ServerHandle::tools_changed) and its siblings.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!()
    ///     .lists(|lists| {
    ///         lists.visible(|caller, item| {
    ///             let plan = caller.and_then(|caller| caller.claims()?.get("plan")?.as_str());
    ///             plan == Some("pro") || !item.tags().contains(&"pro")
    ///         })
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn visible(
        mut self,
        rule: impl Fn(Option<&Principal>, &ItemView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visible = Some(Callback(Arc::new(rule)));
        self
    }

    /// Leaves items out of the lists of tools, prompts, resources and templates for which this rule returns `false`. They
    /// can still be called by those who may call them: a client that has their names from elsewhere, such as the result of a
    /// tool, uses them. With several rules, an item is listed if all of them say so.
    ///
    /// The rule must not depend on the client or the connection, which the protocol
    /// [forbids](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#capabilities). The caller is `None`
    /// where callers are not identified, and lists are made once there: the rule is asked again when the items change. It
    /// must be fast; where it panics, the item is listed. Changes of items are notified to all clients, since a rule may count
    /// [all tools](ItemView::list_size).
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!()
    ///     .lists(|lists| lists.listed(|_, item| !item.name().starts_with("admin_")))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn listed(
        mut self,
        rule: impl Fn(Option<&Principal>, &ItemView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.listed = Some(match self.listed.take() {
            None => Callback(Arc::new(rule)),
            Some(before) => {
                Callback(Arc::new(move |caller, item| before(caller, item) && rule(caller, item)))
            }
        });
        self
    }

    /// Whether an item is in the lists of a caller.
    pub(crate) fn shows(&self, item: ItemView<'_>, access: Access<'_>) -> bool {
        access.sees(item)
            && self.listed.as_ref().is_none_or(|listed| {
                catch_unwind(AssertUnwindSafe(|| listed(access.caller, &item))).unwrap_or(true)
            })
    }

    /// Requires a description of every item: one without is an error of [`build`](crate::ServerBuilder::build), and of
    /// a change at run time.
    pub fn require_descriptions(mut self) -> Self {
        self.require_descriptions = true;
        self
    }

    /// Makes every tool and event `strict`, also those of [mounted](crate::ServerBuilder::mount) builders and those
    /// that are made at run time: names that the input schema does not have, at any depth, and strings for other types are
    /// refused, and lists say so. A hand-written input schema allows others with `additionalProperties`,
    /// `patternProperties` or `unevaluatedProperties`; a trusted one stays as it is written.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }
}

/// Options of stdio and of byte streams.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct StdioOptions {
    /// The caller, if it is known.
    pub(crate) caller: Option<Arc<Principal>>,
}

impl StdioOptions {
    /// Sets who the client is: the host on stdio, and the peers of byte streams. Functions take it as `&Principal`, and
    /// scopes and [`visible`](ListOptions::visible) hold for it as for a caller over HTTP.
    ///
    /// Without it the client has no principal, and may call everything: the user who has started the server can do what the
    /// server can do. So this gives a function its tenant, and shows what a caller sees; it does not confine a host that can
    /// start the program differently. In memory it holds as well, and a command line may name
    /// [another caller](crate::ServerBuilder::run). When the principal [expires](Principal::with_expiry), the client is an
    /// anonymous caller.
    ///
    /// ```
    /// use mcp_runtime::Principal;
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let user = std::env::var("USER").unwrap_or("local".into());
    /// let caller = Principal::new("urn:example:local", user).with_scopes(["notes:read"]);
    /// let server = mcp_runtime::server!().stdio(|stdio| stdio.caller(caller)).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn caller(mut self, caller: Principal /* `Principal::new(issuer, subject)` */) -> Self {
        self.caller = Some(Arc::new(caller));
        self
    }
}

/// State that the replicas of a server share: its keys, and the store that all of them read. By default nothing is shared:
/// the key is random, and the store is in this process's memory.
#[derive(Clone, Default)]
#[must_use]
pub struct Stores {
    /// The shared store; unset for a store in memory.
    #[cfg(feature = "shared")]
    pub(crate) shared: Option<Arc<dyn crate::core::store::Shared>>,
    /// Whether sessions go on while it cannot be found out whether they have ended.
    pub(crate) allows_unchecked_sessions: bool,
    /// The keys that seal the state which clients carry for the server; or the reason why they are invalid.
    keys: Option<Result<KeyRing, String>>,
    /// Where the keys are, if they are in a file.
    key_file: Option<PathBuf>,
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").finish_non_exhaustive()
    }
}

impl Stores {
    /// Sets the keys that session ids and the state of unfinished calls are sealed with, so that replicas and restarts
    /// open each other's.
    ///
    /// The first key seals, every key opens; [sessions](crate::guide::sessions#key-rotation) has the steps in which a key
    /// is replaced. Keys must be random: one whose bytes repeat is an error of [`build`](crate::ServerBuilder::build), like
    /// an empty list. Without this and [`keys_from_file`](Self::keys_from_file), `run` takes them
    /// [from the environment](Self::keys_from_env); otherwise there is one random key.
    pub fn keys(mut self, keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        let keys: Vec<_> = keys.into_iter().map(Key::new).collect();
        self.keys = Some(match keys.iter().find_map(|key| key.check().err()) {
            Some(error) => {
                Err(format!("`.stores(|stores| stores.keys(..))` got an invalid key: {error}\n{GENERATE}"))
            }
            None if keys.is_empty() => {
                Err("`.stores(|stores| stores.keys(..))` got no key\ngive it at least one".into())
            }
            None => Ok(KeyRing::new(keys)),
        });
        self
    }

    /// Sets the [keys](Self::keys) to those in the environment variable `MCP_SERVER_KEYS`, if it is set.
    ///
    /// A key is 64 hexadecimal digits, or 32 bytes in base64; several are separated by commas. An invalid key is an
    /// error of [`build`](crate::ServerBuilder::build), which does not read the environment itself; `run` calls this
    /// unless keys are set.
    pub fn keys_from_env(mut self) -> Self {
        if let Some(keys) = KeyRing::from_environment().transpose() {
            self.keys = Some(keys);
        }
        self
    }

    /// Whether keys are set, or a file with them.
    pub(crate) fn has_keys(&self) -> bool {
        self.keys.is_some() || self.key_file.is_some()
    }

    /// The keys that are set, those in the file, or else a random one.
    ///
    /// # Errors
    /// They are invalid or set twice, the file cannot be read, or the operating system provides no randomness.
    pub(crate) fn open_keys(&self) -> Result<KeyRing, String> {
        match (&self.key_file, &self.keys) {
            (Some(_), Some(_)) => Err("keys are set twice, with and without a file\nset them once".into()),
            (Some(file), None) => KeyRing::from_file(file),
            (None, Some(keys)) => keys.clone(),
            (None, None) => KeyRing::random(),
        }
    }

    /// Sets the file with the [keys](Self::keys), which all replicas can read.
    ///
    /// A key is 64 hexadecimal digits, or 32 bytes in base64; several are separated by commas or line ends. The first
    /// seals, every key opens. [`ServerHandle::reload_keys`](crate::ServerHandle::reload_keys) reads the file again.
    pub fn keys_from_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key_file = Some(path.into());
        self
    }

    /// Lets sessions of older clients go on while the [shared store](crate::ServerBuilder::shared) cannot be reached.
    ///
    /// By default their requests are refused then, since the store knows which sessions have ended. With this, a session
    /// that was ended at another replica may be used while the store is away.
    #[cfg(feature = "http")]
    pub fn allow_unchecked_sessions(mut self) -> Self {
        self.allows_unchecked_sessions = true;
        self
    }
}
