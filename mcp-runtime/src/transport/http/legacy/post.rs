//! POST of revisions before 2026-07-28: the handshake, requests within a session or without, responses, notifications
//! and batches.

use std::{
    future::poll_fn,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{HeaderValue, Response, StatusCode};
use serde_json::value::RawValue;

use super::{Legacy, Session, Sessions, now, resumable::ResumableStream};
use crate::{
    blocking,
    connection::{ClientConnection, PendingResponse, Receiver, RequestContext, SessionState, Shutdown},
    dispatch::{Batch, Calls, OpenRequests, Request, StartedRequest},
    jsonrpc::{self, JsonRpcMessage, MalformedMessage, ProtocolError},
    protocol::{INVALID_PARAMS, LogLevel, Revision},
    transport::http::{
        exchange::Exchange,
        headers::SESSION_ID,
        response::{self, HttpError, ResponseBody, finish, reply},
        service::{Endpoint, Incoming, StartedResponse},
        stream::{LegacyCalls, PendingAnswer, drive},
    },
};

const NO_SESSIONS: &str = "this server keeps no sessions, so that no response would find its way back";

/// Where a message of an older revision belongs.
struct Origin {
    /// Absent in stateless mode.
    session: Option<Arc<Session>>,
    revision: Revision,
}

impl Legacy {
    /// Serves one message.
    pub(in crate::transport::http) fn post(
        &self,
        endpoint: &Arc<Endpoint>,
        message: &JsonRpcMessage<'_>,
        incoming: Incoming<'_>,
    ) -> StartedResponse {
        let head = incoming.head;
        // a response is not answered: its id is one of the server's
        let id = message.id().filter(|_| !message.is_response());
        if let Err(name) = head.once() {
            return head.repeated(name).reply(id).into();
        }
        if message.method() == Some("initialize") && message.id().is_some() {
            return self.initialize(endpoint, message, &incoming);
        }
        let origin = match self.origin(&incoming) {
            Ok(origin) => origin,
            Err(refusal) => return refusal.reply(id).into(),
        };
        let open = self.open_requests(&origin);
        if message.is_response() {
            return match open.is_some_and(|open| open.deliver_response(message)) {
                true => response::empty(StatusCode::ACCEPTED).into(),
                false => HttpError::no_request().into(),
            };
        }
        let (connection, context) = self.context(endpoint, &origin, &incoming);
        let Some(request) = Request::from_message(message, origin.revision, &context) else {
            if let Some(open) = open {
                open.handle_notification(message);
            }
            return response::empty(StatusCode::ACCEPTED).into();
        };
        let Incoming { exchange, place, .. } = incoming;
        let accepts = exchange.accepts();
        if !accepts.json && !accepts.stream {
            return HttpError::not_acceptable().reply(id).into();
        }
        let permit = match place.for_request() {
            Ok(permit) => Some(permit),
            // it tells whether the server is alive, and is answered however busy that is
            Err(_) if request.method == "ping" => None,
            Err(refusal) => return refusal.reply(id).into(),
        };
        let server = &endpoint.server;
        match server.start_request(request, open, &mut Vec::new()) {
            StartedRequest::Reply(answer) => {
                reply(server, exchange, request.id, origin.revision, &answer).into()
            }
            StartedRequest::Running(mut running) => {
                if let Some(permit) = permit {
                    running.pending.hold(blocking::CallPermit::Budget(permit));
                }
                let calls = Calls::single(running, origin.revision);
                let legacy = Box::new(SessionCalls { endpoint: endpoint.clone(), connection });
                StartedResponse::Running(PendingAnswer::new(server, calls, exchange, Some(legacy)))
            }
        }
    }

    /// The session of a message, where there are sessions, and its revision.
    fn origin(&self, incoming: &Incoming<'_>) -> Result<Origin, HttpError> {
        let Incoming { head, caller, .. } = incoming;
        match &self.sessions {
            Some(sessions) => {
                let session = sessions.find(head, caller.as_deref())?;
                let revision = session.revision;
                Ok(Origin { session: Some(session), revision })
            }
            // the header did not exist before 2025-06-18
            None => {
                let revision = head.legacy_revision().unwrap_or(Revision::V2025_03_26);
                Ok(Origin { session: None, revision })
            }
        }
    }

    fn open_requests(&self, origin: &Origin) -> Option<OpenRequests<'_>> {
        Some(self.sessions.as_ref()?.open_requests(origin.session.as_ref()?.sid))
    }

    /// Where requests come from, for dispatch.
    fn context(
        &self,
        endpoint: &Arc<Endpoint>,
        origin: &Origin,
        incoming: &Incoming<'_>,
    ) -> (LegacyConnection, RequestContext) {
        let exchange = incoming.exchange;
        let client = origin.session.as_ref().map(|session| session.client.clone()).unwrap_or_default();
        let connection = match (&self.sessions, &origin.session) {
            (Some(sessions), Some(session)) => LegacyConnection::Session(Arc::new(SessionConnection {
                exchange: exchange.clone(),
                sessions: sessions.clone(),
                session: session.clone(),
                shutdown: endpoint.shutdown.clone(),
                stream: OnceLock::new(),
            })),
            _ => LegacyConnection::Stateless(Arc::new(StatelessConnection(exchange.clone()))),
        };
        let context = endpoint.context(exchange, connection.as_client(), incoming.caller.clone(), client);
        (connection, context)
    }

    fn initialize(
        &self,
        endpoint: &Endpoint,
        message: &JsonRpcMessage<'_>,
        incoming: &Incoming<'_>,
    ) -> StartedResponse {
        let (exchange, id) = (incoming.exchange, message.id().unwrap_or_default());
        let accepts = exchange.accepts();
        if !accepts.json && !accepts.stream {
            return HttpError::not_acceptable().reply(Some(id)).into();
        }
        let (answer, handshake) = endpoint.server.initialize(message.params(), self.sessions.is_some());
        let mut response = reply(&endpoint.server, exchange, id, Revision::LATEST_LEGACY, &answer);
        if let (Some(handshake), Some(sessions)) = (handshake, &self.sessions) {
            let caller = incoming.caller.as_deref();
            let session = sessions.ids.issue(handshake.revision, &handshake.client, caller, now());
            let Some(session) = session.and_then(|id| HeaderValue::try_from(id).ok()) else {
                let error = ProtocolError::internal("no session can be started now");
                return response::error(StatusCode::INTERNAL_SERVER_ERROR, Some(id), &error).into();
            };
            response.headers_mut().insert(SESSION_ID, session);
        }
        response.into()
    }

    /// What is not a single message: perhaps an array, which one revision had.
    pub(in crate::transport::http) fn malformed(
        &self,
        endpoint: &Arc<Endpoint>,
        text: &[u8],
        malformed: &MalformedMessage,
        incoming: Incoming<'_>,
    ) -> StartedResponse {
        if let Some(messages) = jsonrpc::parse_batch(text) {
            if let Err(name) = incoming.head.once() {
                return incoming.head.repeated(name).into();
            }
            match self.origin(&incoming) {
                Ok(origin) if origin.revision == Revision::V2025_03_26 => {
                    return self.batch(endpoint, &messages, &origin, incoming);
                }
                Ok(_) => {}
                Err(refusal) => return refusal.into(),
            }
        }
        // older clients look for the error of their own request in a 200
        let known = malformed.id.is_some() && malformed.error.code == INVALID_PARAMS;
        let status = if known { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        response::error(status, malformed.id.as_deref(), &malformed.error).into()
    }

    /// An array of messages, as 2025-03-26 had them.
    fn batch(
        &self,
        endpoint: &Arc<Endpoint>,
        messages: &[&RawValue],
        origin: &Origin,
        incoming: Incoming<'_>,
    ) -> StartedResponse {
        let batch = Batch::parse(messages);
        if let Err(error) = batch.check() {
            return response::error(StatusCode::BAD_REQUEST, None, &error).into();
        }
        let accepts = incoming.exchange.accepts();
        if !accepts.json && !accepts.stream && batch.expects_replies() {
            return HttpError::not_acceptable().into();
        }
        let (connection, context) = self.context(endpoint, origin, &incoming);
        let Incoming { exchange, place, .. } = incoming;
        // each request needs a place; the message has that of the first
        let permits = match batch.ids().count() {
            0 => Ok(Vec::new()),
            count => place.for_request().and_then(|first| {
                let mut permits = endpoint.budgets.admit_more(count - 1)?;
                permits.push(first);
                Ok(permits)
            }),
        };
        let permits = match permits {
            Ok(permits) => permits,
            Err(refusal) => return refusal.into(),
        };
        let server = &endpoint.server;
        let started = server.start_batch(&batch, &context, self.open_requests(origin), &mut Vec::new());
        let mut calls = started.calls;
        if calls.is_empty() {
            return match started.unreadable {
                Some(error) => response::error(StatusCode::BAD_REQUEST, None, &error).into(),
                None if started.unexpected_response => HttpError::no_request().into(),
                None => response::empty(StatusCode::ACCEPTED).into(),
            };
        }
        for (running, permit) in calls.running_mut().zip(permits) {
            running.pending.hold(blocking::CallPermit::Budget(permit));
        }
        if !calls.is_running() {
            return finish(server, &mut calls, exchange).into();
        }
        let legacy = Box::new(SessionCalls { endpoint: endpoint.clone(), connection });
        StartedResponse::Running(PendingAnswer::new(server, calls, exchange, Some(legacy)))
    }
}

/// The server's view of a client of an older revision.
enum LegacyConnection {
    Session(Arc<SessionConnection>),
    Stateless(Arc<StatelessConnection>),
}

impl LegacyConnection {
    fn as_client(&self) -> Arc<dyn ClientConnection> {
        match self {
            Self::Session(connection) => connection.clone(),
            Self::Stateless(connection) => connection.clone(),
        }
    }
}

/// A client of which nothing is kept.
struct StatelessConnection(Arc<Exchange>);

impl ClientConnection for StatelessConnection {
    fn notify(&self, message: Vec<u8>) {
        self.0.notify(message);
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        self.0.deliver(message)
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        Err(NO_SESSIONS)
    }

    fn unreachable_reason(&self) -> Option<&'static str> {
        Some(NO_SESSIONS)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.0.header(name)
    }

    fn session(&self) -> Option<&dyn SessionState> {
        None
    }
}

/// A client with a session.
struct SessionConnection {
    exchange: Arc<Exchange>,
    // not the endpoint: a call may go on as a task, which must not hold its server
    sessions: Arc<Sessions>,
    session: Arc<Session>,
    shutdown: Shutdown,
    /// The stream that the calls become when something is sent before their results; absent inside if there is none.
    stream: OnceLock<Option<Arc<ResumableStream>>>,
}

impl SessionConnection {
    fn stream(&self) -> Option<&Arc<ResumableStream>> {
        let made = self.stream.get_or_init(|| {
            let store = self.sessions.store.clone()?;
            let open = self.sessions.table.open(self.session.sid)?;
            ResumableStream::of_calls(open, self.session.revision, store)
        });
        made.as_ref()
    }
}

impl ClientConnection for SessionConnection {
    fn notify(&self, message: Vec<u8>) {
        self.exchange.notify(message);
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        self.exchange.deliver(message)
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        let pending = self.sessions.pending.expect_response(self.session.sid)?;
        // looked at last: the pending requests are closed after this has fired
        if self.shutdown.has_fired() { Err("the server is stopping") } else { Ok(pending) }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.exchange.header(name)
    }

    fn session(&self) -> Option<&dyn SessionState> {
        Some(self)
    }

    fn close_stream(&self, retry: Duration) -> bool {
        // older clients take no event without a message, which would tell them where to go on
        let may = self.session.revision >= Revision::V2025_11_25 && self.exchange.accepts().stream;
        let Some(stream) = self.stream().filter(|_| may) else { return false };
        stream.close(retry);
        self.exchange.outbound().wake();
        true
    }
}

impl SessionState for SessionConnection {
    fn level(&self) -> Option<LogLevel> {
        self.sessions.table.level(&self.session.sid)
    }

    fn set_level(&self, level: LogLevel) -> bool {
        self.sessions.table.set_level(&self.session.sid, level)
    }

    fn subscribe(&self, uri: &str) -> bool {
        self.sessions.table.subscribe(&self.session.sid, uri)
    }

    fn unsubscribe(&self, uri: &str) {
        self.sessions.table.unsubscribe(&self.session.sid, uri);
    }
}

/// Calls of an older revision.
struct SessionCalls {
    endpoint: Arc<Endpoint>,
    connection: LegacyConnection,
}

impl LegacyCalls for SessionCalls {
    fn detach(self: Box<Self>, mut calls: Calls) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // what finds no place is dropped, and so cancelled
        if detach(&self.endpoint, &mut calls) {
            runtime.spawn(async move { poll_fn(|cx| calls.poll(cx)).await });
        }
    }

    fn stream(
        self: Box<Self>,
        calls: Calls,
        exchange: &Arc<Exchange>,
        opening: bool,
    ) -> Response<ResponseBody> {
        let resumable = match &self.connection {
            LegacyConnection::Session(connection) => connection.stream().cloned(),
            LegacyConnection::Stateless(_) => None,
        };
        match resumable {
            Some(stream) => stream.start(&self.endpoint, calls, exchange),
            None => plain(self.endpoint, calls, exchange, opening),
        }
    }

    fn closes(&self) -> bool {
        match &self.connection {
            LegacyConnection::Session(connection) => {
                connection.stream.get().and_then(Option::as_ref).is_some_and(|stream| stream.closes())
            }
            LegacyConnection::Stateless(_) => false,
        }
    }
}

/// Lets calls go on without their client; `false` if there are too many such calls.
pub(super) fn detach(endpoint: &Endpoint, calls: &mut Calls) -> bool {
    calls.running_mut().all(|running| match endpoint.budgets.detached.try_acquire(1) {
        Some(permit) => {
            running.pending.hold_instead(blocking::CallPermit::Budget(permit));
            true
        }
        None => false,
    })
}

/// Answers calls with a stream that cannot be resumed: they go on when their client goes away.
fn plain(
    endpoint: Arc<Endpoint>,
    mut calls: Calls,
    exchange: &Arc<Exchange>,
    opening: bool,
) -> Response<ResponseBody> {
    let outbound = exchange.outbound().clone();
    let receiver = Receiver::new(outbound.clone());
    tokio::spawn(async move {
        let gone = tokio::select! {
            biased;
            () = outbound.abandoned() => true,
            () = drive(&endpoint.server, &mut calls, &outbound) => false,
        };
        // what finds no place is dropped, and so cancelled
        if gone && detach(&endpoint, &mut calls) {
            poll_fn(|cx| calls.poll(cx)).await;
        }
    });
    response::events(ResponseBody::messages(receiver, opening))
}
