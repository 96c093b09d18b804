//! Routes beside the endpoint: services that additions bring, at exact paths, to which callers need no token. The host is
//! checked, a policy of each route says what pages of which origins may do, and requests, their bodies, the time of an
//! answer and its size are bounded. An audit line names every request.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use hyper::body::{Body, Bytes, Frame};
use tokio::time::timeout;
use tower_service::Service;

use super::{
    cors::preflight_response,
    endpoint::MessagePermit,
    headers::{HeaderField, ProtocolHeaders},
    http_error::HttpError,
    request_body::{IncomingBody, discard_refused, read_body},
    request_connection::RequestConnection,
    response_body::{ResponseBody, charge_response, empty_response},
    service::{HttpHandler, Routes},
};
use crate::core::{
    admission::{Permit, Rate},
    arguments::BoxFuture,
    build_error::BuildError,
    config::{Options, http::is_origin},
    invoke::discard,
    log_limit::{LogLimit, LogLine},
    observer::RefusedRequest,
    reason::Refusal,
    server::{Addition, Assembly, Named},
    store::CallerRate,
};

/// How long the service of a route may take.
const ROUTE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of the body of a request, unless the policy says otherwise.
const MAX_ROUTE_BODY: usize = 64 << 10;
/// Bytes of the body of a response.
const MAX_ROUTE_RESPONSE: usize = 1 << 20;

/// What a [route](Addition::route) lets pages of other origins do, and how much one client may send.
#[derive(Debug, Clone)]
#[must_use]
pub struct RoutePolicy {
    origins: Origins,
    rate: Option<String>,
    max_body: usize,
}

#[derive(Debug, Clone)]
enum Origins {
    Same(String),
    Any,
    Unchecked,
}

impl RoutePolicy {
    fn of(origins: Origins) -> Self {
        Self { origins, rate: None, max_body: MAX_ROUTE_BODY }
    }

    /// For pages with forms: serves this origin alone, such as `https://mcp.example.com`, at which browsers reach the server.
    /// A request with another method than `GET` or `HEAD` must have it as its `Origin`, and no `Sec-Fetch-Site` but
    /// `same-origin`. Others are answered `403`, and so is any request with another `Origin`, also `null`.
    pub fn same_origin(origin: impl Into<String>) -> Self {
        Self::of(Origins::Same(origin.into()))
    }

    /// For public documents and interfaces: pages of every origin may send requests and read the responses, without
    /// credentials. Preflights are answered by the server, and the service does not see cookies.
    pub fn any_origin() -> Self {
        Self::of(Origins::Any)
    }

    /// For requests that no page sends, such as those of webhooks, and for links from other sites: `Origin` is not looked at,
    /// and pages of other origins cannot read responses.
    pub fn unchecked() -> Self {
        Self::of(Origins::Unchecked)
    }

    /// Sets how often one client address may send a request, such as `"30/1m"`; beyond it, the response is `429` with
    /// `Retry-After`. Each process counts by itself. The server's [rate](crate::config::Limits::rate) counts as well.
    pub fn rate(mut self, rate: impl Into<String>) -> Self {
        self.rate = Some(rate.into());
        self
    }

    /// Sets how many bytes the body of a request may have; 64 KiB by default. Others are answered `413`.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Refuses a request from a page that may not send it.
    fn check(&self, parts: &Parts, headers: &ProtocolHeaders<'_>) -> Result<(), HttpError> {
        let Origins::Same(own) = &self.origins else { return Ok(()) };
        let is_read = matches!(parts.method, Method::GET | Method::HEAD);
        let is_own = match headers.origin {
            HeaderField::Absent => is_read,
            HeaderField::One(origin) => origin.as_bytes() == own.as_bytes(),
            HeaderField::Repeated(_) => false,
        };
        let is_same_site =
            || parts.headers.get_all("sec-fetch-site").iter().all(|site| site == "same-origin");
        if is_own && (is_read || is_same_site()) {
            return Ok(());
        }
        Err(HttpError::invalid(Refusal::Origin, "this origin is not allowed"))
    }
}

/// The body of a request to a [route](Addition::route), which was read before the service is called.
#[derive(Debug)]
pub struct RouteBody(Bytes);

impl RouteBody {
    /// All bytes of the body.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Body for RouteBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }
}

/// The address of the client of a request to a [route](Addition::route), behind a proxy as the options say. The request has
/// it as an extension, unless the HTTP server does not say who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

type ServeFn = Box<dyn Fn(Request<RouteBody>) -> BoxFuture<Option<Response<Vec<u8>>>> + Send + Sync>;

/// A route of an addition.
pub(super) struct AddedRoute {
    path: String,
    policy: RoutePolicy,
    rate: Option<Result<CallerRate, String>>,
    /// Returns nothing if the body of the response breaks off, or is too long.
    serve: ServeFn,
}

const OF_ROUTES: Named =
    Named { key: "routes", open: check, mount: |outer, _, inner| outer.add_all(AddedRoute::all(inner)) };

impl Addition {
    /// Serves a path beside the endpoint over HTTP, such as a form or the receiver of a webhook: with an axum `Router`,
    /// `MethodRouter` or `handler.into_service()`, or any other tower service.
    ///
    /// The path is one of the host, whatever the path of the endpoint is. It is exact, and has letters, digits and `-._~/`.
    /// Callers need no token. The service gets requests whose `Host` is [allowed](crate::config::HttpOptions::allowed_hosts)
    /// and which the policy admits, with the whole body and the [`ClientAddress`]. Its response is read whole as well, in
    /// 30 seconds, and has at most 1 MiB. A panic is `500`.
    ///
    /// ```
    /// use axum::routing::get;
    /// use mcp_runtime::{addition::Addition, http::RoutePolicy};
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let status = Addition::route("/status", RoutePolicy::any_origin().rate("60/1m"), get(async || "well"));
    /// let server = mcp_runtime::server!().add(status).build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`into_router`](crate::Server::into_router) and
    /// [`metadata_router`](crate::http::HttpService::metadata_router) contain the routes;
    /// [`into_service`](crate::Server::into_service) is the endpoint alone. See [the
    /// guide](crate::guide::additions).
    ///
    /// [`build`](crate::ServerBuilder::build) fails if the server answers something else at the path, also if the two differ
    /// only in case or a slash at the end.
    pub fn route<S, B>(path: impl Into<String>, policy: RoutePolicy, service: S) -> Self
    where
        S: Service<Request<RouteBody>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
    {
        let serve = move |request| -> BoxFuture<_> {
            let mut service = service.clone();
            Box::pin(async move {
                let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
                let Ok(response) = service.call(request).await;
                let (head, body) = response.into_parts();
                Some(Response::from_parts(head, collect(IncomingBody::new(Box::pin(body))).await?))
            })
        };
        let rate = policy.rate.as_deref().map(|rate| Rate::parse(rate).map(CallerRate::new));
        let route = Arc::new(AddedRoute { path: path.into(), policy, rate, serve: Box::new(serve) });
        Self::of(move |builder| {
            builder.open_on_build(OF_ROUTES);
            builder.options.add_all(vec![route]);
        })
    }
}

/// Adds what is wrong with the routes of a server to the errors.
fn check(assembly: &mut Assembly<'_>) {
    let options = &assembly.parts.options;
    let same = |path: &str| path.trim_end_matches('/').to_ascii_lowercase();
    let paths: Vec<_> = Routes::new(options).iter().map(|(path, _)| same(path)).collect();
    for AddedRoute { path, policy, rate, .. } in AddedRoute::all(options).iter().map(|route| &**route) {
        let mut problem = |text: String| {
            assembly.errors.push(BuildError::new(format!("the route `{path}` of an addition {text}")));
        };
        if !is_exact(path) {
            problem(
                "is not a path\nwrite one of letters, digits and `-._~/`, such as `/hooks/builds`".into(),
            );
        }
        if paths.iter().filter(|other| **other == same(path)).count() > 1 {
            problem("has the path of something else that the server answers\ngive it another one".into());
        }
        if let Some(Err(text)) = rate {
            problem(format!("has a rate that is not one: {text}"));
        }
        if let Origins::Same(own) = &policy.origins
            && !(is_origin(own) && *own == own.to_ascii_lowercase())
        {
            problem(format!(
                "is for `{own}`, which is not an origin\nwrite it as browsers do: `https://mcp.example.com`"
            ));
        }
    }
}

/// Whether proxies and clients understand a path in one way only.
fn is_exact(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let Some(rest) = path.strip_prefix('/') else { return false };
    let mut segments = rest.strip_suffix('/').unwrap_or(rest).split('/');
    path.bytes().all(is_plain) && (rest.is_empty() || segments.all(|part| !matches!(part, "" | "." | "..")))
}

/// The bytes of a body, if it has not too many.
async fn collect(mut body: IncomingBody) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let data = frame.ok()?.into_data().unwrap_or_default();
        if bytes.len() + data.len() > MAX_ROUTE_RESPONSE {
            return None;
        }
        bytes.extend_from_slice(&data);
    }
    Some(bytes)
}

impl AddedRoute {
    /// Those of a server, or a builder.
    pub(super) fn all(options: &Options) -> Vec<Arc<Self>> {
        options.added()
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Calls the service; nothing if it fails.
    async fn call(&self, request: Request<RouteBody>) -> Option<Response<Vec<u8>>> {
        let mut answer = pin!(async { (self.serve)(request).await });
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx)));
            polled.unwrap_or_else(|panic| {
                discard(panic);
                Poll::Ready(None)
            })
        })
        .await
    }
}

impl HttpHandler {
    /// Answers a request to the route of this number.
    #[cold]
    pub(super) async fn answer_route(
        &self,
        connection: &Arc<RequestConnection>,
        headers: &ProtocolHeaders<'_>,
        number: usize,
        body: IncomingBody,
    ) -> Response<ResponseBody> {
        let began = Instant::now();
        let routes = AddedRoute::all(self.endpoint.server.options());
        let Some(route) = routes.get(number) else { return empty_response(StatusCode::NOT_FOUND) };
        let parts = connection.parts();
        let mut response = match self.admit_to_route(route, connection, headers).await {
            Ok(permit) => self.serve_route(route, connection, headers, body, permit).await,
            Err(error) => {
                discard_refused(body, headers).await;
                Err(error)
            }
        }
        .unwrap_or_else(Into::into);
        if matches!(route.policy.origins, Origins::Any) {
            let any = HeaderValue::from_static("*");
            response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
            response.headers_mut().remove(header::ACCESS_CONTROL_ALLOW_CREDENTIALS);
        }
        charge_response(&mut response, connection, None);
        if response.extensions().get::<RefusedRequest>().is_some() {
            self.record(connection, &response);
            return response;
        }
        let address = connection.sender().peer.as_ref().map(|peer| peer.address);
        let (answer, caller) =
            ((parts.method.as_str(), response.status().as_u16()), response.extensions().get());
        for observer in self.endpoint.server.observers().iter() {
            observer.route_answered(&route.path, answer, caller, address, began.elapsed());
        }
        response
    }

    /// Admits a request before its body is read.
    async fn admit_to_route(
        &self,
        route: &AddedRoute,
        connection: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
    ) -> Result<Permit, HttpError> {
        let (endpoint, parts) = (&self.endpoint, connection.parts());
        endpoint.check_sender(connection)?;
        self.guard.check_authorities(parts, headers).map(drop)?;
        route.policy.check(parts, headers)?;
        endpoint.take_rate(connection).await?;
        if let Some(Ok(rate)) = &route.rate {
            rate.take(&connection.owner()).get().await.map_err(HttpError::too_many_requests)?;
        }
        if !endpoint.server.made_state().is_made() {
            endpoint.make_state().await?;
        }
        endpoint.budgets.routes.try_acquire(&connection.owner(), 1).ok_or_else(HttpError::busy)
    }

    async fn serve_route(
        &self,
        route: &AddedRoute,
        connection: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
        body: IncomingBody,
        permit: Permit,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let mut head = connection.parts().clone();
        let takes_any = matches!(route.policy.origins, Origins::Any);
        if takes_any && head.method == Method::OPTIONS {
            return Ok(preflight_response(&head.headers, "GET, HEAD, POST"));
        }
        let (limit, waits) = (route.policy.max_body, headers.expects_continue);
        let mut permit = MessagePermit::Request(permit);
        let body = read_body(body, limit, &self.endpoint, connection, waits, &mut permit).await?;
        if takes_any {
            head.headers.remove(header::COOKIE);
        }
        if let Some(peer) = &connection.sender().peer {
            head.extensions.insert(ClientAddress(peer.address));
        }
        let request = Request::from_parts(head, RouteBody(body.text.clone()));
        let Ok(answer) = timeout(ROUTE_TIMEOUT, route.call(request)).await else {
            return Err(HttpError::unavailable("this path did not answer in time\ntry again"));
        };
        let Some(answer) = answer else {
            static LIMIT: LogLimit = LogLimit::new();
            if let Some(LogLine { suppressed }) = LIMIT.line() {
                let path = &route.path;
                tracing::error!(
                    suppressed,
                    path,
                    "the service of a route has panicked, or its response broke off or was too large"
                );
            }
            return Ok(empty_response(StatusCode::INTERNAL_SERVER_ERROR));
        };
        Ok(answer.map(ResponseBody::complete))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::server::Server, transport::http::service::Route};

    #[tokio::test(start_paused = true)]
    async fn a_service_that_does_not_end_is_dropped_and_its_request_refused() {
        let endless = axum::routing::get(async || std::future::pending::<&str>().await);
        let route = Addition::route("/endless", RoutePolicy::unchecked(), endless);
        let handler = HttpHandler::new(&Server::builder("test", "1").add(route).build().unwrap(), None);
        let began = tokio::time::Instant::now();
        let request = Request::get("/endless").header("Host", "localhost").body(()).unwrap();
        let (parts, body) = (request.into_parts().0, IncomingBody::new(RouteBody(Bytes::new())));
        let response = handler.handle(parts, body, Route::Added(0), None).await;
        assert_eq!((response.status(), began.elapsed()), (StatusCode::SERVICE_UNAVAILABLE, ROUTE_TIMEOUT));
    }
}
