//! In front of a server that runs elsewhere: what clients send over HTTP is passed on as it is, and so is what the server
//! answers, event by event; both are recorded. It listens on the loopback address only. Requests for another host, and those of
//! pages from elsewhere, are refused, since the server behind it takes every request for one of this machine.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    future::poll_fn,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::{
    HeaderMap, Request, Response, StatusCode, Uri,
    body::{Body as _, Bytes, Incoming},
    client, header,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::{Instant, sleep, timeout},
};
use url::{Host, Url};

use super::{
    child::MAX_MESSAGE,
    message::{Kind, Line, kind, not_answered},
    page::body::{self, Body},
    session::KnownTools,
    trace::{Direction, Trace},
};
use crate::Failure;

const MAX_CONNECTIONS: usize = 256;
/// How long a request may take to arrive, and the server's host to accept a connection.
const ARRIVAL: Duration = Duration::from_secs(30);
/// The largest answer, and the largest event of a stream, that is recorded; longer ones are passed on.
const MAX_RECORDED: usize = 16 << 20;
/// Requests whose answers are awaited, and sessions that have names.
const MAX_KNOWN: usize = 4096;
/// Parts of an answer that the client has not read.
const PARTS: usize = 8;
const SESSION_ID: header::HeaderName = header::HeaderName::from_static("mcp-session-id");
/// The name of a session, from a client of this program; it is not passed on.
pub(super) const SESSION_NAME: &str = "mcp-dev-session";
/// Headers of a connection, and encodings, which could not be read on the way.
const NOT_PASSED: [header::HeaderName; 9] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

struct Proxy {
    server: Url,
    own: SocketAddr,
    trace: Trace,
    tools: KnownTools,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By session and id.
    requests: HashMap<(String, String), Asked>,
    order: VecDeque<(String, String)>,
    sessions: HashMap<String, String>,
    count: usize,
}

struct Asked {
    method: String,
    since: Instant,
    /// It calls a tool whose secrets are not known.
    is_unknown: bool,
}

/// The URL of a server that can be passed on to.
///
/// # Errors
/// It is none; the message has nothing of it, since it may have a secret.
pub(super) fn read_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "the URL of the server cannot be read")?;
    if url.scheme() != "http" || url.host().is_none() {
        return Err(
            "the URL of the server is not of the scheme http: let mcp-dev run beside the server, behind TLS",
        );
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL of the server has a password: send it as a header");
    }
    Ok(url)
}

/// Starts to pass on; returns the URL for clients.
///
/// # Errors
/// The port cannot be opened.
pub(super) async fn serve(
    port: u16,
    server: Url,
    trace: Trace,
    tools: KnownTools,
) -> Result<String, Failure> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await;
    let listener = listener.map_err(|error| format!("port {port} cannot be opened: {error}"))?;
    let own = listener.local_addr()?;
    let url = format!("http://{own}{}", server.path());
    let proxy = Arc::new(Proxy { server, own, trace, tools, known: Mutex::default() });
    tokio::spawn(async move {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((connection, _)) => {
                    let proxy = proxy.clone();
                    tokio::spawn(async move {
                        proxy.serve_connection(connection).await;
                        drop(permit);
                    });
                }
                // the descriptors are used up, for instance
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    });
    Ok(url)
}

impl Proxy {
    async fn serve_connection(self: Arc<Self>, connection: TcpStream) {
        let service = service_fn(move |request| {
            let proxy = self.clone();
            async move { Ok::<_, Infallible>(proxy.answer(request).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(ARRIVAL);
        // a client may close it at any time
        let _closed = builder.serve_connection(TokioIo::new(connection), service).await;
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        if !self.is_for_this(request.headers()) {
            return refusal(StatusCode::FORBIDDEN, &json!({ "error": "another host or origin" }));
        }
        let (head, body) = request.into_parts();
        let session = self.session_of(&head.headers);
        for name in [header::AUTHORIZATION, header::COOKIE] {
            for value in head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()) {
                // without its scheme
                self.trace.hide(value.split_once(' ').map_or(value, |(_, secret)| secret.trim()));
            }
        }
        let bytes = match timeout(ARRIVAL, body::read(body, MAX_MESSAGE)).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => return refusal(StatusCode::PAYLOAD_TOO_LARGE, &json!({ "error": "too long" })),
            Ok(Err(_)) | Err(_) => {
                return refusal(StatusCode::REQUEST_TIMEOUT, &json!({ "error": "it did not arrive" }));
            }
        };
        let line = Line::parse(&bytes);
        for message in line.messages() {
            self.record(&session, Direction::ToServer, message);
        }
        match self.pass_on(&head, bytes).await {
            Ok(response) => self.pass_back(session, response),
            Err(error) => {
                let detail = format!("the server cannot be reached: {error}");
                self.trace.note(&session, &detail);
                let answers = line.messages().iter().filter_map(|message| match kind(message) {
                    Kind::Request { id, .. } => Some(not_answered(id, "not_running", &detail)),
                    _ => None,
                });
                let answers: Vec<Value> = answers.collect();
                for answer in &answers {
                    self.record(&session, Direction::ToClient, answer);
                }
                let text = line.with_messages(answers).unwrap_or_default();
                let mut response = refusal(StatusCode::BAD_GATEWAY, &json!({ "error": detail }));
                if !text.is_empty() {
                    *response.body_mut() = Body::whole(text.into());
                }
                response
            }
        }
    }

    /// Whether a request is for this address, and not from a page elsewhere.
    fn is_for_this(&self, headers: &HeaderMap) -> bool {
        let port = self.own.port();
        let is_own = |host: &str| host == format!("127.0.0.1:{port}") || host == format!("localhost:{port}");
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        host.to_str().is_ok_and(is_own)
            && headers
                .get_all(header::ORIGIN)
                .iter()
                .all(|origin| origin.to_str().is_ok_and(is_of_this_machine))
    }

    /// Sends a request to the server.
    async fn pass_on(
        &self,
        head: &hyper::http::request::Parts,
        bytes: Vec<u8>,
    ) -> Result<Response<Incoming>, String> {
        let host = self.server.host_str().unwrap_or_default();
        let port = self.server.port_or_known_default().unwrap_or(80);
        let address = (host.trim_start_matches('[').trim_end_matches(']'), port);
        let connecting = timeout(ARRIVAL, TcpStream::connect(address)).await;
        let connection = connecting
            .map_err(|_| "it takes too long".to_owned())?
            .map_err(|error: io::Error| error.to_string())?;
        let (mut sender, driver) = client::conn::http1::handshake(TokioIo::new(connection))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(driver);
        let target = match (head.uri.path(), head.uri.query(), self.server.query()) {
            // what the author has given belongs to it
            (path, None, Some(query)) if path == self.server.path() => format!("{path}?{query}"),
            _ => head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
        };
        let mut request = Request::new(Body::whole(bytes.into()));
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = Uri::try_from(target.as_str()).map_err(|error| error.to_string())?;
        for (name, value) in &head.headers {
            if !NOT_PASSED.contains(name) && name != SESSION_NAME {
                request.headers_mut().append(name, value.clone());
            }
        }
        let own = match self.server.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let own = own.parse().map_err(|_| "its host cannot be sent".to_owned())?;
        request.headers_mut().insert(header::HOST, own);
        sender.send_request(request).await.map_err(|error| error.to_string())
    }

    /// Passes an answer on to the client, and records it.
    fn pass_back(self: Arc<Self>, session: String, response: Response<Incoming>) -> Response<Body> {
        let (mut head, mut incoming) = response.into_parts();
        if let Some(id) = head.headers.get(SESSION_ID).and_then(|id| id.to_str().ok()) {
            self.name_session(id, &session);
        }
        let kind =
            head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let mut recorder = Recorder {
            is_stream: kind.starts_with("text/event-stream"),
            kept: Vec::new(),
            searched: 0,
            is_cut: false,
        };
        for name in NOT_PASSED.into_iter().filter(|name| name != header::CONTENT_LENGTH) {
            head.headers.remove(name);
        }
        if incoming.is_end_stream() {
            return Response::from_parts(head, Body::whole(Bytes::new()));
        }
        let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(PARTS);
        tokio::spawn(async move {
            loop {
                let next = tokio::select! {
                    next = poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)) => next,
                    // the client does not read it any more: the server sees that, too
                    () = sender.closed() => return,
                };
                let frame = match next {
                    Some(Ok(frame)) => frame,
                    Some(Err(error)) => {
                        // the client must not take it for the end
                        let _gone = sender.send(Err(io::Error::other(error))).await;
                        return;
                    }
                    None => break,
                };
                let Ok(part) = frame.into_data() else { continue };
                recorder.take(&part, |message| self.record(&session, Direction::ToClient, message));
                if sender.send(Ok(part)).await.is_err() {
                    return;
                }
            }
            recorder.end(|message| self.record(&session, Direction::ToClient, message));
        });
        Response::from_parts(head, Body::Passed(receiver))
    }

    fn session_of(&self, headers: &HeaderMap) -> String {
        let text = |value: Option<&header::HeaderValue>| {
            value.and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        if let Some(name) = text(headers.get(SESSION_NAME)) {
            return name.chars().take(32).collect();
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let named = text(headers.get(SESSION_ID)).and_then(|id| known.sessions.get(&id).cloned());
        named.unwrap_or_else(|| "client".to_owned())
    }

    /// Gives a new session a name, since its id lets others use it.
    fn name_session(&self, id: &str, session: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if session != "client" || known.sessions.contains_key(id) {
            return;
        }
        if known.sessions.len() >= MAX_KNOWN {
            known.sessions.clear();
        }
        known.count += 1;
        let name = format!("client {}", known.count);
        known.sessions.insert(id.to_owned(), name);
    }

    fn record(&self, session: &str, direction: Direction, message: &Value) {
        let mut took = None;
        let mut schema = None;
        match (direction, kind(message)) {
            (Direction::ToServer, Kind::Request { id, method }) => {
                let key = (session.to_owned(), id.to_string());
                let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                if known.order.len() >= MAX_KNOWN
                    && let Some(oldest) = known.order.pop_front()
                {
                    known.requests.remove(&oldest);
                }
                known.order.push_back(key.clone());
                known.requests.insert(
                    key,
                    Asked {
                        method: method.to_owned(),
                        since: Instant::now(),
                        is_unknown: self.tools.is_unknown_call(message),
                    },
                );
            }
            (Direction::ToClient, Kind::Response { id }) => {
                let key = (session.to_owned(), id.to_string());
                let asked = self.known.lock().unwrap_or_else(PoisonError::into_inner).requests.remove(&key);
                took = asked.as_ref().map(|asked| asked.since.elapsed());
                schema = asked.as_ref().filter(|asked| asked.is_unknown).map(|_| Value::Bool(false));
                if asked.is_some_and(|asked| asked.method == "tools/list") {
                    self.tools.learn(&message["result"]);
                }
            }
            _ => {}
        }
        self.trace.message(session, direction, message, took, &self.tools, schema.as_ref());
    }
}

/// Whether an origin is of this machine, such as a client in a browser that is served here.
fn is_of_this_machine(origin: &str) -> bool {
    let Ok(url) = Url::parse(origin) else { return false };
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn refusal(status: StatusCode, text: &Value) -> Response<Body> {
    let mut response = Response::new(Body::whole(text.to_string().into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// Reads messages out of an answer while it passes.
struct Recorder {
    is_stream: bool,
    /// Of the answer, or of the event that is not whole.
    kept: Vec<u8>,
    /// Before this place no event ends.
    searched: usize,
    /// It is too long to be recorded.
    is_cut: bool,
}

impl Recorder {
    fn take(&mut self, part: &[u8], record: impl Fn(&Value)) {
        if self.kept.len() + part.len() > MAX_RECORDED {
            self.kept.clear();
            self.searched = 0;
            self.is_cut = true;
        }
        if self.is_cut && !self.is_stream {
            return;
        }
        self.kept.extend_from_slice(part);
        while self.is_stream {
            let Some((length, end)) = end_of_event(&self.kept, self.searched) else {
                // an end may be cut in two
                self.searched = self.kept.len().saturating_sub(3);
                return;
            };
            self.searched = 0;
            let rest = self.kept.split_off(end);
            let event = std::mem::replace(&mut self.kept, rest);
            let data: Vec<&[u8]> = event[..length]
                .split(|byte| *byte == b'\n')
                .filter_map(|line| line.strip_prefix(b"data:"))
                .map(|data| data.strip_suffix(b"\r").unwrap_or(data))
                .map(|data| data.strip_prefix(b" ").unwrap_or(data))
                .collect();
            Line::parse(&data.join(&b'\n')).messages().iter().for_each(&record);
        }
    }

    fn end(self, record: impl Fn(&Value)) {
        if !self.is_stream && !self.is_cut {
            Line::parse(&self.kept).messages().iter().for_each(record);
        }
    }
}

/// The length of the first event, and where the next one begins; its end is not before `from`.
fn end_of_event(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let ends: [&[u8]; 2] = [b"\n\n", b"\r\n\r\n"];
    let found = ends.iter().filter_map(|end| {
        let at = bytes[from..].windows(end.len()).position(|part| part == *end)? + from;
        Some((at, at + end.len()))
    });
    found.min()
}
