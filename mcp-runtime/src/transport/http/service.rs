//! The endpoint: one request in, one response out, for every revision. Our accept loop calls it; for other servers it is
//! a tower service.

use std::{
    any::Any,
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, Request as HttpRequest, Response, StatusCode, request::Parts};
use hyper::body::{Body, Bytes};
use tokio_util::sync::CancellationToken;

use super::{
    exchange::Exchange,
    guard::Guard,
    headers::{HeaderField, ProtocolHeaders, check_headers},
    legacy::Legacy,
    request_body::receive,
    response::{self, HttpError, ResponseBody, reply},
    stream::PendingAnswer,
};
use crate::{
    admission::{Budget, Permit},
    blocking,
    config::HttpOptions,
    connection::{Caller, ClientConnection, ClientData, RequestContext},
    dispatch::{Calls, Request, StartedRequest, declared_version},
    extensions::Extensions,
    jsonrpc::{JsonRpcMessage, MalformedMessage, ProtocolError, parse},
    protocol::Revision,
    server::Server,
};

/// What one server admits over HTTP.
#[derive(Debug)]
pub(super) struct Budgets {
    /// Requests that are served at once.
    requests: Arc<Budget>,
    /// Places for messages that need none of those, while all are taken.
    messages: Arc<Budget>,
    /// Calls that go on after their client went away.
    pub(super) detached: Arc<Budget>,
    /// Streams that are opened with GET.
    pub(super) streams: Arc<Budget>,
    /// Of those, the ones that wait for their clients.
    pub(super) waiting: Arc<Budget>,
    /// Bytes of bodies that are not complete yet.
    pub(super) bodies: Arc<Budget>,
    /// Bytes of messages that clients have not read yet.
    pub(super) outbound: Arc<Budget>,
}

/// A place for the time that a message is read and begun.
pub(super) enum RequestPermit {
    /// Among the requests that are served at once; a call keeps it.
    Request(Permit),
    /// For a response or a notification while all of those are taken: calls may be waiting for just that.
    Message { _permit: Permit },
}

impl RequestPermit {
    /// # Errors
    /// All places of requests are taken.
    pub(super) fn for_request(self) -> Result<Permit, HttpError> {
        match self {
            Self::Request(permit) => Ok(permit),
            Self::Message { .. } => Err(HttpError::busy()),
        }
    }
}

impl Budgets {
    /// A place for a message that has not been read.
    ///
    /// # Errors
    /// All are taken.
    pub(super) fn admit(&self) -> Result<RequestPermit, HttpError> {
        let request = self.requests.try_acquire(1).map(RequestPermit::Request);
        request
            .or_else(|| self.messages.try_acquire(1).map(|permit| RequestPermit::Message { _permit: permit }))
            .ok_or_else(HttpError::busy)
    }

    /// Places for so many more requests of one message.
    pub(super) fn admit_more(&self, requests: usize) -> Result<Vec<Permit>, HttpError> {
        let permits = (0..requests).map(|_| self.requests.try_acquire(1));
        permits.collect::<Option<_>>().ok_or_else(HttpError::busy)
    }

    /// The requests that are served at once.
    pub(super) fn requests(&self) -> &Arc<Budget> {
        &self.requests
    }
}

/// Messages that are read while all places of requests are taken.
const MESSAGES: usize = 64;

/// How far a request has come before anything is awaited.
pub(super) enum StartedResponse {
    Done(Response<ResponseBody>),
    Running(Box<PendingAnswer>),
}

impl From<Response<ResponseBody>> for StartedResponse {
    fn from(response: Response<ResponseBody>) -> Self {
        Self::Done(response)
    }
}

impl From<HttpError> for StartedResponse {
    fn from(refusal: HttpError) -> Self {
        Self::Done(refusal.into())
    }
}

/// One server behind one path.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) server: Server,
    pub(super) options: HttpOptions,
    guard: Guard,
    pub(super) budgets: Budgets,
    no_extensions: Arc<Extensions>,
    /// Fires when the server is told to stop.
    pub(super) shutdown: CancellationToken,
    /// What revisions before 2026-07-28 need.
    pub(super) legacy: Legacy,
}

/// What the steps of one request share.
pub(super) struct Incoming<'a> {
    pub(super) exchange: &'a Arc<Exchange>,
    pub(super) head: &'a ProtocolHeaders<'a>,
    pub(super) caller: Option<Arc<Caller>>,
    pub(super) place: RequestPermit,
}

impl Endpoint {
    pub(crate) fn new(server: &Server) -> Arc<Self> {
        let options = server.options().http.clone();
        let budgets = Budgets {
            requests: Budget::new(options.max_requests),
            messages: Budget::new(MESSAGES),
            detached: Budget::new(options.max_detached),
            streams: Budget::new(options.max_streams),
            waiting: Budget::new(options.max_waiting),
            bodies: Budget::new(options.max_unfinished_bytes),
            outbound: Budget::new(options.max_unread_bytes),
        };
        Arc::new(Self {
            server: server.clone(),
            guard: Guard::new(&options),
            legacy: Legacy::new(server, &options),
            budgets,
            no_extensions: Arc::default(),
            shutdown: CancellationToken::default(),
            options,
        })
    }

    /// Answers one request to the endpoint.
    pub(crate) async fn answer<B>(self: &Arc<Self>, request: HttpRequest<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        let exchange = Exchange::new(parts, self.budgets.outbound.clone());
        let parts = exchange.parts();
        let head = ProtocolHeaders::read(&parts.headers);
        if let Err(refusal) = self.guard.check(parts, &head) {
            return refusal.into();
        }
        let mut response = match parts.method {
            Method::OPTIONS => response::preflight(&parts.headers, self.allow(&head)),
            Method::POST => self.post(&exchange, &head, body).await,
            Method::GET | Method::DELETE => self.legacy.get_or_delete(self, &exchange, &head).await,
            _ => response::not_allowed(self.allow(&head)),
        };
        if let HeaderField::One(origin) = head.origin {
            response::expose(response.headers_mut(), origin);
        }
        response
    }

    /// Whether a request may be looked at.
    ///
    /// # Errors
    /// Its host or origin is not served.
    pub(super) fn guard(&self, parts: &Parts, head: &ProtocolHeaders<'_>) -> Result<(), HttpError> {
        self.guard.check(parts, head)
    }

    /// Clients that wait learn that the server stops; requests are still answered.
    pub(super) fn stop(&self) {
        self.shutdown.cancel();
        self.legacy.stop();
    }

    /// The methods of the wire's `Allow`.
    pub(super) fn allow(&self, head: &ProtocolHeaders<'_>) -> &'static str {
        if head.is_modern() { "POST" } else { self.legacy.allow() }
    }

    async fn post<B>(
        self: &Arc<Self>,
        exchange: &Arc<Exchange>,
        head: &ProtocolHeaders<'_>,
        body: B,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let caller = self.caller(exchange.parts());
        if !head.is_json() {
            return HttpError::wrong_type().into();
        }
        // before the body is read, which may take its time
        let place = match self.budgets.admit() {
            Ok(place) => place,
            Err(refusal) => return refusal.into(),
        };
        let HttpOptions { max_body, body_timeout, .. } = self.options;
        let received = match receive(body, max_body, body_timeout, head.expects, &self.budgets.bodies).await {
            Ok(received) => received,
            Err(refusal) => return refusal.into(),
        };
        match self.start(&received.text, Incoming { exchange, head, caller, place }) {
            StartedResponse::Done(response) => response,
            StartedResponse::Running(answer) => {
                drop(received);
                answer.await
            }
        }
    }

    /// Serves one body as far as that goes without waiting.
    fn start(self: &Arc<Self>, text: &[u8], incoming: Incoming<'_>) -> StartedResponse {
        let message = match parse(text) {
            Ok(message) => message,
            Err(malformed) => return self.malformed(text, &malformed, incoming),
        };
        if message.params().meta.version.is_some() || incoming.head.is_modern() {
            self.modern(&message, incoming)
        } else {
            self.legacy.post(self, &message, incoming)
        }
    }

    /// What is not a single message: perhaps an array, which one revision had.
    #[cold]
    fn malformed(
        self: &Arc<Self>,
        text: &[u8],
        malformed: &MalformedMessage,
        incoming: Incoming<'_>,
    ) -> StartedResponse {
        if !incoming.head.is_modern() {
            return self.legacy.malformed(self, text, malformed, incoming);
        }
        response::error(StatusCode::BAD_REQUEST, malformed.id.as_deref(), &malformed.error).into()
    }

    /// A request of 2026-07-28: it says all that there is to know.
    fn modern(self: &Arc<Self>, message: &JsonRpcMessage<'_>, incoming: Incoming<'_>) -> StartedResponse {
        let Incoming { exchange, head, caller, place } = incoming;
        let refuse =
            |error: &ProtocolError| response::error(StatusCode::BAD_REQUEST, message.id(), error).into();
        if message.is_response() {
            return HttpError::bad_request(
                "this revision has no requests to clients, so no responses either",
            )
            .into();
        }
        let context = self.context(exchange, exchange.clone(), caller, ClientData::NONE);
        let Some(request) = Request::from_message(message, Revision::LATEST, &context) else {
            if head.is_unknown_version() {
                return HttpError::bad_request("`MCP-Protocol-Version` is not a version that is served")
                    .into();
            }
            // no notification means anything here: a client cancels by closing its stream
            return response::empty(StatusCode::ACCEPTED).into();
        };
        let meta = &request.params.meta;
        let complete = meta.capabilities.is_some_and(|raw| raw.get().starts_with('{'));
        match declared_version(meta) {
            Ok(Some(version)) if complete => {
                if let Err(error) = check_headers(message, &version, head) {
                    return refuse(&error);
                }
            }
            Err(error) if complete => return refuse(&error),
            // dispatch says what is missing
            _ => {}
        }
        let accepts = exchange.accepts();
        if request.is_listen() {
            if !accepts.stream {
                return HttpError::not_acceptable().reply(message.id()).into();
            }
            return match self.server.start_listen(request, None) {
                Ok((subscription, _)) => self.subscription(subscription, exchange),
                Err(refused) => reply(&self.server, exchange, request.id, Revision::LATEST, &refused),
            }
            .into();
        }
        if !accepts.json && !accepts.stream {
            return HttpError::not_acceptable().reply(message.id()).into();
        }
        let permit = match place.for_request() {
            Ok(permit) => permit,
            Err(refusal) => return refusal.reply(message.id()).into(),
        };
        match self.server.start_request(request, None, &mut Vec::new()) {
            StartedRequest::Reply(answer) => {
                reply(&self.server, exchange, request.id, Revision::LATEST, &answer).into()
            }
            StartedRequest::Running(mut running) => {
                running.pending.hold(blocking::CallPermit::Budget(permit));
                let calls = Calls::single(running, Revision::LATEST);
                StartedResponse::Running(PendingAnswer::new(&self.server, calls, exchange, None))
            }
        }
    }

    /// Who sends a request, as its head tells.
    pub(super) fn caller(&self, parts: &Parts) -> Option<Arc<Caller>> {
        self.options.caller.as_ref().and_then(|find| find(parts)).map(Arc::new)
    }

    /// Where a request comes from, for dispatch.
    pub(super) fn context(
        &self,
        exchange: &Exchange,
        connection: Arc<dyn ClientConnection>,
        caller: Option<Arc<Caller>>,
        client: ClientData,
    ) -> RequestContext {
        let extensions = self.extensions(exchange);
        RequestContext {
            connection: Some(connection),
            extensions,
            caller,
            authenticated: self.options.caller.is_some(),
            client,
        }
    }

    /// What middleware has put into a request.
    fn extensions(&self, exchange: &Exchange) -> Arc<Extensions> {
        let declared = self.server.request_types();
        if declared.is_empty() {
            return self.no_extensions.clone();
        }
        let mut found = Extensions::default();
        let extensions: &dyn Any = &exchange.parts().extensions;
        for declared in declared {
            (declared.extract)(extensions, &mut found);
        }
        Arc::new(found)
    }
}

/// A server as a tower service: one MCP endpoint, at whatever path it is mounted.
///
/// Requests need a body of bytes; the response's body is a [`ResponseBody`]. Made with
/// [`Server::into_service`](crate::Server::into_service); clones are the same endpoint.
#[derive(Clone)]
pub struct HttpService(pub(super) Arc<Endpoint>);

impl HttpService {
    /// Ends every open stream, and lets none be opened any more; requests in flight are still answered.
    ///
    /// For the graceful shutdown of an HTTP server of your own, which otherwise waits for clients that listen.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl<B> tower_service::Service<HttpRequest<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<B>) -> Self::Future {
        let endpoint = self.0.clone();
        Box::pin(async move { Ok(endpoint.answer(request).await) })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpService")
    }
}
