//! A client's connection: how it is opened, what it agreed on, and requests over it, which survive a lost session and a
//! process that is started again.

use std::{
    collections::HashMap,
    process::Command,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    client_builder::ClientOptions,
    negotiation::{self, Agreement, ServerFacts},
    target::{BoxReader, BoxWriter, TargetKind},
};
use crate::{
    client::{
        Error,
        core::RequestParams,
        link::{
            LinkError, ServerLink, child_process, event_link,
            http_link::HttpLink,
            outgoing::{ModernMeta, OutgoingRequest, RawReply, RequestMeta, notification_text},
            stream_link::StreamLink,
        },
        receive::{
            change_stream::SubscriptionState,
            handlers::{Handlers, Listener, ProgressUpdate},
            inbox::Inbox,
        },
        requests::{
            known_tools::KnownTools,
            lists::ListCaches,
            read_cache::ReadCache,
            request_span::{RequestSpan, record_id},
        },
    },
    jsonrpc::Object,
    protocol::{
        LogLevel, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, Revision, UNSUPPORTED_PROTOCOL_VERSION,
    },
    server::Server,
    sync::{Mutex, RwLock},
};

/// How long a process must have lived so that the next one is started without a pause.
const STABLE: Duration = Duration::from_secs(30);
const FIRST_RESPAWN_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_RESPAWN_PAUSE: Duration = Duration::from_secs(30);
/// The buffer of a connection to a server in this process.
const IN_PROCESS_BUFFER: usize = 256 << 10;

/// A transport with what was agreed on it.
#[derive(Debug)]
pub(in crate::client) struct Connection {
    pub(in crate::client) link: Arc<ServerLink>,
    pub(in crate::client) revision: Revision,
    pub(in crate::client) server: ServerFacts,
    /// Grows with every handshake.
    pub(in crate::client) generation: u64,
}

/// How a link is opened, also again.
enum LinkSource {
    Command(Box<Command>),
    Url(String),
    /// HTTP+SSE.
    Events(String),
    Server(Server),
    /// Byte streams, which are open already.
    Once,
}

/// Options of one request.
#[derive(Clone, Default)]
pub(in crate::client) struct CallOptions {
    pub(in crate::client) timeout: Option<Duration>,
    /// Whether progress begins the time limit anew.
    pub(in crate::client) progress_extends: bool,
    pub(in crate::client) on_progress: Option<Listener<ProgressUpdate>>,
    pub(in crate::client) meta: Map<String, Value>,
}

/// Everything that clones of a client share.
pub(in crate::client) struct SharedClient {
    pub(in crate::client) options: ClientOptions,
    pub(in crate::client) inbox: Arc<Inbox>,
    /// Ends everything.
    pub(in crate::client) token: CancellationToken,
    source: LinkSource,
    connection: RwLock<Option<Arc<Connection>>>,
    reconnecting: tokio::sync::Mutex<RespawnState>,
    next_id: AtomicU64,
    log_level: Mutex<Option<LogLevel>>,
    /// What every modern request says about the client, as members of JSON.
    client_meta: OnceLock<Vec<u8>>,
    pub(in crate::client) lists: ListCaches,
    pub(in crate::client) reads: ReadCache,
    pub(in crate::client) tools: KnownTools,
    pub(in crate::client) subscriptions: SubscriptionState,
}

#[derive(Default)]
struct RespawnState {
    started: Option<Instant>,
    pause: Duration,
}

impl SharedClient {
    pub(in crate::client) async fn connect(
        options: ClientOptions,
        handlers: Handlers,
        target: TargetKind,
    ) -> Result<Arc<Self>, Error> {
        let mut streams = None;
        let source = match target {
            TargetKind::Command(mut command) => {
                command.envs(options.environment.iter().map(|(name, value)| (name, value)));
                LinkSource::Command(Box::new(command))
            }
            TargetKind::Url(url) if options.http_sse => LinkSource::Events(url),
            TargetKind::Url(url) => LinkSource::Url(url),
            TargetKind::Server(server) => LinkSource::Server(server),
            TargetKind::Streams(reader, writer) => {
                streams = Some((reader, writer));
                LinkSource::Once
            }
            TargetKind::Invalid(error) => return Err(error),
        };
        let shared = Arc::new(Self {
            reads: ReadCache::new(options.read_cache),
            options,
            inbox: Arc::new(Inbox::new(handlers)),
            token: CancellationToken::new(),
            source,
            connection: RwLock::new(None),
            reconnecting: tokio::sync::Mutex::default(),
            next_id: AtomicU64::new(1),
            log_level: Mutex::new(None),
            client_meta: OnceLock::new(),
            lists: ListCaches::default(),
            tools: KnownTools::default(),
            subscriptions: SubscriptionState::default(),
        });
        // a failure, or dropping the future, ends what was started
        let guard = shared.token.clone().drop_guard();
        let weak = Arc::downgrade(&shared);
        shared.inbox.on_stale(Arc::new(move |stale| {
            if let Some(shared) = weak.upgrade() {
                shared.lists.invalidate(stale);
                shared.reads.invalidate(stale);
            }
        }));
        shared.reconnecting.lock().await.started = Some(Instant::now());
        let connection = shared.open(streams, 0).await?;
        *shared.connection.write() = Some(Arc::new(connection));
        guard.disarm();
        shared.subscribe_to_lists();
        Ok(shared)
    }

    /// The connection as it is, also if it is closed.
    pub(in crate::client) fn connection(&self) -> Result<Arc<Connection>, Error> {
        self.connection.read().clone().ok_or_else(|| Error::not_connected("the client was closed"))
    }

    pub(in crate::client) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(in crate::client) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock() = Some(level);
    }

    /// Ends the connection, and the server's process with it.
    pub(in crate::client) async fn close(&self) {
        let connection = self.connection.write().take();
        if let Some(connection) = connection {
            connection.link.close().await;
        }
        self.token.cancel();
    }

    /// Opens a link and agrees on a revision.
    async fn open(
        &self,
        streams: Option<(BoxReader, BoxWriter)>,
        generation: u64,
    ) -> Result<Connection, Error> {
        let key = self.source_key();
        let remembered = key.as_deref().and_then(negotiation::remembered);
        let mut link = self.open_link(streams).await?;
        let agreed = match self.negotiate(&link, remembered).await {
            // servers that end when the first request is not `initialize`
            Err(Error::Closed { .. })
                if matches!(self.source, LinkSource::Command(_))
                    && self.options.revision.is_none()
                    && remembered.is_none() =>
            {
                link.close().await;
                link = self.open_link(None).await?;
                negotiation::initialize(self, &link, Revision::LATEST_LEGACY).await
            }
            agreed => agreed,
        };
        let Agreement { revision, server } = match agreed {
            Ok(agreed) => agreed,
            Err(error) => {
                link.close().await;
                return Err(error);
            }
        };
        if let Some(key) = key {
            negotiation::remember(key, revision);
        }
        Ok(Connection { link: Arc::new(link), revision, server, generation })
    }

    async fn negotiate(&self, link: &ServerLink, remembered: Option<Revision>) -> Result<Agreement, Error> {
        match (&self.source, self.options.revision) {
            // the transport of a revision that has no other way
            (LinkSource::Events(_), None) => {
                negotiation::initialize(self, link, Revision::LATEST_LEGACY).await
            }
            (LinkSource::Events(_), Some(revision)) if revision.is_modern() => {
                Err(Error::unsupported(format!("the revision `{revision}` over HTTP+SSE")))
            }
            _ => negotiation::negotiate(self, link, remembered).await,
        }
    }

    /// What the server is remembered by; `None` if it is not the same the next time.
    fn source_key(&self) -> Option<String> {
        match &self.source {
            LinkSource::Command(command) => Some(format!("{command:?}")),
            LinkSource::Url(url) => Some(url.clone()),
            LinkSource::Events(_) | LinkSource::Server(_) | LinkSource::Once => None,
        }
    }

    /// The server's URL, if it has one.
    pub(in crate::client) fn url(&self) -> Option<&str> {
        match &self.source {
            LinkSource::Url(url) | LinkSource::Events(url) => Some(url),
            LinkSource::Command(_) | LinkSource::Server(_) | LinkSource::Once => None,
        }
    }

    async fn open_link(&self, streams: Option<(BoxReader, BoxWriter)>) -> Result<ServerLink, Error> {
        let token = self.token.child_token();
        let (inbox, limit) = (self.inbox.clone(), self.options.max_message);
        Ok(match &self.source {
            LinkSource::Command(command) => {
                let (process, stdout, stdin) =
                    child_process::spawn(command, self.options.inherit_environment, &token)?;
                ServerLink::Stream(StreamLink::lines(stdout, stdin, Some(process), inbox, token, limit))
            }
            LinkSource::Url(url) => ServerLink::Http(HttpLink::new(url, &self.options, inbox, token)?),
            LinkSource::Events(url) => {
                let http = HttpLink::new(url, &self.options, inbox.clone(), token.clone())?;
                ServerLink::Stream(event_link::open(http, inbox, token, limit).await?)
            }
            LinkSource::Server(server) => {
                let (ours, theirs) = tokio::io::duplex(IN_PROCESS_BUFFER);
                let (server, ended) = (server.clone(), token.clone());
                tokio::spawn(async move {
                    let (reader, writer) = tokio::io::split(theirs);
                    tokio::select! {
                        served = server.serve(reader, writer) => drop(served),
                        () = ended.cancelled() => {}
                    }
                });
                let (reader, writer) = tokio::io::split(ours);
                ServerLink::Stream(StreamLink::lines(reader, writer, None, inbox, token, limit))
            }
            LinkSource::Once => {
                let (reader, writer) =
                    streams.ok_or_else(|| Error::not_connected("the streams have ended"))?;
                ServerLink::Stream(StreamLink::lines(reader, writer, None, inbox, token, limit))
            }
        })
    }

    /// The connection, after it was opened again if it is dead and that is wanted.
    pub(in crate::client) async fn live_connection(&self) -> Result<Arc<Connection>, Error> {
        let connection = self.connection()?;
        let is_dead = matches!(&*connection.link, ServerLink::Stream(link) if link.is_closed());
        let reopens = match &self.source {
            LinkSource::Command(_) => self.options.respawn,
            // a session over HTTP that is lost is replaced
            LinkSource::Events(_) => true,
            LinkSource::Url(_) | LinkSource::Server(_) | LinkSource::Once => false,
        };
        if is_dead && reopens {
            // boxed: every request would have room for a handshake otherwise
            return Box::pin(self.reconnect(&connection)).await;
        }
        Ok(connection)
    }

    /// A new handshake in place of this connection's, unless another request has made one already.
    async fn reconnect(&self, old: &Arc<Connection>) -> Result<Arc<Connection>, Error> {
        let mut state = self.reconnecting.lock().await;
        let current = self.connection()?;
        if current.generation != old.generation {
            return Ok(current);
        }
        let generation = old.generation + 1;
        let connection = match &*old.link {
            ServerLink::Http(link) => {
                link.forget_session();
                let agreed = if old.revision.is_modern() {
                    negotiation::negotiate(self, &old.link, None).await?
                } else {
                    negotiation::initialize(self, &old.link, old.revision).await?
                };
                let Agreement { revision, server } = agreed;
                Connection { link: old.link.clone(), revision, server, generation }
            }
            ServerLink::Stream(link) => {
                link.close().await;
                let lived = state.started.map_or(STABLE, |started| started.elapsed());
                state.pause = if lived >= STABLE {
                    Duration::ZERO
                } else {
                    (state.pause * 2).clamp(FIRST_RESPAWN_PAUSE, LONGEST_RESPAWN_PAUSE)
                };
                sleep(state.pause).await;
                state.started = Some(Instant::now());
                self.open(None, generation).await?
            }
        };
        let connection = Arc::new(connection);
        {
            let mut slot = self.connection.write();
            if slot.is_none() {
                return Err(Error::not_connected("the client was closed"));
            }
            *slot = Some(connection.clone());
        }
        drop(state);
        self.lists.invalidate_all();
        self.reads.clear();
        self.restore_session(&connection).await;
        Ok(connection)
    }

    /// Sets again what a legacy server keeps for a session: subscriptions and the log level.
    async fn restore_session(&self, connection: &Arc<Connection>) {
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
            let Value::Object(params) = params else { continue };
            // one that fails must not fail the request that found the session lost
            let restored = self
                .exchange(
                    &connection.link,
                    connection.revision,
                    method,
                    &params.into(),
                    &CallOptions::default(),
                )
                .await;
            if let Err(LinkError::Failed(error)) = restored {
                tracing::warn!(%error, "`{method}` could not be repeated in the new session");
            }
        }
    }

    /// Sends a request, after a new handshake if the server has forgotten the session; the raw JSON of the result.
    pub(in crate::client) async fn request(
        &self,
        method: &str,
        params: &RequestParams,
        options: &CallOptions,
    ) -> Result<String, Error> {
        let span = RequestSpan::new(self, method, params);
        if span.0.is_disabled() {
            return self.send_request(method, params, options).await;
        }
        let sent = Box::pin(self.send_request(method, params, options).instrument(span.0.clone()));
        let result = sent.await;
        span.finish(method, &result);
        result
    }

    async fn send_request(
        &self,
        method: &str,
        params: &RequestParams,
        options: &CallOptions,
    ) -> Result<String, Error> {
        let mut has_retried = false;
        loop {
            let connection = self.live_connection().await?;
            let sent = self.exchange(&connection.link, connection.revision, method, params, options).await;
            let retry = match sent {
                Ok(Ok(json)) => return Ok(json),
                Ok(Err(error)) if error.code == UNSUPPORTED_PROTOCOL_VERSION && !has_retried => true,
                Err(LinkError::SessionLost) if !has_retried => true,
                Ok(Err(error)) => return Err(error.into()),
                Err(LinkError::SessionLost) => {
                    return Err(Error::not_connected(
                        "the server does not keep the session that it has just begun",
                    ));
                }
                Err(LinkError::Failed(error)) => return Err(error),
            };
            has_retried |= retry;
            Box::pin(self.reconnect(&connection)).await?;
        }
    }

    pub(in crate::client) async fn notify(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<(), Error> {
        self.connection()?.link.notify(notification_text(method, params)).await
    }

    /// One request and its response, within the time limit.
    pub(in crate::client) async fn exchange(
        &self,
        link: &ServerLink,
        revision: Revision,
        method: &str,
        params: &RequestParams,
        options: &CallOptions,
    ) -> Result<RawReply, LinkError> {
        self.exchange_as(self.next_id(), link, revision, method, params, options).await
    }

    /// The same with this id.
    pub(in crate::client) async fn exchange_as(
        &self,
        id: u64,
        link: &ServerLink,
        revision: Revision,
        method: &str,
        params: &RequestParams,
        options: &CallOptions,
    ) -> Result<RawReply, LinkError> {
        let wants_progress = options.on_progress.is_some()
            || options.progress_extends
            || (self.inbox.handlers.progress.is_some() && method == "tools/call");
        let meta = self.request_meta(revision, wants_progress.then_some(id), &options.meta);
        record_id(id);
        let mut request = OutgoingRequest::new(id, method, params, &meta, revision);
        if link.is_http() && revision.is_modern() && method == "tools/call" {
            request.param_headers = self.tools.param_headers(&params.members)?;
        }
        let limit = options.timeout.unwrap_or(self.options.timeout);
        let limit = (method != "subscriptions/listen").then_some(limit);
        if !wants_progress {
            return link.request(request, limit).await;
        }
        let activity = Arc::new(Notify::new());
        let _registered = self.inbox.expect_progress(id, options.on_progress.clone(), activity.clone());
        let Some(limit) = limit.filter(|_| options.progress_extends) else {
            return link.request(request, limit).await;
        };
        let mut deadline = Instant::now() + limit;
        let mut response = Box::pin(link.request(request, None));
        loop {
            tokio::select! {
                // progress that came before the response is delivered before it
                biased;
                reply = &mut response => return reply,
                () = activity.notified() => deadline = Instant::now() + limit,
                () = sleep_until(deadline) => return Err(Error::Timeout { after: limit }.into()),
            }
        }
    }

    fn request_meta<'a>(
        &'a self,
        revision: Revision,
        progress_token: Option<u64>,
        own: &'a Map<String, Value>,
    ) -> RequestMeta<'a> {
        // the same in every revision that has it
        let client = || {
            self.client_meta.get_or_init(|| {
                let mut members = Vec::new();
                let mut object = Object::new(&mut members);
                object
                    .value(META_CLIENT_CAPABILITIES, &self.inbox.handlers.capabilities(revision))
                    .value(META_CLIENT_INFO, &self.client_info());
                members.split_off(1)
            })
        };
        let modern = || ModernMeta { client: client(), log_level: *self.log_level.lock() };
        RequestMeta { own, progress_token, modern: revision.is_modern().then(modern) }
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

/// Revisions that servers were found to have, by command line or URL.
pub(in crate::client) type RememberedRevisions = HashMap<String, Revision>;
