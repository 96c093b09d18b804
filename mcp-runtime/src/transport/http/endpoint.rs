//! State that all requests to one endpoint share: the server, its options, the origin of a request, and the limits on
//! running requests, open streams and buffered bytes. A request that exceeds a limit is refused as busy.

use std::{
    any::Any,
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::{HeaderName, request::Parts};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    cut_off::CutOff,
    headers::ProtocolHeaders,
    http_error::HttpError,
    request_connection::{Peer, RequestConnection, RequestSender},
    sse::StreamDeadline,
};
use crate::core::{
    admission::{Owner, Permit, Quota, Shares},
    config::{ForwardedClient, HttpOptions},
    connection::{AccessRules, ClientConnection, ClientData, Principal, RequestContext},
    dispatch::Calls,
    extensions::Extensions,
    log_limit::{LogLimit, LogLine},
    reason::Refusal,
    server::Server,
};

/// One server, served at one path.
pub(super) struct Endpoint {
    pub(super) server: Server,
    pub(super) options: HttpOptions,
    pub(super) budgets: Budgets,
    /// Set if the server identifies callers.
    pub(super) access_rules: Option<Arc<AccessRules>>,
    no_extensions: Arc<Extensions>,
    /// Whether the warning about the header of trusted proxies was logged.
    has_warned: AtomicBool,
    /// Whether the server has been told to stop.
    stopping: AtomicBool,
    /// Fires when the server stops.
    pub(super) shutdown: CancellationToken,
    /// Fires when calls have had the time that a shutdown leaves them.
    pub(super) cut_off: CutOff,
}

/// One POST whose body has been read.
pub(super) struct PostRequest<'a> {
    pub(super) connection: &'a Arc<RequestConnection>,
    pub(super) headers: &'a ProtocolHeaders<'a>,
    pub(super) caller: Option<Arc<Principal>>,
    pub(super) permit: MessagePermit,
}

impl Endpoint {
    /// `connections`: how many are accepted, if the server accepts them itself.
    pub(super) fn new(server: &Server, connections: Option<usize>) -> Arc<Self> {
        let mut options = server.options().http.clone();
        if let Some(connections) = connections {
            // the rest is for requests
            let most = connections / 4 * 3 + connections % 4 * 3 / 4;
            options.max_streams = options.max_streams.min(most.max(1));
        }
        Arc::new(Self {
            server: server.clone(),
            budgets: Budgets::new(&options),
            access_rules: options.identifies_callers().then(|| server.access_rules().clone()),
            no_extensions: Arc::default(),
            has_warned: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            shutdown: CancellationToken::default(),
            cut_off: CutOff::new(connections.is_some()),
            options,
        })
    }

    /// From now on the server is not ready, and connections end with their next response.
    pub(super) fn announce_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the server has been told to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// The client's side of a request; `peer` is the other end of its TCP connection, where the server accepted that.
    pub(super) fn connection(&self, parts: Parts, peer: Option<Arc<Peer>>) -> Arc<RequestConnection> {
        let peer = peer.or_else(|| peer_address(&parts).map(Peer::new));
        let address = peer.as_ref().map(|peer| peer.address);
        let mut is_known = true;
        let named = match (&self.options.client_address, address) {
            (Some(find), address) => find(&parts, address),
            (None, Some(peer)) if !self.options.trusted_proxies.is_empty() => {
                match self.options.trusted_proxies.find_client(&parts.headers, peer) {
                    ForwardedClient::Address(address) => Some(address),
                    ForwardedClient::Peer => {
                        self.warn_of_other_header(&parts, peer);
                        None
                    }
                    ForwardedClient::Malformed => {
                        is_known = false;
                        None
                    }
                }
            }
            (None, _) => None,
        };
        let authenticated = self.access_rules.is_some();
        let sender = RequestSender { peer: named.map(Peer::new).or(peer), is_known, authenticated };
        RequestConnection::new(parts, sender, self.budgets.outbound.clone())
    }

    /// Warns once if a trusted proxy writes another header than the one that it is said to write: its clients are one.
    fn warn_of_other_header(&self, parts: &Parts, proxy: IpAddr) {
        if let Some((named, other)) = self.options.trusted_proxies.other_header(&parts.headers, proxy)
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                %proxy,
                "a trusted proxy sent `{other}` instead of `{named}`: its clients share one address\n\
                 if the proxy writes `{other}`, name it: `.http(|http| http.forwarded_header(\"{other}\"))`"
            );
        }
    }

    /// Checks that a trusted proxy has said who sent a request, if it has said anything.
    ///
    /// # Errors
    /// `400`: its header cannot be read. To charge the proxy instead would give a client a second share of each limit.
    pub(super) fn check_sender(&self, connection: &RequestConnection) -> Result<(), HttpError> {
        if connection.sender().is_known {
            return Ok(());
        }
        let header = self.options.trusted_proxies.header();
        let message = format!("`{header}` does not say which client sent the request");
        Err(HttpError::invalid(Refusal::Forwarded, message))
    }

    /// Finds out who calls, from the head of a request: before its body is read, and before it takes any permit.
    ///
    /// # Errors
    /// The server authenticates callers itself, and this one is refused.
    pub(super) async fn identify(&self, connection: &RequestConnection) -> Result<(), HttpError> {
        #[cfg(feature = "auth")]
        if let Some(authenticator) = &self.options.authenticator {
            return self.authenticate(authenticator, connection).await;
        }
        let Some(find) = &self.options.caller else { return Ok(()) };
        if let Some(caller) = find(&without_repeated_headers(connection.parts())) {
            if caller.has_expired() {
                tracing::debug!("the caller's authentication has expired");
            } else if caller.subject().is_empty() {
                tracing::debug!("the caller has an empty subject");
            } else {
                connection.set_caller(Arc::new(caller));
            }
        }
        Ok(())
    }

    /// Makes the state of a server that other code than its own accept loop serves.
    ///
    /// # Errors
    /// `503`: it cannot be made at the moment.
    #[cold]
    pub(super) async fn make_state(&self) -> Result<(), HttpError> {
        static LIMIT: LogLimit = LogLimit::new();
        self.server.made_state().make().await.map_err(|error| {
            if let Some(LogLine { suppressed }) = LIMIT.line() {
                tracing::error!(suppressed, %error, "requests are refused");
            }
            HttpError::not_ready()
        })
    }

    /// Completes when a stream of that caller must end: at its maximum age, when the caller's authentication expires, or
    /// when the server ends the streams of the caller.
    pub(super) fn stream_end(&self, caller: Option<&Arc<Principal>>, max_age: Duration) -> StreamDeadline {
        let expires = caller.and_then(|caller| caller.expires);
        let left = expires.map(|expires| expires.duration_since(SystemTime::now()).unwrap_or_default());
        let age = left.unwrap_or(Duration::MAX).min(max_age);
        let ticket = caller.map(|caller| self.server.hub().register_stream(caller.clone()));
        let aged = sleep(age);
        StreamDeadline::new(async move {
            match ticket {
                Some(ticket) => tokio::select! {
                    () = aged => {}
                    () = ticket.end.cancelled() => {}
                },
                None => aged.await,
            }
        })
    }

    /// The context of a request.
    pub(super) fn context(
        &self,
        request: &RequestConnection,
        connection: Arc<dyn ClientConnection>,
        caller: Option<Arc<Principal>>,
        client: ClientData,
    ) -> RequestContext {
        let address = request.sender().peer.as_ref().map(|peer| peer.address);
        RequestContext {
            connection: Some(connection),
            extensions: self.extensions(request),
            caller,
            access_rules: self.access_rules.clone(),
            address,
            rate_taken: true,
            has_waited: false,
            client,
        }
    }

    /// Takes a request from the rate of its sender, whose caller is known.
    ///
    /// # Errors
    /// `429`: the sender has used up its rate.
    pub(super) async fn take_rate(&self, connection: &RequestConnection) -> Result<(), HttpError> {
        let taken = self.server.take_rate(|| connection.owner());
        taken.get().await.map_err(HttpError::too_many_requests)
    }

    /// The declared values that middleware has put into a request.
    fn extensions(&self, request: &RequestConnection) -> Arc<Extensions> {
        let types = &self.server.options().http.request_types;
        if types.is_empty() {
            return self.no_extensions.clone();
        }
        let mut extensions = Extensions::default();
        let source: &dyn Any = &request.parts().extensions;
        for declared in types {
            (declared.extract)(source, &mut extensions);
        }
        Arc::new(extensions)
    }
}

/// The address that the HTTP server has put into a request, which did not come through [`serve`](super::serve).
fn peer_address(parts: &Parts) -> Option<IpAddr> {
    #[cfg(feature = "axum")]
    if let Some(info) = parts.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
        return Some(info.0.ip());
    }
    parts.extensions.get::<SocketAddr>().map(SocketAddr::ip)
}

/// The limits of one endpoint, which its clients share.
pub(super) struct Budgets {
    /// Requests that run concurrently.
    pub(super) requests: Arc<Shares>,
    /// Responses and notifications that are read while `requests` is exhausted.
    messages: Arc<Shares>,
    /// Requests to routes of additions.
    pub(super) routes: Arc<Shares>,
    /// Calls that continue after their client has disconnected.
    detached: Arc<Shares>,
    /// Streams that are opened with GET.
    pub(super) streams: Arc<Shares>,
    /// Standalone streams that wait for their clients to reconnect.
    pub(super) waiting: Arc<Shares>,
    /// Bytes of request bodies that are not complete yet.
    pub(super) bodies: Arc<Shares>,
    /// Bytes of messages that clients have not read yet.
    pub(super) outbound: Arc<Shares>,
}

/// The permit to read one message.
pub(super) enum MessagePermit {
    /// Taken from the requests that run concurrently; the message's call keeps it.
    Request(Permit),
    /// For a response or a notification while `requests` is exhausted: running calls may be waiting for it.
    Message(Permit),
}

impl MessagePermit {
    /// The permit for the message's request.
    ///
    /// # Errors
    /// Too many requests are running, of all clients or of this owner.
    pub(super) fn into_request_permit(
        self,
        budgets: &Budgets,
        connection: &RequestConnection,
    ) -> Result<Permit, HttpError> {
        match self {
            Self::Request(permit)
                if permit.is_charged() || budgets.requests.has_room(|| connection.owner()) =>
            {
                Ok(permit)
            }
            Self::Request(_) | Self::Message(_) => Err(HttpError::busy()),
        }
    }

    /// Charges the permit to the owner of a message whose body has not arrived yet.
    ///
    /// # Errors
    /// The owner waits for too many bodies.
    pub(super) fn charge(&mut self, owner: &Owner) -> Result<(), HttpError> {
        let (Self::Request(permit) | Self::Message(permit)) = self;
        permit.try_charge(owner).then_some(()).ok_or_else(HttpError::busy)
    }
}

/// Bytes of bodies that are not complete yet, of all clients.
pub(super) const MAX_UNFINISHED: usize = 128 << 20;
/// Bytes of messages that clients have not read yet, of all of them.
const MAX_UNREAD: usize = 64 << 20;
/// Messages that are read while the budget of requests is exhausted.
const MAX_MESSAGES: usize = 64;
/// Requests to routes of additions, which everyone may send.
const MAX_ROUTE_REQUESTS: usize = 256;
/// Calls that continue without their client.
const MAX_DETACHED: usize = 256;
/// Standalone streams that wait for their clients.
pub(super) const MAX_WAITING: usize = 256;

impl Budgets {
    fn new(options: &HttpOptions) -> Self {
        let shares = |limit| Shares::new(Quota::half(limit));
        Self {
            requests: shares(options.max_requests),
            messages: shares(MAX_MESSAGES),
            routes: shares(MAX_ROUTE_REQUESTS),
            detached: shares(MAX_DETACHED),
            streams: shares(options.max_streams),
            waiting: shares(MAX_WAITING),
            bodies: shares(MAX_UNFINISHED),
            outbound: shares(MAX_UNREAD),
        }
    }

    /// The permit for a message that has not been read yet. It is charged to the message's owner only if it has to wait,
    /// for its body or its call.
    ///
    /// # Errors
    /// Too many messages are being served, of all clients or of this owner.
    pub(super) fn admit(&self, connection: &RequestConnection) -> Result<MessagePermit, HttpError> {
        let acquire = |shares: &Arc<Shares>| {
            shares.has_room(|| connection.owner()).then(|| shares.try_acquire_briefly(1)).flatten()
        };
        let request = acquire(&self.requests).map(MessagePermit::Request);
        request.or_else(|| acquire(&self.messages).map(MessagePermit::Message)).ok_or_else(HttpError::busy)
    }

    /// Permits for further requests of one message.
    ///
    /// # Errors
    /// Too many requests are running.
    pub(super) fn admit_more(&self, requests: usize, owner: &Owner) -> Result<Vec<Permit>, HttpError> {
        let permits = (0..requests).map(|_| self.requests.try_acquire(owner, 1));
        permits.collect::<Option<_>>().ok_or_else(HttpError::busy)
    }

    /// Lets calls continue without their client, with permits of `detached`; `false` if too many do already.
    pub(super) fn detach(&self, calls: &mut Calls, owner: &Owner) -> bool {
        calls.running_mut().all(|running| match self.detached.try_acquire(owner, 1) {
            Some(permit) => {
                running.pending.hold_instead(permit);
                true
            }
            None => false,
        })
    }
}

/// The head of a request without headers that it has several times: one of them may be a proxy's, and another the client's.
fn without_repeated_headers(head: &Parts) -> Cow<'_, Parts> {
    if head.headers.keys_len() == head.headers.len() {
        return Cow::Borrowed(head);
    }
    let mut head = head.clone();
    let is_repeated = |name: &&HeaderName| head.headers.get_all(*name).iter().nth(1).is_some();
    let repeated: Vec<_> = head.headers.keys().filter(is_repeated).cloned().collect();
    for name in repeated {
        head.headers.remove(name);
    }
    Cow::Owned(head)
}
