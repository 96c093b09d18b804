//! What clones of a client share: how its connection is opened, what it agreed on, and requests over it, which survive a
//! lost session and a process that is started again (`session.rs`).
//!
//! What the client sends again, and why:
//!
//! | what happened | what is sent again | where |
//! |---|---|---|
//! | the server does not know the session (404; for a request also 400 with a text about a session) | the request or notification, once, after a new handshake: nothing was done for it | `send`, `notify` |
//! | the server no longer speaks the revision that was agreed on | the request, once, after a new handshake | `send` |
//! | headers of a tool's arguments are missing | the call, once, after the tools were listed | `requests/client_handle.rs` |
//! | 401, 403 that asks for more scopes, or for a proof with a new nonce | the HTTP request, with another token or proof, 4 times at most | `oauth/authorized_request.rs` |
//! | 429 or 503 with a `Retry-After` of up to 30 seconds | the request, twice at most | `link/http_link.rs` |
//! | a redirect by 307 or 308 within the origin | the HTTP request, 5 times at most | `link/http_link.rs` |
//! | a response or a cancellation may not have arrived: no connection, or 502 to 504 | it, 4 times at most: a server ignores the second of two | `link/http_link.rs` |
//! | the event stream of a legacy server breaks | a GET after its last event; never the request | `link/http_stream.rs` |
//! | a process ends when its first request is not `initialize` | the handshake, once, with `initialize` to a new process: some old servers do that | `open` |
//! | a process or a connection ends during a request | nothing: the server may have done what was asked for. The next request starts the process again | `must_reopen` |

use std::{
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    catalog::{find_endpoint, host_without_endpoint},
    client_builder::ClientOptions,
    negotiation::{self, Agreement, Handshake, ServerFacts},
    session::Session,
    target::TargetKind,
};
use crate::{
    client::{
        Error,
        cleanup::{Cleanup, FLUSH_TIMEOUT},
        exchange::RequestParams,
        link::{
            LinkError, ServerLink,
            outgoing::{OutgoingRequest, RequestMeta, notification_text},
        },
        operation::{Operation, OperationKind, TimeLimit},
        receive::{
            change_stream::SubscriptionState,
            handlers::{Handlers, Listener, ProgressUpdate},
            inbox::{Inbox, ProgressRegistration, StreamListener},
        },
        requests::{
            known_tools::KnownTools,
            lists::ListCaches,
            read_cache::ReadCache,
            request_span::{RequestSpan, record_id},
        },
    },
    core::{
        jsonrpc::Object,
        protocol::{
            LogLevel, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, Revision, UNSUPPORTED_PROTOCOL_VERSION,
        },
        sync::Mutex,
    },
};

/// How long a process may be silent before the log says why that may be.
const SILENT_PROCESS: Duration = Duration::from_secs(10);

/// A transport with what was agreed on it.
pub(in crate::client) struct Connection {
    pub(in crate::client) link: Arc<ServerLink>,
    pub(in crate::client) revision: Revision,
    pub(in crate::client) server: ServerFacts,
    /// Grows with every handshake.
    pub(in crate::client) generation: u64,
}

/// Options of one call, and of each of its requests.
#[derive(Clone, Default)]
pub(in crate::client) struct CallOptions {
    /// The time limit of the whole call.
    pub(in crate::client) timeout: Option<Duration>,
    /// The time limit of each request.
    pub(in crate::client) request_timeout: Option<Duration>,
    /// The limits of the call and of everything that it causes; `None` for streams without an end.
    pub(in crate::client) operation: Option<Operation>,
    /// Whether a list or a resource that is kept is asked for again.
    pub(in crate::client) refresh: bool,
    /// Whether progress begins the time limit of a request anew.
    pub(in crate::client) progress_extends: bool,
    /// The program's function for progress, until the call begins.
    pub(in crate::client) on_progress: Option<Listener<ProgressUpdate>>,
    /// Receives the progress of all requests of the call.
    pub(in crate::client) progress: Option<Arc<ProgressRegistration>>,
    /// The id of a request whose response is a stream: it has no time limit.
    pub(in crate::client) stream: Option<u64>,
    /// Whether the program does not wait for it, so that the user is not asked a second time to log in.
    pub(in crate::client) in_background: bool,
    pub(in crate::client) meta: Map<String, Value>,
    /// The description of the client, if it differs for this call.
    pub(in crate::client) client_meta: Option<Arc<[u8]>>,
}

impl CallOptions {
    /// Options of another request of this operation.
    pub(in crate::client) fn of(operation: Operation) -> Self {
        Self { operation: Some(operation), ..Self::default() }
    }

    /// Options of a request that the program does not wait for.
    pub(in crate::client) fn in_background() -> Self {
        Self { in_background: true, ..Self::default() }
    }

    /// Options of another request that this call causes.
    pub(in crate::client) fn of_same_call(&self) -> Self {
        Self { request_timeout: self.request_timeout, operation: self.operation.clone(), ..Self::default() }
    }
}

/// Everything that clones of a client share: one owner of each kind, besides its options.
// each field but the id and the level is a type with its own lock and its own end, and nothing is set together with another one
pub(in crate::client) struct SharedClient {
    pub(in crate::client) options: ClientOptions,
    pub(in crate::client) inbox: Arc<Inbox>,
    /// Ends everything.
    pub(in crate::client) token: CancellationToken,
    target: TargetKind,
    session: Session,
    next_id: AtomicU64,
    log_level: Mutex<Option<LogLevel>>,
    /// The description of the client in every modern request, as members of JSON.
    client_meta: OnceLock<Vec<u8>>,
    pub(in crate::client) lists: ListCaches,
    pub(in crate::client) reads: ReadCache,
    pub(in crate::client) tools: KnownTools,
    pub(in crate::client) subscriptions: SubscriptionState,
    /// Sends cancellations for calls and tasks that were dropped.
    pub(in crate::client) cleanup: Arc<Cleanup>,
}

impl SharedClient {
    pub(in crate::client) async fn connect(
        options: ClientOptions,
        handlers: Handlers,
        target: TargetKind,
    ) -> Result<Arc<Self>, Error> {
        let operation = Operation::new(OperationKind::Connect, None, &options);
        let options_of_requests = CallOptions::of(operation.clone());
        let connected = Box::pin(Self::connect_or_discover(options, handlers, target, options_of_requests));
        operation.run(connected).await
    }

    /// Connects; to the endpoint in the catalog of a host, if the URL is that of a host which does not answer MCP itself.
    async fn connect_or_discover(
        mut options: ClientOptions,
        handlers: Handlers,
        target: TargetKind,
        call_options: CallOptions,
    ) -> Result<Arc<Self>, Error> {
        let TargetKind::Url(url) = &target else {
            return Self::connect_within(options, handlers, target, call_options).await;
        };
        let url = url.clone();
        let connected =
            Self::connect_within(options.clone(), handlers.clone(), target, call_options.clone()).await;
        let failed = match connected {
            Err(error) if !options.http_sse => error,
            connected => return connected,
        };
        let Some(host) = host_without_endpoint(&url, &failed) else { return Err(failed) };
        let Some(found) = find_endpoint(&host, &options).await? else { return Err(failed) };
        if found.foreign.is_some() {
            // headers and tokens were meant for the first origin
            options.hook = None;
            options.reach = found.foreign;
        }
        Self::connect_within(
            options,
            handlers,
            TargetKind::Url(found.url_with_credentials_of(&url)),
            call_options,
        )
        .await
    }

    async fn connect_within(
        options: ClientOptions,
        handlers: Handlers,
        mut target: TargetKind,
        call_options: CallOptions,
    ) -> Result<Arc<Self>, Error> {
        if let TargetKind::Command(command) = &mut target {
            command.envs(options.environment.iter().map(|(name, value)| (name, value)));
        }
        let shared = Arc::new_cyclic(|shared| Self {
            inbox: Arc::new(Inbox::new(handlers, &options.limits, shared.clone())),
            reads: ReadCache::new(options.read_cache),
            options,
            token: CancellationToken::new(),
            target,
            session: Session::default(),
            next_id: AtomicU64::new(1),
            log_level: Mutex::new(None),
            client_meta: OnceLock::new(),
            lists: ListCaches::default(),
            tools: KnownTools::default(),
            subscriptions: SubscriptionState::default(),
            cleanup: Cleanup::by_connection(),
        });
        // a failure, or dropping the future, ends what was started
        let guard = shared.token.clone().drop_guard();
        shared.session.begin().await;
        let connection = shared.open(0, &call_options).await?;
        shared.session.open(connection);
        guard.disarm();
        shared.subscribe_to_lists();
        Ok(shared)
    }

    /// The connection as it is, also if it is closed.
    pub(in crate::client) fn connection(&self) -> Result<Arc<Connection>, Error> {
        self.session.connection()
    }

    pub(in crate::client) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(in crate::client) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock() = Some(level);
    }

    /// Ends the connection, and the server's process with it.
    pub(in crate::client) async fn close(&self) {
        self.cleanup.flush(FLUSH_TIMEOUT).await;
        if let Some(connection) = self.session.end() {
            connection.link.close().await;
        }
        self.token.cancel();
    }

    /// Opens a link and agrees on a revision.
    pub(super) async fn open(&self, generation: u64, options: &CallOptions) -> Result<Connection, Error> {
        let key = self.target.source_key(&self.options);
        let remembered = key.as_deref().and_then(negotiation::remembered);
        let operation = self.operation_of(options);
        let open_link = || self.target.open_link(self, &operation);
        let mut link = open_link().await?;
        let agreed =
            match self.explain_silence(Handshake::new(self, &link, options).negotiate(remembered)).await {
                // servers that end when the first request is not `initialize`
                Err(Error::Closed { .. })
                    if matches!(self.target, TargetKind::Command(_))
                        && self.options.revision.is_none()
                        && remembered.is_none() =>
                {
                    link.close().await;
                    link = open_link().await?;
                    Handshake::new(self, &link, options).initialize(Revision::LATEST_LEGACY).await
                }
                agreed => agreed,
            };
        let Agreement { revision, server, is_preliminary } = match agreed {
            Ok(agreed) => agreed,
            Err(error) => {
                link.close().await;
                return Err(error);
            }
        };
        if let Some(key) = key.filter(|_| !is_preliminary) {
            negotiation::remember(key, revision);
        }
        Ok(Connection { link: Arc::new(link), revision, server, generation })
    }

    /// The output of a handshake; a line in the log says why a process may be silent for so long.
    async fn explain_silence<T>(&self, handshake: impl Future<Output = T>) -> T {
        let mut handshake = pin!(handshake);
        if let TargetKind::Command(command) = &self.target
            && !self.options.inherit_environment
        {
            let silence = sleep(SILENT_PROCESS);
            tokio::select! {
                done = &mut handshake => return done,
                () = silence => tracing::warn!(
                    program = %command.get_program().display(),
                    "the server has not answered for {SILENT_PROCESS:?}: its process gets `PATH`, `HOME` and a few other \
                     variables; one that downloads itself may need those of a proxy or a registry: pass them with \
                     `.env(..)`, or all with `.inherit_environment()`"
                ),
            }
        }
        handshake.await
    }

    /// The server's URL, if it has one.
    pub(in crate::client) fn url(&self) -> Option<&str> {
        match &self.target {
            TargetKind::Url(url) => Some(url),
            _ => None,
        }
    }

    /// Whether there is a connection, or another request opens it again.
    pub(in crate::client) fn can_continue(&self) -> bool {
        let Ok(connection) = self.connection() else { return false };
        !connection.link.is_closed() || self.must_reopen(&connection)
    }

    /// Begins a new session in place of one that the server may have forgotten.
    pub(in crate::client) fn renew_session(self: &Arc<Self>) {
        self.session.renew(self.clone());
    }

    /// Whether the connection is dead, and another one is wanted.
    fn must_reopen(&self, connection: &Connection) -> bool {
        // over HTTP, a handshake that failed left no session
        (connection.link.is_closed() || self.session.is_missing())
            && self.target.can_be_opened_again(&self.options)
    }

    /// Drops lists and contents: changes while there was no connection, or no stream of changes, are not known.
    pub(in crate::client) fn forget_what_is_kept(&self) {
        self.lists.invalidate_all();
        self.reads.clear();
    }

    /// Sets again what a legacy server keeps for a session: subscriptions and the log level.
    pub(super) async fn restore_session(&self, connection: &Arc<Connection>, options: &CallOptions) {
        if connection.revision.is_modern() {
            return;
        }
        let level = *self.log_level.lock();
        let mut requests: Vec<(&str, Value)> = self
            .inbox
            .watched()
            .into_iter()
            .map(|uri| ("resources/subscribe", json!({ "uri": uri })))
            .collect();
        if let Some(level) = level {
            requests.push(("logging/setLevel", json!({ "level": level.as_str() })));
        }
        for (method, params) in requests {
            let uri = params.get("uri").and_then(Value::as_str).map(str::to_owned);
            let Value::Object(params) = params else { continue };
            // one that fails must not fail the request that found the session lost
            let restored =
                self.exchange(&connection.link, connection.revision, method, &params.into(), options).await;
            if let Err(error) = restored.map_err(LinkError::into_error) {
                tracing::warn!(
                    error = error.in_one_line(),
                    "`{method}` could not be repeated in the new session"
                );
                // another failure is that of the connection, whose next one tries again
                if let (Some(uri), Error::Protocol { .. }) = (&uri, &error) {
                    self.inbox.end_watches(&[&**uri].into());
                }
            }
        }
    }

    /// Sends a request whose response is a stream. `listener` gets its notifications; the result comes when it has ended.
    pub(in crate::client) async fn stream(
        &self,
        method: &str,
        members: Value,
        listener: StreamListener,
        in_background: bool,
    ) -> Result<(), Error> {
        let id = self.next_id();
        let _registered = self.inbox.open_stream(id, listener);
        let options = CallOptions { stream: Some(id), in_background, ..CallOptions::default() };
        self.request(method, params(members), &options).await.map(drop)
    }

    /// Sends a request in a span of its own; the raw JSON of its result, which may be of any type.
    pub(in crate::client) async fn send_in_span(
        &self,
        method: &str,
        params: &RequestParams,
        options: &CallOptions,
    ) -> Result<String, Error> {
        let span = RequestSpan::new(self, method, params, options);
        if span.0.is_disabled() {
            return self.send(method, params, options).await;
        }
        let result = Box::pin(self.send(method, params, options).instrument(span.0.clone())).await;
        span.finish(method, &result);
        result
    }

    /// Sends a request, and once more after a new handshake if the server has forgotten the session.
    async fn send(
        &self,
        method: &str,
        params: &RequestParams,
        options: &CallOptions,
    ) -> Result<String, Error> {
        let mut has_retried = false;
        loop {
            let mut connection = self.connection()?;
            if self.must_reopen(&connection) {
                // boxed: every request would have room for a handshake otherwise
                connection = Box::pin(self.session.replace(self, &connection, options)).await?;
            }
            match self.exchange(&connection.link, connection.revision, method, params, options).await {
                Ok(json) => return Ok(json),
                Err(
                    LinkError::SessionLost
                    | LinkError::Failed(Error::Protocol { code: UNSUPPORTED_PROTOCOL_VERSION, .. }),
                ) if !has_retried => {}
                Err(error) => return Err(error.into_error()),
            }
            has_retried = true;
            Box::pin(self.session.replace(self, &connection, options)).await?;
        }
    }

    pub(in crate::client) async fn notify(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<(), Error> {
        let options = CallOptions::default();
        let (connection, text) = (self.connection()?, notification_text(method, params));
        match self.notify_over(&connection.link, text.clone(), &options).await {
            Err(LinkError::SessionLost) => {
                let connection = Box::pin(self.session.replace(self, &connection, &options)).await?;
                self.notify_over(&connection.link, text, &options).await.map_err(LinkError::into_error)
            }
            sent => sent.map_err(LinkError::into_error),
        }
    }

    /// Sends a notification, unless the server does not take it within the time of a request.
    pub(in crate::client) async fn notify_over(
        &self,
        link: &ServerLink,
        text: Vec<u8>,
        options: &CallOptions,
    ) -> Result<(), LinkError> {
        let operation = Operation::within(&self.options, self.request_limit(options));
        operation.watch(None, link.notify(text)).await?
    }

    /// One request and its response, within the time limit of the request and of its operation.
    pub(in crate::client) async fn exchange(
        &self,
        link: &ServerLink,
        revision: Revision,
        method: &str,
        params: &RequestParams,
        options: &CallOptions,
    ) -> Result<String, LinkError> {
        let id = options.stream.unwrap_or_else(|| self.next_id());
        let token = options.progress.as_ref().map(|progress| progress.token);
        let meta = self.request_meta(revision, token, options);
        record_id(id);
        let mut request = OutgoingRequest::new(id, method, params, &meta, revision);
        if link.is_http() && revision.is_modern() && method == "tools/call" {
            request.param_headers = self.tools.param_headers(params)?;
        }
        request.operation = options.operation.as_ref();
        request.in_background = options.in_background;
        let mut response = pin!(link.request(request));
        if options.stream.is_some() {
            return response.await;
        }
        let operation = self.operation_of(options);
        let progress = options.progress.as_ref().filter(|_| options.progress_extends);
        let mut limit = self.request_limit(options);
        loop {
            let answering = self.inbox.answering.paused();
            let waited = async {
                let Some(progress) = progress else { return Some(response.as_mut().await) };
                tokio::select! {
                    biased;
                    reply = response.as_mut() => Some(reply),
                    () = progress.activity.notified() => None,
                }
            };
            match operation.watch(limit, waited).await {
                Ok(Some(reply)) => return reply,
                // every update begins the limit of the request anew, and not that of its operation
                Ok(None) => limit = self.request_limit(options),
                Err(timeout) => {
                    // a legacy server asks the program during the request, which may take a person's time
                    let paused = self.inbox.answering.paused().saturating_sub(answering);
                    let later = limit.and_then(|limit| limit.after_pause(paused));
                    if later.is_none()
                        || !matches!(timeout, Error::Timeout { option: Some("request_timeout"), .. })
                    {
                        return Err(timeout.into());
                    }
                    limit = later;
                }
            }
        }
    }

    /// Receives progress until what is returned is dropped.
    pub(in crate::client) fn expect_progress(
        &self,
        listener: Option<Listener<ProgressUpdate>>,
    ) -> Arc<ProgressRegistration> {
        Arc::new(self.inbox.expect_progress(self.next_id(), listener))
    }

    /// The operation of a request; one without limits for a request in the background.
    fn operation_of(&self, options: &CallOptions) -> Operation {
        options.operation.clone().unwrap_or_else(|| Operation::within(&self.options, None))
    }

    /// The time limit of a request, which begins now.
    fn request_limit(&self, options: &CallOptions) -> Option<TimeLimit> {
        let limit = options.request_timeout.unwrap_or(self.options.request_timeout);
        TimeLimit::new(limit, Some("request_timeout"))
    }

    fn request_meta<'a>(
        &'a self,
        revision: Revision,
        progress_token: Option<u64>,
        options: &'a CallOptions,
    ) -> RequestMeta<'a> {
        // the same in every revision that has it
        let client = || {
            options.client_meta.as_deref().unwrap_or_else(|| {
                self.client_meta.get_or_init(|| self.client_meta(&self.inbox.handlers.capabilities(revision)))
            })
        };
        let is_modern = revision.is_modern();
        let log_level = if is_modern { *self.log_level.lock() } else { None };
        RequestMeta { own: &options.meta, progress_token, client: is_modern.then(client), log_level }
    }

    /// The description of a client with these capabilities, as members of JSON.
    pub(in crate::client) fn client_meta(&self, capabilities: &Value) -> Vec<u8> {
        let mut members = Vec::new();
        let mut object = Object::new(&mut members);
        object.value(META_CLIENT_CAPABILITIES, capabilities).value(META_CLIENT_INFO, &self.client_info());
        members.split_off(1)
    }

    pub(in crate::client) fn client_info(&self) -> Value {
        json!({ "name": self.options.name, "version": self.options.version })
    }
}

/// Params of these members.
pub(in crate::client) fn params(members: Value) -> RequestParams {
    match members {
        Value::Object(members) => members.into(),
        _ => RequestParams::default(),
    }
}
