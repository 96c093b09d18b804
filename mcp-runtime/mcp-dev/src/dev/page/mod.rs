//! The author's page: what passes between client and server, and forms to call the server with. It is served on the loopback
//! address only, to a browser that was opened with the link that this program has printed; requests that name another host, or
//! come from another page, are refused. The page loads nothing from elsewhere, and its policy forbids that as well.

mod access;
mod body;
mod own_session;

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{broadcast::error::RecvError, mpsc},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    author::OwnRequest,
    known_tools::KnownTools,
    launch::Launcher,
    trace::{MASKED, Trace, masked_words},
};
use crate::report;
use access::{Access, Refusal};
use body::Body;
use own_session::OwnSession;

/// Connections without the key of the page. The oldest is closed for another one: any page of a browser may open many of them, and
/// must not keep the author out.
const MAX_STRANGERS: usize = 32;
/// The largest request: arguments of a call.
const MAX_REQUEST: usize = 4 << 20;
/// The largest response that is shown.
const MAX_RESPONSE: usize = 16 << 20;
/// How long a request may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);
/// Streams of events at the same time.
const MAX_STREAMS: usize = 8;
/// Events of a stream that are written but not read.
const STREAM_QUEUE: usize = 8;
/// An empty line after a silence, so that a page that has gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long the server of a page that has been closed goes on.
const IDLE: Duration = Duration::from_secs(20);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
/// What is the same for everybody.
const FILES: [(&str, &str, &str); 9] = [
    ("/", HTML, include_str!("page.html")),
    ("/page.css", CSS, include_str!("page.css")),
    ("/page.js", JAVASCRIPT, include_str!("page.js")),
    ("/commands.js", JAVASCRIPT, include_str!("commands.js")),
    ("/form.js", JAVASCRIPT, include_str!("form.js")),
    ("/items.js", JAVASCRIPT, include_str!("items.js")),
    ("/question.js", JAVASCRIPT, include_str!("question.js")),
    ("/tasks.js", JAVASCRIPT, include_str!("tasks.js")),
    ("/view.js", JAVASCRIPT, include_str!("view.js")),
];
const HEADERS: [(header::HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
         media-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// What the page needs of the loop.
pub(super) struct Sources {
    pub(super) trace: Trace,
    pub(super) launcher: Launcher,
    pub(super) tools: KnownTools,
    /// The words that start the server, for commands to copy; none if it is built.
    pub(super) command: Vec<String>,
    /// Variables of the server's process.
    pub(super) env: Vec<(String, String)>,
    /// Takes requests for the session of the client.
    pub(super) client: mpsc::Sender<OwnRequest>,
    pub(super) shows_values: bool,
}

struct Page {
    access: Access,
    strangers: Strangers,
    own: OwnSession,
    streams: AtomicUsize,
    sources: Sources,
}

/// Serves the page, and prints its link. A port that is taken is replaced by a free one: the loop matters more.
pub(super) async fn serve(port: u16, sources: Sources) {
    let bound = match TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Err(error) if port != 0 => {
            report(&format!("mcp-dev: port {port} cannot be opened ({error}): the page has another one"));
            TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
        }
        bound => bound,
    };
    let opened = bound.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
    let (listener, access) = match opened {
        Ok((port, listener)) => match Access::new(port) {
            Ok(access) => (listener, access),
            Err(error) => {
                return report(&format!(
                    "mcp-dev: the page is left out, since its key cannot be made: {error}"
                ));
            }
        },
        Err(error) => {
            return report(&format!("mcp-dev: the page is left out, since it has no port: {error}"));
        }
    };
    report(&format!("mcp-dev: the page: {}", access.link()));
    let own = OwnSession::new(
        sources.launcher.clone(),
        sources.trace.clone(),
        sources.tools.clone(),
        sources.client.clone(),
    );
    let strangers = Strangers::default();
    let page = Arc::new(Page { access, strangers, own, streams: AtomicUsize::new(0), sources });
    tokio::spawn(accept(listener, page));
}

async fn accept(listener: TcpListener, page: Arc<Page>) {
    for number in 0.. {
        match listener.accept().await {
            Ok((connection, _)) => {
                let closed = page.strangers.add(number);
                let page = page.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = serve_connection(connection, page.clone(), number) => page.strangers.remove(number),
                        () = closed.cancelled() => {}
                    }
                });
            }
            // the descriptors are used up, for instance
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The connections without the key, by their numbers, the oldest first.
#[derive(Default)]
struct Strangers(Mutex<VecDeque<(u64, CancellationToken)>>);

impl Strangers {
    /// Adds a connection; the token closes it.
    fn add(&self, number: u64) -> CancellationToken {
        let closed = CancellationToken::new();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == MAX_STRANGERS
            && let Some((_, oldest)) = open.pop_front()
        {
            oldest.cancel();
        }
        open.push_back((number, closed.clone()));
        closed
    }

    /// Removes one that has shown the key, or has ended.
    fn remove(&self, number: u64) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(own, _)| *own != number);
    }
}

async fn serve_connection(connection: TcpStream, page: Arc<Page>, number: u64) {
    let service = service_fn(move |request| {
        let page = page.clone();
        async move { Ok::<_, Infallible>(page.answer(request, number).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(ARRIVAL * 3).max_headers(64).max_buf_size(32 << 10);
    // a browser may close it at any time
    let _closed = builder.serve_connection(TokioIo::new(connection), service).await;
}

impl Page {
    async fn answer(self: Arc<Self>, request: Request<Incoming>, number: u64) -> Response<Body> {
        let mut response = match self.route(request, number).await {
            Ok(response) => response,
            Err((status, text)) => json_response(status, &json!({ "error": text })),
        };
        for (name, value) in HEADERS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }

    /// # Errors
    /// The request is refused, or has failed.
    async fn route(
        self: Arc<Self>,
        request: Request<Incoming>,
        number: u64,
    ) -> Result<Response<Body>, Failed> {
        if let Err(Refusal(text)) = self.access.check_origin(request.headers()) {
            return Err((StatusCode::FORBIDDEN, text.to_owned()));
        }
        let path = request.uri().path().to_owned();
        let path = path.as_str();
        if let Some((_, kind, text)) = FILES.iter().find(|(known, ..)| *known == path) {
            check_method(&request, &Method::GET)?;
            return Ok(respond(StatusCode::OK, kind, Body::whole(Bytes::from_static(text.as_bytes()))));
        }
        if path == "/api/key" {
            check_method(&request, &Method::POST)?;
            let body = read_json(request).await?;
            return match self.access.exchange(body["link"].as_str().unwrap_or_default()) {
                Some((key, next)) => {
                    report(&format!("mcp-dev: the page is open; for another browser: {next}"));
                    Ok(json_response(StatusCode::OK, &json!({ "key": key })))
                }
                None => Err((
                    StatusCode::UNAUTHORIZED,
                    "this link was used: mcp-dev has printed another one".to_owned(),
                )),
            };
        }
        if !self.access.knows(request.headers()) {
            return Err((
                StatusCode::UNAUTHORIZED,
                "open the page with the link that mcp-dev has printed".to_owned(),
            ));
        }
        self.strangers.remove(number);
        match path {
            "/api/events" => {
                check_method(&request, &Method::GET)?;
                self.stream()
            }
            "/api/server" => {
                check_method(&request, &Method::GET)?;
                self.describe().await
            }
            "/api/request" => {
                check_method(&request, &Method::POST)?;
                let body = read_json(request).await?;
                self.send(&body).await
            }
            "/api/answer" => {
                check_method(&request, &Method::POST)?;
                let body = read_json(request).await?;
                match self.own.answer(body["question"].as_u64().unwrap_or_default(), body["answer"].clone()) {
                    true => Ok(json_response(StatusCode::OK, &json!({}))),
                    false => Err((
                        StatusCode::GONE,
                        "the server does not wait for this answer any more".to_owned(),
                    )),
                }
            }
            _ => Err((StatusCode::NOT_FOUND, "there is nothing here".to_owned())),
        }
    }

    /// What has happened and what happens, one JSON object a line.
    fn stream(self: Arc<Self>) -> Result<Response<Body>, Failed> {
        let reader = Reader::new(self).ok_or_else(|| {
            (StatusCode::TOO_MANY_REQUESTS, "the page is open too often: close a tab".to_owned())
        })?;
        let (sender, receiver) = mpsc::channel(STREAM_QUEUE);
        tokio::spawn(reader.run(sender));
        Ok(respond(StatusCode::OK, "application/x-ndjson", Body::parts(receiver)))
    }

    /// Everything that clients see of the server, and what the doctor says about it.
    async fn describe(&self) -> Result<Response<Body>, Failed> {
        let mut described = self.own.describe().await.map_err(unavailable)?;
        let program = || {
            let program = self.sources.launcher.program()?;
            Some([vec![program.name()], program.arguments.clone()].concat())
        };
        let words = match self.sources.command.as_slice() {
            [] => program().unwrap_or_default(),
            words => words.to_vec(),
        };
        described["command"] = self.masked(words).into();
        // the name of a variable does not tell whether its value is secret
        let shown = |(name, value): &(String, String)| match self.sources.shows_values {
            true => format!("{name}={value}"),
            false => format!("{name}={MASKED}"),
        };
        described["env"] = self.sources.env.iter().map(shown).collect();
        self.sources.trace.mask(&mut described);
        bounded(&described)
    }

    fn masked(&self, words: Vec<String>) -> Vec<String> {
        if self.sources.shows_values { words } else { masked_words(&words).0 }
    }

    /// What the page must know before the server answers.
    fn hello(&self) -> Value {
        json!({ "event": "hello", "masks": !self.sources.shows_values })
    }

    /// A request of the page's own session.
    async fn send(&self, request: &Value) -> Result<Response<Body>, Failed> {
        let mut answer = self.own.send(request).await.map_err(unavailable)?;
        self.sources.trace.mask(&mut answer);
        bounded(&answer)
    }
}

type Failed = (StatusCode, String);

fn unavailable(text: String) -> Failed {
    (StatusCode::BAD_GATEWAY, text)
}

fn bounded(value: &Value) -> Result<Response<Body>, Failed> {
    let text = value.to_string();
    if text.len() > MAX_RESPONSE {
        let most = MAX_RESPONSE >> 20;
        return Err((
            StatusCode::BAD_GATEWAY,
            format!("it has {} bytes: the page shows at most {most} MiB", text.len()),
        ));
    }
    Ok(respond(StatusCode::OK, "application/json", Body::whole(text.into())))
}

fn check_method(request: &Request<Incoming>, method: &Method) -> Result<(), Failed> {
    if request.method() == method {
        return Ok(());
    }
    Err((StatusCode::METHOD_NOT_ALLOWED, format!("{method} only")))
}

fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    respond(status, "application/json", Body::whole(value.to_string().into()))
}

async fn read_json(request: Request<Incoming>) -> Result<Value, Failed> {
    let too_long = || (StatusCode::PAYLOAD_TOO_LARGE, format!("more than {} MiB", MAX_REQUEST >> 20));
    let bytes = match timeout(ARRIVAL, body::read(request.into_body(), MAX_REQUEST)).await {
        Ok(Ok(Some(bytes))) => bytes,
        Ok(Ok(None)) => return Err(too_long()),
        Ok(Err(_)) | Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "it did not arrive".to_owned())),
    };
    serde_json::from_slice(&bytes).map_err(|error| (StatusCode::BAD_REQUEST, format!("not JSON: {error}")))
}

/// A page that reads events; while there is one, the page's own session goes on.
struct Reader(Arc<Page>);

impl Reader {
    fn new(page: Arc<Page>) -> Option<Self> {
        let more = |count: usize| (count < MAX_STREAMS).then_some(count + 1);
        page.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(page))
    }

    async fn run(self, sender: mpsc::Sender<Bytes>) {
        let hello = self.0.hello();
        let (kept, mut coming) = self.0.sources.trace.subscribe();
        for text in std::iter::once(hello.to_string().into()).chain(kept) {
            if sender.send(to_line(&text)).await.is_err() {
                return;
            }
        }
        loop {
            let line = tokio::select! {
                next = coming.recv() => match next {
                    Ok(text) => to_line(&text),
                    Err(RecvError::Lagged(count)) => to_line(&json!({ "event": "lost", "count": count }).to_string()),
                    Err(RecvError::Closed) => return,
                },
                () = sleep(HEARTBEAT) => Bytes::from_static(b"\n"),
                () = sender.closed() => return,
            };
            if sender.send(line).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.0.streams.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        let page = self.0.clone();
        tokio::spawn(async move {
            // it may only be loading again
            sleep(IDLE).await;
            if page.streams.load(Ordering::Relaxed) == 0 {
                page.own.close().await;
            }
        });
    }
}

fn to_line(text: &str) -> Bytes {
    let mut line = Vec::with_capacity(text.len() + 1);
    line.extend_from_slice(text.as_bytes());
    line.push(b'\n');
    line.into()
}
