//! The endpoint: one request in, one response out, for both eras. The router and our own accept loop call it.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use axum::http::{Method, Request, Response, StatusCode, request::Parts};
use hyper::body::{Body, Bytes};

use super::{
    call::{Answer, Calls, Part, Pending, whole},
    cors,
    exchange::Exchange,
    feed::{Feed, session_name},
    guard::Guard,
    head::{Accepts, Field, Head},
    options::HttpOptions,
    receive::receive,
    reply::{self, Refusal, Reply},
    running::RunningCalls,
    sse::Connections,
};
use crate::{
    context::{Caller, Ending, Mailbox, Peer, Slots},
    dispatch::Begun,
    jsonrpc::{Message, RequestId},
    protocol::Revision,
    server::Server,
    session::{EventStore, Revoked, Session, Table, Token},
};

/// One server behind one path.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) server: Server,
    pub(super) options: HttpOptions,
    guard: Guard,
    /// Absent in stateless mode.
    pub(super) sessions: Option<Arc<Sessions>>,
    pub(super) detached: AtomicUsize,
    /// Standing streams, and those that were taken up again.
    pub(super) streams: Arc<AtomicUsize>,
    /// Standing streams that wait for their clients.
    pub(super) waiting: Arc<AtomicUsize>,
    in_flight: AtomicUsize,
    no_slots: Arc<Slots>,
    /// Fires when the server is told to stop.
    pub(super) ending: Ending,
    /// Clients of the transport of 2024-11-05.
    pub(super) old: Connections,
}

/// What little there is to know of sessions.
pub(super) struct Sessions {
    pub(super) token: Token,
    pub(super) revoked: Revoked,
    pub(super) running: RunningCalls,
    /// Requests of ours that wait for their responses.
    pub(super) mailbox: Mailbox,
    /// What is kept beside the ids.
    pub(super) table: Arc<Table<Arc<Feed>>>,
    /// Where events are kept, if they have ids.
    pub(super) store: Option<Arc<dyn EventStore>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// What the steps of one request share.
pub(super) struct Received<'a> {
    pub(super) exchange: &'a Arc<Exchange>,
    pub(super) head: &'a Head<'a>,
    pub(super) caller: Option<Arc<Caller>>,
}

impl Received<'_> {
    /// What kinds of reply the client takes.
    pub(super) fn accepts(&self) -> Accepts {
        self.head.accepts(&self.exchange.parts().headers)
    }
}

/// How far a request has come before anything is awaited.
pub(super) enum Started {
    Done(Response<Reply>),
    Running(Calls),
}

impl From<Response<Reply>> for Started {
    fn from(response: Response<Reply>) -> Self {
        Self::Done(response)
    }
}

impl From<Refusal> for Started {
    fn from(refusal: Refusal) -> Self {
        Self::Done(refusal.into())
    }
}

impl Endpoint {
    pub(crate) fn new(server: &Server) -> Arc<Self> {
        let options = server.options().http.clone();
        let sessions = (!options.stateless).then(|| {
            Arc::new(Sessions {
                token: Token::new(server.keys(), options.session_lifetime.as_secs(), server.name()),
                revoked: Revoked::new(options.max_revoked),
                running: RunningCalls::default(),
                mailbox: Mailbox::default(),
                table: Table::new(options.max_sessions, server.hub().clone()),
                store: options.resumable.then(|| options.events()),
            })
        });
        Arc::new(Self {
            server: server.clone(),
            guard: Guard::new(&options),
            sessions,
            detached: AtomicUsize::new(0),
            streams: Arc::default(),
            waiting: Arc::default(),
            in_flight: AtomicUsize::new(0),
            no_slots: Arc::default(),
            ending: Ending::default(),
            old: Connections::default(),
            options,
        })
    }

    /// Answers one request.
    pub(crate) async fn answer<B>(self: &Arc<Self>, request: Request<B>) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        let exchange = Exchange::new(self, parts);
        let parts = exchange.parts();
        let head = Head::read(&parts.headers);
        if let Err(refusal) = self.guard.check(parts, &head) {
            return refusal.into();
        }
        let old = self.options.sse_path.as_deref() == Some(parts.uri.path());
        let mut response = match parts.method {
            Method::OPTIONS => cors::preflight(&parts.headers, self.allow(&head)),
            _ if old => self.old(&exchange, &head, body).await,
            Method::POST => self.post(&exchange, &head, body).await,
            Method::GET => self.listen(&exchange, &head).await,
            Method::DELETE => self.delete(parts, &head).await,
            _ => reply::not_allowed(self.allow(&head)),
        };
        if let Field::One(origin) = head.origin {
            cors::expose(response.headers_mut(), origin);
        }
        response
    }

    /// Whoever waits for clients waits in vain from now on; requests are still answered.
    pub(super) fn stop(&self) {
        self.ending.fire();
        if let Some(sessions) = &self.sessions {
            sessions.mailbox.close_all();
            sessions.table.end_all();
        }
    }

    pub(super) fn allow(&self, head: &Head<'_>) -> &'static str {
        if self.sessions.is_some() && !head.is_modern() { "GET, POST, DELETE" } else { "POST" }
    }

    async fn post<B>(self: &Arc<Self>, exchange: &Arc<Exchange>, head: &Head<'_>, body: B) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let caller = self.caller(exchange.parts());
        if !head.is_json() {
            return Refusal::wrong_type().into();
        }
        let text = match receive(body, self.options.max_body, self.options.body_timeout, head.expects).await {
            Ok(text) => text,
            Err(refusal) => return refusal.into(),
        };
        match self.start(&text, &Received { exchange, head, caller }) {
            Started::Done(response) => response,
            Started::Running(calls) => {
                drop(text);
                Answer::new(calls).await
            }
        }
    }

    /// Ends a session.
    async fn delete(&self, parts: &Parts, head: &Head<'_>) -> Response<Reply> {
        let Some(sessions) = self.sessions.as_ref().filter(|_| !head.is_modern()) else {
            return reply::not_allowed(self.allow(head));
        };
        if let Err(name) = head.once() {
            return head.repeated(name).into();
        }
        let session = match self.session(sessions, head, self.caller(parts).as_deref()) {
            Ok(session) => session,
            Err(refusal) => return refusal.into(),
        };
        if !sessions.revoked.revoke(session.sid, session.expires, now()) {
            return reply::not_allowed("POST");
        }
        sessions.running.cancel_all(&session.sid);
        sessions.mailbox.close(&session.sid);
        sessions.table.end(&session.sid);
        if let Some(store) = &sessions.store {
            store.forget(&session_name(&session.sid)).await;
        }
        reply::empty(StatusCode::NO_CONTENT)
    }

    pub(super) fn caller(&self, parts: &Parts) -> Option<Arc<Caller>> {
        self.options.caller.as_ref().and_then(|find| find(parts)).map(Arc::new)
    }

    /// The session that a request belongs to.
    pub(super) fn session(
        &self,
        sessions: &Sessions,
        head: &Head<'_>,
        caller: Option<&Caller>,
    ) -> Result<Session, Refusal> {
        let Some(id) = head.session.first() else {
            return Err(Refusal::bad_request(
                "`Mcp-Session-Id` is missing\nstart a session with `initialize`",
            ));
        };
        let session = sessions.token.open(id.as_bytes(), caller, now());
        session.filter(|session| !sessions.revoked.contains(&session.sid)).ok_or_else(Refusal::no_session)
    }

    /// What middleware has put into a request.
    pub(super) fn slots(&self, exchange: &Exchange) -> Arc<Slots> {
        let declared = self.server.request_types();
        if declared.is_empty() {
            return self.no_slots.clone();
        }
        let mut slots = Slots::default();
        let extensions: &dyn Any = &exchange.parts().extensions;
        for declared in declared {
            (declared.extract)(extensions, &mut slots);
        }
        Arc::new(slots)
    }

    /// The other side of a request, for dispatch.
    pub(super) fn peer(
        &self,
        request: &Received<'_>,
        session: Option<&Session>,
        accepts: Accepts,
        revision: Revision,
    ) -> Peer {
        let exchange = request.exchange;
        if let Some(session) = session {
            exchange.belongs_to(session);
        }
        Peer {
            outlet: accepts.stream.then(|| Arc::clone(exchange) as _),
            request: self.slots(exchange),
            caller: request.caller.clone(),
            restricted: self.options.caller.is_some(),
            client: session.map(|session| session.client.clone()).unwrap_or_default(),
            // a request of the stateless era stands alone
            link: (!revision.is_modern()).then(|| Arc::clone(exchange) as _),
            headers: Some(Arc::clone(exchange) as _),
        }
    }

    /// Serves one request of either era.
    pub(super) fn call(
        self: &Arc<Self>,
        message: &Message<'_>,
        revision: Revision,
        session: Option<&Session>,
        request: &Received<'_>,
    ) -> Started {
        if revision.is_modern() && message.method() == Some("subscriptions/listen") {
            return self.subscription(message, request);
        }
        let accepts = request.accepts();
        if !accepts.json && !accepts.stream {
            return Refusal::not_acceptable().reply(message.id()).into();
        }
        let Some(permit) = Permit::enter(self, 1) else { return Refusal::busy().reply(message.id()).into() };
        let sid = session.map(|session| session.sid);
        let peer = self.peer(request, session, accepts, revision);
        let mut out = Vec::with_capacity(256);
        match self.server.begin(message, revision, &peer, &mut out) {
            Begun::Done(status) => whole(status, out, request.exchange.queue(), accepts).into(),
            Begun::Running(running) => {
                let status = crate::dispatch::Status::Ok;
                let cancel = self.cancellable(sid, message, &running);
                let parts = vec![Part::Running(Pending { running, cancel })];
                let detaches = !revision.is_modern();
                let exchange = request.exchange.clone();
                Started::Running(Calls { parts, batch: false, status, exchange, accepts, detaches, permit })
            }
            Begun::Listening(listening) => self.follow(listening).into(),
        }
    }

    /// Lets `notifications/cancelled` of a session find a call.
    pub(super) fn cancellable(
        &self,
        sid: Option<crate::session::Sid>,
        message: &Message<'_>,
        running: &crate::dispatch::Running,
    ) -> Option<(crate::context::Cancelled, super::running::Registration)> {
        let (sessions, sid, id) = (self.sessions.as_ref()?, sid?, message.id()?);
        let cancel = running.cancel();
        Some((cancel.wait(), sessions.running.register(sid, RequestId::of(id), cancel)))
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A place among the requests that are served at once; dropping it leaves.
#[derive(Debug)]
pub(super) struct Permit {
    endpoint: Arc<Endpoint>,
    places: usize,
}

impl Permit {
    pub(super) fn enter(endpoint: &Arc<Endpoint>, places: usize) -> Option<Self> {
        let before = endpoint.in_flight.fetch_add(places, Ordering::Relaxed);
        let permit = Self { endpoint: endpoint.clone(), places };
        (before + places <= endpoint.options.max_requests).then_some(permit)
    }

    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Gives the place up before it is dropped.
    pub(super) fn leave(&mut self) {
        self.endpoint.in_flight.fetch_sub(std::mem::take(&mut self.places), Ordering::Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.endpoint.in_flight.fetch_sub(self.places, Ordering::Relaxed);
    }
}
