//! Answers HTTP requests: routes them, serves those of 2026-07-28, and passes the others to [`legacy`](super::legacy).

use std::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use http::{
    HeaderValue, Method, Request as HttpRequest, Response, StatusCode, Version, header, request::Parts,
};
use hyper::body::{Body, Bytes};

#[cfg(feature = "metrics")]
use super::metrics::metrics_response;
#[cfg(feature = "server-card")]
use super::public_documents::PublicDocument;
use super::{
    added_routes::AddedRoute,
    call_response::{StartedResponse, reply_response, request_response, subscription_response},
    cors,
    endpoint::{Endpoint, PostRequest},
    guard::Guard,
    headers::{HeaderField, ProtocolHeaders, check_headers},
    health::Health,
    http_error::HttpError,
    legacy::Legacy,
    request_body::{IncomingBody, discard_refused, read_body},
    request_connection::{Peer, RequestConnection},
    response_body::{DispatchReply, ResponseBody, charge_response, empty_response, error_response},
};
use crate::{
    core::{
        arguments::BoxFuture,
        config::{Options, ReadinessCheck},
        connection::ClientData,
        dispatch::{NotificationStream, Request, declared_version, unsupported_version},
        jsonrpc::{JsonRpcMessage, MalformedMessage, ProtocolError, parse},
        observer::RefusedRequest,
        protocol::Revision,
        reason::Reason,
        server::Server,
    },
    transport::stream_connection::SHUTDOWN_TIMEOUT,
};

/// Answers the HTTP requests to one server.
pub(super) struct HttpHandler {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) routes: Routes,
    pub(super) guard: Guard,
    #[cfg(feature = "server-card")]
    pub(super) documents: Vec<PublicDocument>,
    /// Serves revisions before 2026-07-28.
    pub(super) legacy: Legacy,
    pub(super) health: Health,
}

/// The handler of a server's path.
#[derive(Clone, Copy)]
pub(super) enum Route {
    /// The MCP endpoint.
    Mcp,
    /// The event stream of HTTP+SSE, and the messages of its clients.
    HttpSse,
    /// Whether the process is alive.
    Live,
    /// Whether the server should get requests.
    Ready,
    /// The metadata of the OAuth protected resource (RFC 9728).
    #[cfg(feature = "auth")]
    ResourceMetadata,
    /// A public document of this number, such as the server card.
    #[cfg(feature = "server-card")]
    Document(usize),
    /// The metrics, for Prometheus.
    #[cfg(feature = "metrics")]
    Metrics,
    /// The route of an addition with this number.
    Added(usize),
}

/// The paths of a server. A mounted [`HttpService`] is the MCP endpoint only.
pub(super) struct Routes(Vec<(String, Route)>);

impl Routes {
    pub(super) fn new(all: &Options) -> Self {
        let options = &all.http;
        // by far the most requests are for the endpoint
        let mut routes = vec![(options.path.clone(), Route::Mcp)];
        if let Some(path) = &options.sse_path {
            routes.push((path.clone(), Route::HttpSse));
        }
        if let Some((live, ready)) = &options.health.paths {
            routes.extend([(live.clone(), Route::Live), (ready.clone(), Route::Ready)]);
        }
        #[cfg(feature = "server-card")]
        if let Some(card) = &options.card {
            let documents = card.documents.iter().enumerate();
            routes.extend(documents.map(|(number, (path, ..))| (path.clone(), Route::Document(number))));
        }
        #[cfg(feature = "auth")]
        if let Some(metadata) = options.authenticator.as_ref().and_then(|auth| auth.metadata()) {
            routes.extend(metadata.paths.iter().map(|path| (path.clone(), Route::ResourceMetadata)));
        }
        #[cfg(feature = "metrics")]
        if let Some(path) = &all.telemetry.metrics_path {
            routes.push((path.clone(), Route::Metrics));
        }
        let added = AddedRoute::all(all).into_iter().enumerate();
        routes.extend(added.map(|(number, route)| (route.path().to_owned(), Route::Added(number))));
        Self(routes)
    }

    /// The handler of a path, if it has one.
    pub(super) fn find(&self, path: &str) -> Option<Route> {
        self.0.iter().find(|(known, _)| known == path).map(|(_, route)| *route)
    }

    /// The response for a path without a handler. For one that has a slash more or less than a path at its end, it says that.
    pub(super) fn not_found(&self, path: &str) -> Response<ResponseBody> {
        let without_slash = |path: &str| path.trim_end_matches('/').len();
        let is_meant = |known: &str| known.get(..without_slash(known)) == path.get(..without_slash(path));
        match self.iter().find(|(known, _)| is_meant(known)) {
            Some((known, _)) => {
                let error =
                    ProtocolError::invalid_request(format!("nothing is at this path\nwrite `{known}`"));
                error_response(StatusCode::NOT_FOUND, None, &error)
            }
            None => empty_response(StatusCode::NOT_FOUND),
        }
    }

    /// Every path, with what it answers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Route)> {
        self.0.iter().map(|(path, route)| (path.as_str(), *route))
    }
}

impl HttpHandler {
    /// For requests on this many connections at once, or that come through any HTTP server.
    pub(super) fn new(server: &Server, connections: Option<usize>) -> Arc<Self> {
        let endpoint = Endpoint::new(server, connections);
        let mut checks = endpoint.options.health.checks.clone();
        if !server.made_state().is_made() {
            let endpoint = endpoint.clone();
            let run: Arc<dyn Fn() -> BoxFuture<bool> + Send + Sync> = Arc::new(move || {
                let endpoint = endpoint.clone();
                Box::pin(async move { endpoint.make_state().await.is_ok() })
            });
            // first: other checks may wait for what begins with it
            checks.insert(0, ReadinessCheck { name: "state".into(), run });
        }
        Arc::new(Self {
            routes: Routes::new(server.options()),
            guard: Guard::new(&endpoint.options),
            #[cfg(feature = "server-card")]
            documents: PublicDocument::all(&endpoint.options),
            legacy: Legacy::new(server, &endpoint.options),
            health: Health::new(checks),
            endpoint,
        })
    }

    /// Answers one request; `peer` is the other end of its TCP connection, where the server accepted that.
    ///
    /// The request's head moves into the connection at once: a future that took the request would be copied with room
    /// for it at every level.
    pub(super) fn handle(
        self: Arc<Self>,
        parts: Parts,
        body: IncomingBody,
        route: Route,
        peer: Option<Arc<Peer>>,
    ) -> impl Future<Output = Response<ResponseBody>> + use<> {
        let connection = self.endpoint.connection(parts, peer);
        async move {
            let mut responding = pin!(self.respond(&connection, route, body));
            // the response is changed where it is: moving it costs more
            poll_fn(|cx| {
                let mut polled = responding.as_mut().poll(cx);
                if let Poll::Ready(response) = &mut polled {
                    self.close_if_stopping(response, connection.parts().version);
                }
                polled
            })
            .await
        }
    }

    /// Closes the connection of a response if the server has been told to stop: clients and proxies that keep connections
    /// open must not send it another request on this one. `version` is that of the request.
    pub(super) fn close_if_stopping(&self, response: &mut Response<ResponseBody>, version: Version) {
        // HTTP/2 has no such header
        if self.endpoint.is_stopping() && version <= Version::HTTP_11 {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            // hyper keeps connections of HTTP/1.0 open for responses of a later version
            *response.version_mut() = version;
        }
    }

    async fn respond(
        &self,
        connection: &Arc<RequestConnection>,
        route: Route,
        body: IncomingBody,
    ) -> Response<ResponseBody> {
        let (endpoint, parts) = (&self.endpoint, connection.parts());
        let headers = ProtocolHeaders::read(&parts.headers);
        if headers.has_unknown_coding {
            let response = HttpError::unknown_transfer_coding().into();
            self.record(connection, &response);
            return response;
        }
        // probes know neither the name of the server nor a token
        match route {
            Route::Live => return Health::answer_live(&parts.method),
            Route::Ready => return self.health.answer_ready(&parts.method, endpoint.is_stopping()).await,
            Route::Added(number) => {
                return Box::pin(self.answer_route(connection, &headers, number, body)).await;
            }
            _ => {}
        }
        #[cfg(feature = "server-card")]
        if let Route::Document(number) = route {
            return Box::pin(self.document(connection, &headers, number)).await;
        }
        let checked = endpoint.check_sender(connection).and_then(|()| self.guard.check(parts, &headers));
        if let Err(error) = checked {
            let response = error.into();
            self.record(connection, &response);
            return response;
        }
        #[cfg(feature = "metrics")]
        if matches!(route, Route::Metrics) {
            let mut response = metrics_response(&endpoint.server, &parts.method);
            charge_response(&mut response, connection, None);
            return response;
        }
        let allow = || match route {
            Route::Mcp if headers.is_modern() => "POST",
            Route::Mcp => self.legacy.allow(),
            #[cfg(feature = "auth")]
            Route::ResourceMetadata => "GET",
            _ => "GET, POST",
        };
        let identified = match (route, &parts.method) {
            // browsers send it without credentials
            (_, &Method::OPTIONS) => Ok(()),
            (Route::Mcp | Route::HttpSse, _) => {
                let identified = endpoint.identify(connection).await;
                // guesses count towards the rate of their address
                match endpoint.take_rate(connection).await.and(identified) {
                    Ok(()) if !endpoint.server.made_state().is_made() => {
                        Box::pin(endpoint.make_state()).await
                    }
                    admitted => admitted,
                }
            }
            _ => Ok(()),
        };
        let refuses_caller = identified.is_err();
        let mut response = match (route, &parts.method) {
            (_, &Method::OPTIONS) => cors::preflight_response(&parts.headers, allow()),
            _ if let Err(refused) = identified => {
                Box::pin(discard_refused(body, &headers)).await;
                refused.into()
            }
            #[cfg(feature = "auth")]
            (Route::ResourceMetadata, &Method::GET | &Method::HEAD) => self.resource_metadata(),
            (Route::Mcp, &Method::POST) => self.post(connection, &headers, body).await,
            (Route::Mcp, &Method::GET) => {
                self.legacy.get(endpoint, connection, &headers).await.unwrap_or_else(Into::into)
            }
            (Route::Mcp, &Method::DELETE) => {
                self.legacy.delete(endpoint, connection, &headers).await.unwrap_or_else(Into::into)
            }
            #[cfg(feature = "http-sse")]
            (Route::HttpSse, _) => self.legacy.sse.answer(endpoint, connection, &headers, body).await,
            _ => HttpError::method_not_allowed(allow()).into(),
        };
        // 400 is the reply to what is not a request, or to a caller whose token is not where it must be
        if refuses_caller || response.status().as_u16() > 400 {
            self.record(connection, &response);
        }
        if let HeaderField::One(origin) = headers.origin {
            cors::expose_response(response.headers_mut(), origin);
        }
        response
    }

    /// Records a response that refuses the request before its method was examined; others, dispatch records.
    pub(super) fn record(&self, connection: &RequestConnection, response: &Response<ResponseBody>) {
        if response.extensions().get::<DispatchReply>().is_none() {
            let address = connection.sender().peer.as_ref().map(|peer| peer.address);
            let caller = connection.caller().map(|caller| &**caller);
            let status = response.status().as_u16();
            let refused = response.extensions().get::<RefusedRequest>().cloned();
            let refused = refused.unwrap_or_else(|| RefusedRequest {
                status: Some(status),
                ..RefusedRequest::new(Reason::Malformed)
            });
            self.endpoint.server.record_refusal(&refused, caller, address);
        }
    }

    /// Ends every open stream and refuses new ones; other requests are still answered.
    pub(super) fn stop(&self) {
        self.endpoint.announce_stop();
        self.endpoint.shutdown.cancel();
        self.legacy.stop();
    }

    async fn post(
        &self,
        connection: &Arc<RequestConnection>,
        headers: &ProtocolHeaders<'_>,
        body: IncomingBody,
    ) -> Response<ResponseBody> {
        let endpoint = &*self.endpoint;
        let caller = connection.caller().cloned();
        // before the body is read, which may take long
        let admitted = match headers.is_json() {
            true => endpoint.budgets.admit(connection),
            false => Err(HttpError::unsupported_media_type()),
        };
        let mut permit = match admitted {
            Ok(permit) => permit,
            Err(error) => {
                Box::pin(discard_refused(body, headers)).await;
                return error.into();
            }
        };
        let limit = endpoint.options.max_body;
        let body =
            match read_body(body, limit, endpoint, connection, headers.expects_continue, &mut permit).await {
                Ok(body) => body,
                Err(error) => return error.into(),
            };
        if headers.session.first().is_some()
            && !headers.is_modern()
            && self.legacy.shares_ended()
            && let Err(error) = Box::pin(self.legacy.check_ended(headers, connection)).await
            // a modern request has no session, whatever its headers say
            && !parse(&body.text).is_ok_and(|message| is_modern(&message, headers))
        {
            return error.into();
        }
        match self.start(&body.text, PostRequest { connection, headers, caller, permit }) {
            StartedResponse::Ready(response) => response,
            StartedResponse::Pending(response) => {
                drop(body);
                response.await
            }
        }
    }

    /// Serves the text of one body as far as possible without waiting.
    fn start(&self, text: &[u8], post: PostRequest<'_>) -> StartedResponse {
        let message = match parse(text) {
            Ok(message) => message,
            Err(malformed) => return self.start_batch_or_error(text, &malformed, post),
        };
        if is_modern(&message, post.headers) {
            self.start_modern(&message, post)
        } else {
            self.legacy.start(&self.endpoint, &message, post)
        }
    }

    /// Serves a text that is not a single message; it may be a batch.
    #[cold]
    fn start_batch_or_error(
        &self,
        text: &[u8],
        malformed: &MalformedMessage,
        post: PostRequest<'_>,
    ) -> StartedResponse {
        if !post.headers.is_modern() {
            return self.legacy.start_batch_or_error(&self.endpoint, text, malformed, post);
        }
        error_response(StatusCode::BAD_REQUEST, malformed.id.as_deref(), &malformed.error).into()
    }

    /// Serves a message of 2026-07-28, which carries everything that is needed to answer it.
    fn start_modern(&self, message: &JsonRpcMessage<'_>, post: PostRequest<'_>) -> StartedResponse {
        let PostRequest { connection, headers, caller, permit } = post;
        let server = &self.endpoint.server;
        let refuse =
            |error: &ProtocolError| error_response(StatusCode::BAD_REQUEST, message.id(), error).into();
        if message.is_response() {
            return HttpError::bad_request(
                "2026-07-28 has no requests from the server to the client, so responses are not accepted",
            )
            .into();
        }
        let context = self.endpoint.context(connection, connection.clone(), caller, ClientData::NONE);
        let Some(request) = Request::from_message(message, Revision::LATEST, &context) else {
            if headers.unknown_version().is_some() {
                return HttpError::bad_request("`MCP-Protocol-Version` is not a version that is served")
                    .into();
            }
            // no notification has a meaning here: a client cancels by closing its stream
            return empty_response(StatusCode::ACCEPTED).into();
        };
        let meta = &request.params.meta;
        if meta.version.is_none()
            && let Some(version) = headers.unknown_version()
        {
            return refuse(&unsupported_version(&version));
        }
        let complete = meta.capabilities.is_some_and(|raw| raw.get().starts_with('{'));
        match declared_version(meta) {
            Ok(Some(version)) if complete => {
                if let Err(error) = check_headers(message, &version, headers) {
                    return refuse(&error);
                }
            }
            Err(error) if complete => return refuse(&error),
            // dispatch reports what is missing
            _ => {}
        }
        if request.opens_stream() {
            if !connection.accepts().stream {
                return HttpError::not_acceptable().into_response(message.id()).into();
            }
            let Some(permit) = self.endpoint.budgets.streams.try_acquire(&connection.owner(), 1) else {
                return HttpError::too_many_streams().into_response(message.id()).into();
            };
            let mut subscription = match server.start_stream(request, None) {
                Ok((subscription, _)) => subscription,
                Err(reply) => {
                    return reply_response(server, connection, request.id, Revision::LATEST, &reply).into();
                }
            };
            let (endpoint, connection) = (self.endpoint.clone(), connection.clone());
            let id: Box<str> = request.id.into();
            let is_settled = subscription.poll_settled(&mut Context::from_waker(Waker::noop())).is_ready();
            let respond = move |subscription: NotificationStream| match subscription.refusal() {
                Some(reply) => reply_response(&endpoint.server, &connection, &id, Revision::LATEST, reply),
                None => subscription_response(subscription, &endpoint, &connection, permit),
            };
            if is_settled {
                return respond(subscription).into();
            }
            return StartedResponse::Pending(Box::pin(async move {
                poll_fn(|cx| subscription.poll_settled(cx)).await;
                respond(subscription)
            }));
        }
        if let Err(error) = connection.check_acceptable() {
            return error.into_response(message.id()).into();
        }
        let permit = match permit.into_request_permit(&self.endpoint.budgets, connection) {
            Ok(permit) => Some(permit),
            Err(error) => return error.into_response(message.id()).into(),
        };
        let started = server.start_request(request, None, &mut Vec::new());
        request_response(&self.endpoint, connection, (request.id, Revision::LATEST), started, permit, None)
    }
}

/// Whether a message is of 2026-07-28: its metadata names a version, or its headers one that is not a legacy one.
fn is_modern(message: &JsonRpcMessage<'_>, headers: &ProtocolHeaders<'_>) -> bool {
    message.params().meta.version.is_some() || headers.is_modern()
}

/// A server as a tower service: one MCP endpoint, at whatever path it is mounted.
///
/// Requests need a body of bytes; the response's body is a [`ResponseBody`]. Made with
/// [`Server::into_service`](crate::Server::into_service); clones are the same endpoint.
#[derive(Clone)]
pub struct HttpService(pub(super) Arc<HttpHandler>);

impl HttpService {
    /// Begins a graceful shutdown, for your own HTTP server: ends every open stream and refuses new ones. Requests are
    /// still answered, over HTTP/1 with `Connection: close`. Calls that run when the
    /// [shutdown timeout](crate::config::Limits::shutdown_timeout) has passed, 10 seconds by default, are answered with
    /// an error, so that a server that waits for its connections does not wait longer. Call it on the runtime.
    pub fn stop(&self) {
        self.0.stop();
        let endpoint = &self.0.endpoint;
        let shutdown_timeout = endpoint.server.options().limits.shutdown_timeout.unwrap_or(SHUTDOWN_TIMEOUT);
        endpoint.cut_off.fire_after(shutdown_timeout);
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
        let (parts, body) = request.into_parts();
        call_endpoint(self.0.clone(), parts, IncomingBody::new(body))
    }
}

/// Answers a request to the endpoint; compiled once, by this crate, and not again for each type of body.
#[inline(never)]
fn call_endpoint(
    handler: Arc<HttpHandler>,
    parts: Parts,
    body: IncomingBody,
) -> Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>> {
    #[cfg(feature = "server-card")]
    let route = handler.mounted_document(parts.uri.path()).unwrap_or(Route::Mcp);
    #[cfg(not(feature = "server-card"))]
    let route = Route::Mcp;
    let response = handler.handle(parts, body, route, None);
    Box::pin(async move { Ok(response.await) })
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpService")
    }
}
