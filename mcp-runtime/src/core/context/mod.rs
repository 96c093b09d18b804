//! The request as user code sees it: its caller and metadata, progress, log messages, cancellation, and injected values.

mod cancellation;
pub(crate) mod client_feature;
#[cfg(feature = "tracing")]
mod client_layer;
pub(crate) mod client_request_error;
mod client_requests;
mod current_call;
mod log;
mod progress;
mod suspension;
mod trace_context;
mod tracing_events;

use std::{
    any::{Any, TypeId},
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};

pub(crate) use cancellation::CallCancellation;
pub(crate) use client_feature::ClientFeature;
pub(crate) use client_request_error::ClientRequestError;
pub(crate) use client_requests::{
    ClientRequestState, ClientRequests, Delivery, InputRequest, InputResponse, PendingRequest, RawJson,
    RequestState, Retry, TaskHandle,
};
pub use log::Log;

pub use crate::core::{
    connection::ClientInfo,
    protocol::{LogLevel, ParseNameError},
};
use cancellation::Cancelled;
#[cfg(feature = "tracing")]
pub use client_layer::client_layer;
use progress::Amount;
pub use progress::Progress;
pub(crate) use progress::ProgressToken;
pub(crate) use suspension::{Continuation, Suspension};
pub(crate) use trace_context::is_traceparent;
pub(crate) use tracing_events::has_forwarder;
pub(crate) use tracing_events::{forward, may_forward, register_forwarder};

use crate::core::{
    connection::{ClientData, Principal, RequestContext},
    extensions::Extensions,
    jsonrpc::Object,
    protocol::Revision,
    store::{SealedStore, SingleUse},
    sync::Mutex,
};

/// The request that a function handles.
///
/// Take it as `ctx: &Context`; it is injected and never part of a schema. Clones are cheap and refer to the same
/// request.
#[derive(Clone)]
pub struct Context(Arc<ContextInner>);

pub(crate) struct ContextInner {
    pub(crate) revision: Revision,
    pub(crate) state: Arc<Extensions>,
    pub(crate) request: RequestContext,
    pub(crate) client: ClientData,
    /// Raw JSON of the request's `_meta`.
    pub(crate) meta: Option<Box<str>>,
    pub(crate) progress: Option<ProgressToken>,
    /// The minimum level of log messages that this request sets.
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) cancel: CallCancellation,
    pub(crate) client_requests: ClientRequests,
    /// Set if the call may continue outside of its request.
    pub(crate) continuation: OnceLock<Arc<dyn Continuation>>,
    /// Why the function cannot continue in its request.
    pub(crate) suspension: Mutex<Option<Suspension>>,
    pub(crate) settings: Arc<Settings>,
    /// The call whose function runs in this context, if layers may run it several times.
    pub(crate) parent: Option<Context>,
}

/// Settings of a server that apply to all of its calls.
pub(crate) struct Settings {
    /// How long a client may take to respond to a request.
    pub(crate) client_request_timeout: Duration,
    pub(crate) single_use: SingleUse,
    /// Values of the framework that functions can take, such as the server's handle.
    pub(crate) server_values: Extensions,
    /// The server's name and version.
    pub(crate) server: (String, String),
    /// The largest message of a client, in bytes.
    pub(crate) max_message: usize,
    /// Whether clients may get log messages.
    pub(crate) logging: bool,
    /// Whether the hint that log messages reach no client was logged.
    pub(crate) logging_hint_logged: AtomicBool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            client_request_timeout: Duration::from_secs(5 * 60),
            single_use: SingleUse::new(&SealedStore::in_memory(), "calls", 10_000, SystemTime::now()),
            server_values: Extensions::default(),
            server: Default::default(),
            max_message: crate::core::config::MAX_LINE,
            logging: false,
            logging_hint_logged: AtomicBool::new(false),
        }
    }
}

/// Why functions cannot send client requests in a unit test.
const UNIT_TEST: &str =
    "`Context::for_test()` has no client\nanswer with `TestServer::answering`, and call the item through it";

impl Context {
    pub(crate) fn new(inner: ContextInner) -> Self {
        Self(Arc::new(inner))
    }

    /// A context for unit tests of annotated functions: no client, no state, never cancelled.
    ///
    /// A function that sends client requests is tested with `TestServer::answering`.
    ///
    /// ```
    /// use mcp_runtime::Context;
    ///
    /// let ctx = Context::for_test();
    /// assert!(!ctx.is_cancelled());
    /// ```
    #[must_use]
    pub fn for_test() -> Self {
        Self::new(ContextInner {
            revision: Revision::LATEST,
            state: Arc::default(),
            request: RequestContext::default(),
            client: ClientData::default(),
            meta: None,
            progress: None,
            log_level: None,
            cancel: CallCancellation::default(),
            client_requests: ClientRequests::new(Delivery::Unavailable(UNIT_TEST), None),
            continuation: OnceLock::new(),
            suspension: Mutex::default(),
            settings: Arc::default(),
            parent: None,
        })
    }

    /// The context of one run of the call's function, which layers may run several times. It is cancelled with the call,
    /// and ends without ending it; client requests, progress and a task are the call's.
    pub(crate) fn for_run(&self) -> Self {
        let call = self.call();
        Self::new(ContextInner {
            revision: call.revision,
            state: call.state.clone(),
            request: call.request.clone(),
            client: call.client.clone(),
            meta: None,
            progress: None,
            log_level: call.log_level,
            cancel: call.cancel.child(),
            client_requests: ClientRequests::new(Delivery::Unavailable("they are the call's"), None),
            continuation: OnceLock::new(),
            suspension: Mutex::default(),
            settings: call.settings.clone(),
            parent: Some(self.clone()),
        })
    }

    /// The state that all runs of the call's function share.
    pub(crate) fn call(&self) -> &ContextInner {
        match &self.0.parent {
            None => &self.0,
            Some(call) => call.call(),
        }
    }

    /// The client requests of the call.
    pub(crate) fn client_requests(&self) -> &ClientRequests {
        &self.call().client_requests
    }

    /// The value of the HTTP header of that name, in any case; `None` over other transports, if it is not text, or if the
    /// request has it several times, since one of them may be a proxy's and another the client's.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.request.connection.as_deref()?.header(name)
    }

    /// The revision of the protocol that this request uses.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    /// The client's name and version, if it sent them.
    #[must_use]
    pub fn client(&self) -> Option<ClientInfo> {
        self.0.client.info()
    }

    /// The capabilities that the client declared, as on the wire; an empty object if none.
    #[must_use]
    pub fn client_capabilities(&self) -> Value {
        self.0.client.capabilities()
    }

    /// Whether the client of this request declares that feature.
    #[must_use]
    pub fn supports(&self, feature: ClientFeature) -> bool {
        feature.is_in(&self.client_capabilities())
    }

    /// Whether the client shows pages to its user (the MCP Apps extension), so that a tool with `ui(..)` need not
    /// repeat everything in its text.
    ///
    /// ```
    /// use mcp_runtime::Context;
    ///
    /// fn summary(ctx: &Context) -> &'static str {
    ///     if ctx.client_supports_ui() { "The chart is shown." } else { "Monday 3, Tuesday 5, Wednesday 2" }
    /// }
    /// assert_eq!(summary(&Context::for_test()), "Monday 3, Tuesday 5, Wednesday 2");
    /// ```
    ///
    /// It is what the client declared as `extensions["io.modelcontextprotocol/ui"]`, with the MIME type
    /// `text/html;profile=mcp-app` among its `mimeTypes`. See
    /// [MCP Apps](https://github.com/modelcontextprotocol/ext-apps).
    #[must_use]
    pub fn client_supports_ui(&self) -> bool {
        crate::core::protocol::supports_ui(&self.client_capabilities())
    }

    /// The caller, if the server authenticates its callers.
    #[must_use]
    pub fn caller(&self) -> Option<&Principal> {
        self.0.request.caller.as_deref()
    }

    /// The value registered for `T`, as `&T` would inject it: this request's first, then the server's.
    ///
    /// For [`FromContext`](crate::FromContext) values that are made from state.
    #[must_use]
    pub fn state<T: ?Sized + 'static>(&self) -> Option<&T> {
        self.find()
    }

    /// The server's name and version, such as for the `User-Agent` of requests that a function sends.
    ///
    /// ```
    /// use mcp_runtime::Context;
    ///
    /// fn agent(ctx: &Context) -> String {
    ///     let (name, version) = ctx.server();
    ///     format!("{name}/{version}")
    /// }
    /// ```
    #[must_use]
    pub fn server(&self) -> (&str, &str) {
        let (name, version) = &self.0.settings.server;
        (name, version)
    }

    /// The largest message that the server accepts from a client, in bytes: 4 MiB, or more with a larger `max_body`
    /// of HTTP. What a function makes of its arguments for others may have this
    /// limit as well.
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.0.settings.max_message
    }

    /// The member `key` of the request's `_meta`.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<Value> {
        let meta: Value = serde_json::from_str(self.call().meta.as_deref()?).ok()?;
        meta.get(key).cloned()
    }

    /// All members of `_meta` of the request, those of the protocol among them; for programs that send the request on.
    #[must_use]
    pub fn all_meta(&self) -> Map<String, Value> {
        let meta = self.call().meta.as_deref();
        meta.and_then(|meta| serde_json::from_str(meta).ok()).unwrap_or_default()
    }

    /// Reports the progress of the call; sent only if the client requested it.
    ///
    /// Values must increase: an equal or lower one is dropped.
    ///
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    #[must_use = "nothing is reported before `.send()`"]
    pub fn progress(&self, progress: impl Amount) -> Progress<'_> {
        Progress::new(self, progress)
    }

    /// Closes the event stream on which the client awaits the result of this call, and lets it reconnect later. Returns
    /// whether the stream is closed.
    ///
    /// For work that takes longer than a connection should stay open. The function continues. The client reconnects
    /// after `retry`, as often as necessary, and gets what was sent in the meantime; the stream of a reconnected client
    /// can be closed in the same way.
    ///
    /// Only a client of revision 2025-11-25 in an HTTP session reconnects. For every other client this has no effect and
    /// returns `false`: the stream stays open. It also stays open if the result is ready first, or if too many calls run
    /// without a connection.
    ///
    /// ```
    /// # use mcp_runtime::prelude::*;
    /// # use std::time::Duration;
    /// /// Builds the project.
    /// #[mcp_tool]
    /// async fn build(ctx: &Context) -> &'static str {
    ///     ctx.close_stream(Duration::from_secs(5));
    ///     // ... minutes later
    ///     "built"
    /// }
    /// ```
    ///
    /// See [sending messages](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server).
    pub fn close_stream(&self, retry: Duration) -> bool {
        let connection = self.0.request.connection.as_ref().filter(|_| self.0.cancel.is_running());
        connection.is_some_and(|connection| connection.close_stream(retry))
    }

    /// Whether the client cancelled this request.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    /// Waits until the client cancels this request, or its result is ready.
    ///
    /// An async function does not need this: its future is dropped then. Use it for work on other threads or tasks.
    pub fn cancelled(&self) -> Cancelled {
        self.0.cancel.cancelled()
    }

    /// Whether both refer to the same request.
    fn is_same_request(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn inner(&self) -> &ContextInner {
        &self.0
    }

    /// The value registered for `T`: this request's first, then the server's.
    pub(crate) fn find<T: ?Sized + 'static>(&self) -> Option<&T> {
        let ContextInner { request, state, settings, .. } = &*self.0;
        request.extensions.get().or_else(|| state.get()).or_else(|| settings.server_values.get())
    }

    /// The context itself, or the caller, if `T` is its type.
    pub(crate) fn as_any<T: 'static>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        let value: &dyn Any = if id == TypeId::of::<Self>() {
            self
        } else if id == TypeId::of::<Principal>() {
            self.caller()?
        } else {
            return None;
        };
        value.downcast_ref()
    }
}

/// Writes the `_meta` of a notification, if the revision has it.
fn notification_meta(params: &mut Object<'_>, meta: &Map<String, Value>, revision: Revision) {
    if revision >= Revision::V2025_11_25 && !meta.is_empty() {
        params.value("_meta", meta);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("revision", &self.0.revision).finish_non_exhaustive()
    }
}
