//! In front of a server over HTTP, which runs elsewhere or is built and started here: what clients send is passed on as it is, and
//! so is what the server answers, event by event; both are recorded. It listens on the loopback address only. Requests for another host, and those of
//! pages from elsewhere, are refused, since the server behind it takes every request for one of this machine.

mod clients;
mod events;
mod exchange;
mod own;
mod own_requests;
mod process;
mod streams;
mod upstream;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    convert::Infallible,
    future::poll_fn,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Body as _, Bytes, Incoming},
    header,
    http::request,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex as AsyncMutex, Semaphore, mpsc},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use super::{
    child::MAX_MESSAGE,
    launch::Launcher,
    message::{Kind, Line, kind, not_answered},
    page::body::{self, Body},
    session::{KnownTools, OwnRequest, without_progress},
    trace::{Direction, Trace},
};
use crate::Failure;
pub(super) use own::Limits;
use own::Own;
use own_requests::Sent;
use process::Supervisor;
use upstream::{EVENT_STREAM, NOT_PASSED};

const MAX_CONNECTIONS: usize = 256;
/// How long a request may take to arrive, and the server's host to accept a connection.
const ARRIVAL: Duration = Duration::from_secs(30);
/// The largest answer, and the largest event of a stream, that is recorded; longer ones are passed on.
const MAX_RECORDED: usize = 16 << 20;
/// Requests whose answers are awaited, and sessions that have names.
const MAX_KNOWN: usize = 4096;
/// Tasks whose clients are known: more than the page shows.
const MAX_TASKS: usize = 512;
/// Parts of an answer that the client has not read.
const PARTS: usize = 8;
const SESSION_ID: header::HeaderName = header::HeaderName::from_static("mcp-session-id");
/// The name of a session, from a client of this program; it is not passed on.
pub(super) const SESSION_NAME: &str = "mcp-dev-session";

/// What passes messages on.
struct Proxy {
    server: Server,
    own: SocketAddr,
    trace: Trace,
    tools: KnownTools,
    known: Mutex<Known>,
    /// Sessions in which the tools of a program were listed.
    listed: AsyncMutex<HashSet<(String, u64)>>,
    /// How long calls wait for that list.
    list_wait: Duration,
    /// Of ids that this program has made.
    count: AtomicU64,
}

/// The server behind it.
enum Server {
    Elsewhere(Url),
    Own(Arc<Own>),
}

#[derive(Default)]
struct Known {
    /// By session and id.
    requests: HashMap<(String, String), Asked>,
    order: VecDeque<(String, String)>,
    sessions: HashMap<String, String>,
    count: usize,
    /// Who has begun a task, by session and task.
    tasks: HashMap<(String, String), Arc<Sent>>,
    order_of_tasks: VecDeque<(String, String)>,
}

struct Asked {
    method: String,
    since: Instant,
    /// It calls a tool whose secrets are not known.
    is_unknown: bool,
    /// Of a request that may begin a task.
    sent: Option<Arc<Sent>>,
}

/// What the loop has for clients over HTTP and their author.
pub(super) struct Author {
    pub(super) trace: Trace,
    pub(super) tools: KnownTools,
    /// How long calls wait until the tools are listed.
    pub(super) list_wait: Duration,
    /// Requests of the author in the sessions of clients.
    pub(super) requests: mpsc::Receiver<OwnRequest>,
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

/// Starts to pass on to a server that runs elsewhere; returns the URL for clients.
///
/// # Errors
/// The port cannot be opened.
pub(super) async fn serve(port: u16, server: Url, author: Author) -> Result<String, Failure> {
    let path = server.path().to_owned();
    listen(port, &path, Server::Elsewhere(server), author).await
}

/// Starts to pass on to a server that is started here, again with each program, until `token` is cancelled. Returns the URL for
/// clients, and what ends with the server.
///
/// # Errors
/// The port cannot be opened.
pub(super) async fn serve_own(
    port: u16,
    launcher: Launcher,
    limits: Limits,
    author: Author,
    token: CancellationToken,
) -> Result<(String, JoinHandle<()>), Failure> {
    let (supervisor, server) = Supervisor::new(launcher, author.trace.clone(), author.tools.clone());
    let own = Server::Own(Arc::new(Own::new(server, limits)));
    let url = listen(port, "/mcp", own, author).await?;
    Ok((url, tokio::spawn(supervisor.run(token))))
}

async fn listen(port: u16, path: &str, server: Server, author: Author) -> Result<String, Failure> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await;
    let listener = listener.map_err(|error| format!("port {port} cannot be opened: {error}"))?;
    let own = listener.local_addr()?;
    let url = format!("http://{own}{path}");
    let Author { trace, tools, list_wait, requests } = author;
    let proxy = Arc::new(Proxy {
        server,
        own,
        trace,
        tools,
        known: Mutex::default(),
        listed: AsyncMutex::default(),
        list_wait,
        count: AtomicU64::new(0),
    });
    tokio::spawn(proxy.clone().send_requests(requests));
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
        self.learn_tools(&session, &head, &line).await;
        for message in line.messages() {
            self.record(&session, Direction::ToServer, message);
            self.note_sender(&session, &head, message);
        }
        let server = match &self.server {
            Server::Elsewhere(server) => server,
            Server::Own(own) => {
                let own = own.clone();
                return self.exchange(own, head, bytes, line, session).await;
            }
        };
        match upstream::send(server, &head, bytes.into()).await {
            Ok(response) => pass_back(self, session, response),
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

    fn fresh_id(&self) -> String {
        format!("mcp-dev:{}", self.count.fetch_add(1, Ordering::Relaxed))
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

    /// Notes how a client has sent a request that may begin a task, or is about one.
    fn note_sender(&self, session: &str, head: &request::Parts, message: &Value) {
        let Kind::Request { id, method } = kind(message) else { return };
        let params = &message["params"];
        let sent = || Arc::new(Sent { head: head.clone(), meta: without_progress(&params["_meta"]) });
        if method.starts_with("tasks/") {
            self.note_task(session, &params["taskId"], sent());
        } else if method == "tools/call" {
            let key = (session.to_owned(), id.to_string());
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(asked) = known.requests.get_mut(&key) {
                asked.sent = Some(sent());
            }
        }
    }

    fn note_task(&self, session: &str, task: &Value, sent: Arc<Sent>) {
        let Some(task) = task.as_str() else { return };
        let key = (session.to_owned(), task.to_owned());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.tasks.insert(key.clone(), sent).is_some() {
            return;
        }
        known.order_of_tasks.push_back(key);
        if known.order_of_tasks.len() > MAX_TASKS
            && let Some(oldest) = known.order_of_tasks.pop_front()
        {
            known.tasks.remove(&oldest);
        }
    }

    /// How the client has sent its request that has begun a task.
    fn sender_of(&self, session: &str, task: &str) -> Option<Arc<Sent>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.tasks.get(&(session.to_owned(), task.to_owned())).cloned()
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
                        sent: None,
                    },
                );
            }
            (Direction::ToClient, Kind::Response { id }) => {
                let key = (session.to_owned(), id.to_string());
                let asked = self.known.lock().unwrap_or_else(PoisonError::into_inner).requests.remove(&key);
                took = asked.as_ref().map(|asked| asked.since.elapsed());
                schema = asked.as_ref().filter(|asked| asked.is_unknown).map(|_| Value::Bool(false));
                if let Some(sent) = asked.as_ref().and_then(|asked| asked.sent.clone()) {
                    let result = &message["result"];
                    let is_task = result["resultType"] == "task";
                    let task = if is_task { &result["taskId"] } else { &result["task"]["taskId"] };
                    self.note_task(session, task, sent);
                }
                if asked.is_some_and(|asked| asked.method == "tools/list") {
                    self.tools.learn(&message["result"]);
                }
            }
            _ => {}
        }
        self.trace.message(session, direction, message, took, &self.tools, schema.as_ref());
    }
}

/// Passes an answer on to the client, and records it.
fn pass_back(proxy: Arc<Proxy>, session: String, response: Response<Incoming>) -> Response<Body> {
    let (mut head, mut incoming) = response.into_parts();
    if let Some(id) = head.headers.get(SESSION_ID).and_then(|id| id.to_str().ok()) {
        proxy.name_session(id, &session);
    }
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let mut recorder = Recorder::new(kind.starts_with(EVENT_STREAM));
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
            recorder.take(&part, |message| proxy.record(&session, Direction::ToClient, message));
            if sender.send(Ok(part)).await.is_err() {
                return;
            }
        }
        recorder.end(|message| proxy.record(&session, Direction::ToClient, message));
    });
    Response::from_parts(head, Body::Passed(receiver))
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
    fn new(is_stream: bool) -> Self {
        Self { is_stream, kept: Vec::new(), searched: 0, is_cut: false }
    }

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
            let Some(event) = events::next_event(&mut self.kept, &mut self.searched) else { return };
            Line::parse(&events::data_of(&event)).messages().iter().for_each(&record);
        }
    }

    fn end(self, record: impl Fn(&Value)) {
        if !self.is_stream && !self.is_cut {
            Line::parse(&self.kept).messages().iter().for_each(record);
        }
    }
}
