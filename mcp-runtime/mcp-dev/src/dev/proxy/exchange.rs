//! What a client over HTTP sends to a server that is replaced while it waits. Requests wait for a process; those in flight at its
//! end are answered with an error, or go to the next process, as do streams, whose connection to the client stays open. Sessions
//! are begun again in each process, before anything of theirs is sent to it.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hyper::{
    Method, Response, StatusCode,
    body::{Body as _, Bytes, Incoming},
    header::{self, HeaderValue},
    http::{request, response},
};
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    super::{
        child::MAX_MESSAGE,
        message::{self, Kind, Line, kind, not_answered},
        page::body::{self, Body},
        replay::{Answered, Effect, may_repeat},
        session::REPLAY,
        trace::Direction,
    },
    PARTS, Proxy, SESSION_ID,
    clients::{ClientSession, Clients, Link},
    events, pass_back,
    process::{End, Running, State},
    refusal,
    upstream::{self, Failed, NOT_PASSED},
};
use crate::report;

/// The largest total of requests that wait for a process, in units of the semaphore.
const MAX_HELD: u32 = 64 << 10;
const UNIT: usize = 1 << 10;
/// How long the end of a process may take to be known after a connection to it has broken, and after one has ended.
const BROKEN: Duration = Duration::from_secs(5);
const ENDED: Duration = Duration::from_secs(1);
/// The pause before a connection is tried again that a running process has refused.
const AGAIN: Duration = Duration::from_millis(50);

const PROTOCOL_VERSION: header::HeaderName = header::HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT_ID: header::HeaderName = header::HeaderName::from_static("last-event-id");
const EVENT_STREAM: &str = "text/event-stream";

/// How many clients and requests there may be.
#[derive(Clone, Copy)]
pub(in crate::dev) struct Limits {
    pub(in crate::dev) sessions: usize,
    /// Requests that wait for a process.
    pub(in crate::dev) held: usize,
    /// How long they wait.
    pub(in crate::dev) hold: Duration,
    pub(in crate::dev) retry_safe: bool,
}

/// A server that is started here.
pub(super) struct Own {
    server: watch::Receiver<State>,
    pub(super) clients: Clients,
    held: Semaphore,
    held_bytes: Semaphore,
    limits: Limits,
}

/// How long a request waits for a process.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// As long as its client does, if this is `None`.
    until: Option<Instant>,
    /// Also if none can be expected soon.
    is_patient: bool,
    bytes: usize,
}

/// Why a request does not reach a process.
pub(super) enum Unreachable {
    NotRunning(String),
    TooMany,
    /// The server refuses the session.
    Refused(Box<Response<Body>>),
}

impl Unreachable {
    /// The reason of the error, and its text.
    pub(super) fn reason(&self) -> (&'static str, String) {
        match self {
            Self::NotRunning(detail) => ("not_running", detail.clone()),
            Self::TooMany => {
                ("too_many", "too many requests wait for the server: send it again later".to_owned())
            }
            Self::Refused(response) => (
                "refused",
                format!("the new process refuses the session with HTTP {}", response.status().as_u16()),
            ),
        }
    }

    /// The response to a request that expects no JSON-RPC.
    fn into_response(self) -> Response<Body> {
        let (_, detail) = self.reason();
        match self {
            Self::Refused(response) => *response,
            Self::NotRunning(_) => refusal(StatusCode::BAD_GATEWAY, &json!({ "error": detail })),
            Self::TooMany => refusal(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": detail })),
        }
    }
}

impl Own {
    pub(super) fn new(server: watch::Receiver<State>, limits: Limits) -> Self {
        Self {
            server,
            clients: Clients::new(limits.sessions),
            held: Semaphore::new(limits.held),
            held_bytes: Semaphore::new(MAX_HELD as usize),
            limits,
        }
    }

    pub(super) fn wait(&self, bytes: usize, is_patient: bool) -> Wait {
        Wait { until: Some(Instant::now() + self.limits.hold), is_patient, bytes }
    }

    /// Waits for a process that accepts connections.
    async fn running(&self, wait: Wait) -> Result<Arc<Running>, Unreachable> {
        let mut server = self.server.clone();
        if let Some(running) = &server.borrow_and_update().running {
            return Ok(running.clone());
        }
        let mut permits = Vec::new();
        if wait.until.is_some() {
            let units = u32::try_from(wait.bytes / UNIT + 1).unwrap_or(MAX_HELD).min(MAX_HELD);
            for permit in [self.held.try_acquire(), self.held_bytes.try_acquire_many(units)] {
                permits.push(permit.map_err(|_| Unreachable::TooMany)?);
            }
        }
        loop {
            let state = server.borrow_and_update().clone();
            if let Some(running) = state.running {
                return Ok(running);
            }
            let not_running = |why: &str| {
                let failure = state.failure.as_deref().unwrap_or_default();
                let text = format!("the server does not run{why}, and this was not sent to it\n{failure}");
                Err(Unreachable::NotRunning(text.trim_end().to_owned()))
            };
            if state.failure.is_some() && !wait.is_patient {
                return not_running("; it starts again when its program changes");
            }
            tokio::select! {
                changed = server.changed() => if changed.is_err() {
                    return not_running(" any more");
                },
                () = sleep_until(wait.until.unwrap_or_else(Instant::now)), if wait.until.is_some() => {
                    return not_running(&format!(" after {} s", self.limits.hold.as_secs()));
                }
            }
        }
    }

    /// Whether a process has been told to end, or has ended.
    fn is_gone(&self, start: u64) -> bool {
        self.server.borrow().running.as_ref().is_none_or(|running| running.start != start)
    }

    /// Why a process answers no more; `None` if it does not end.
    async fn end_of(&self, start: u64, most: Duration) -> Option<Arc<End>> {
        let mut server = self.server.clone();
        let ended = async {
            loop {
                if let Some(end) = server.borrow_and_update().end.clone().filter(|end| end.start >= start) {
                    return Some(end);
                }
                if server.changed().await.is_err() {
                    return None;
                }
            }
        };
        timeout(most, ended).await.ok().flatten()
    }
}

/// A session that cannot be begun again.
pub(super) enum NotEntered {
    Refused(Response<Body>),
    Failed(String),
}

impl From<Failed> for NotEntered {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed.to_string())
    }
}

impl Proxy {
    /// The messages of the server in `bytes` as its client gets them, which are recorded: for each, `change` has a message that
    /// the client gets instead, `Some(None)` if it gets it as it is, and `None` if it must not get it.
    fn show(
        &self,
        name: &str,
        bytes: Vec<u8>,
        mut change: impl FnMut(&Value) -> Option<Option<Value>>,
    ) -> (Vec<u8>, Vec<Value>) {
        let line = Line::parse(&bytes);
        let mut is_changed = false;
        let mut shown = Vec::with_capacity(line.messages().len());
        for message in line.messages() {
            let Some(changed) = change(message) else {
                is_changed = true;
                continue;
            };
            is_changed |= changed.is_some();
            let message = changed.unwrap_or_else(|| message.clone());
            self.record(name, Direction::ToClient, &message);
            shown.push(message);
        }
        let bytes = if is_changed { line.with_messages(shown.clone()).unwrap_or_default() } else { bytes };
        (bytes, shown)
    }

    /// Answers a request for a server that is started here. `name` is that of its session in the log.
    pub(super) async fn exchange(
        self: Arc<Self>,
        own: Arc<Own>,
        mut head: request::Parts,
        bytes: Vec<u8>,
        line: Line,
        name: String,
    ) -> Response<Body> {
        let session = match own.clients.of(&head.headers) {
            Some(None) => {
                return refusal(
                    StatusCode::NOT_FOUND,
                    &json!({ "error": "the session is unknown: begin a new one" }),
                );
            }
            other => other.flatten(),
        };
        head.headers.remove(SESSION_ID);
        match &session {
            Some(session) if head.method == Method::GET => {
                self.listen(own, session.clone(), head, name).await
            }
            Some(session) if head.method == Method::DELETE => self.leave(&own, session, head).await,
            Some(session) if !line.messages().is_empty() => {
                session.state().head = head.clone();
                self.post(own, Some(session.clone()), head, bytes, line, name).await
            }
            None if head.method == Method::POST && !line.messages().is_empty() => {
                self.post(own, None, head, bytes, line, name).await
            }
            // a page of the server, or the transport of 2024-11-05
            _ => {
                let response = match self.reach(&own, session.as_deref(), own.wait(bytes.len(), false)).await
                {
                    Ok((running, id)) => {
                        set(&mut head.headers, SESSION_ID, id);
                        upstream::send(&running.url, &head, bytes.into()).await.map_err(|failed| {
                            Unreachable::NotRunning(format!("the server cannot be reached: {failed}"))
                        })
                    }
                    Err(unreachable) => Err(unreachable),
                };
                response.map_or_else(Unreachable::into_response, |response| {
                    pass_back(self, name, with_own_id(session.as_deref(), response))
                })
            }
        }
    }

    async fn post(
        self: Arc<Self>,
        own: Arc<Own>,
        session: Option<Arc<ClientSession>>,
        head: request::Parts,
        bytes: Vec<u8>,
        line: Line,
        name: String,
    ) -> Response<Body> {
        let mut pending = Vec::new();
        let mut passed = Vec::with_capacity(line.messages().len());
        let mut is_changed = false;
        let mut is_initialized = false;
        for message in line.messages() {
            match kind(message) {
                Kind::Request { id, method } => {
                    let again = may_repeat(method, message, own.limits.retry_safe, &self.tools);
                    pending.push(Pending {
                        id: id.clone(),
                        params: message["params"].clone(),
                        effect: Effect::of(method, &message["params"]),
                        again: again.then(|| message::to_line(message)),
                        was_repeated: false,
                    });
                }
                Kind::Notification { method } => is_initialized |= method == "notifications/initialized",
                Kind::Response { id } => {
                    match session
                        .as_ref()
                        .map_or(Answered::Unknown, |session| session.state().asked.answer(id))
                    {
                        Answered::Process { id: own, .. } => {
                            is_changed |= own != *id;
                            let mut message = message.clone();
                            message["id"] = own;
                            passed.push(message);
                            continue;
                        }
                        Answered::Gone => {
                            is_changed = true;
                            continue;
                        }
                        Answered::Unknown => {}
                    }
                }
                Kind::Other => {}
            }
            passed.push(message.clone());
        }
        let is_batch = matches!(line, Line::Batch(_));
        let bytes = match is_changed {
            false => bytes,
            true => match line.with_messages(passed) {
                Some(bytes) => bytes,
                // all of it was for a process that is gone
                None => return empty(StatusCode::ACCEPTED),
            },
        };
        if pending.is_empty() {
            return self.deliver(&own, session.as_deref(), head, bytes.into(), is_initialized, name).await;
        }
        let exchange = Exchange {
            proxy: self,
            own,
            session,
            head,
            name,
            is_batch,
            first: Some(bytes.into()),
            pending,
            ready: Vec::new(),
        };
        exchange.run().await
    }

    /// Delivers notifications and responses, to the next process if one ends.
    async fn deliver(
        self: Arc<Self>,
        own: &Own,
        session: Option<&ClientSession>,
        mut head: request::Parts,
        bytes: Bytes,
        is_initialized: bool,
        name: String,
    ) -> Response<Body> {
        let wait = own.wait(bytes.len(), false);
        let mut detail = "the server cannot be reached".to_owned();
        loop {
            let (running, id) = match self.reach(own, session, wait).await {
                Ok(reached) => reached,
                Err(unreachable) => return unreachable.into_response(),
            };
            set(&mut head.headers, SESSION_ID, id);
            match upstream::send(&running.url, &head, bytes.clone()).await {
                Ok(response) => {
                    if let Some(session) =
                        session.filter(|_| is_initialized && response.status().is_success())
                    {
                        session.state().handshake.is_initialized = true;
                    }
                    return pass_back(self, name, with_own_id(session, response));
                }
                Err(failed) => {
                    if own.end_of(running.start, BROKEN).await.is_none() {
                        detail = format!("{detail}: {failed}");
                        return Unreachable::NotRunning(detail).into_response();
                    }
                }
            }
        }
    }

    /// Ends a session.
    async fn leave(
        self: Arc<Self>,
        own: &Own,
        session: &ClientSession,
        mut head: request::Parts,
    ) -> Response<Body> {
        let link = session.link.lock().await;
        let running = own.server.borrow().running.clone().filter(|running| running.start == link.start);
        let (Some(running), Some(id)) = (running, link.id.clone()) else {
            // with its process
            own.clients.remove(session);
            return empty(StatusCode::OK);
        };
        head.headers.insert(SESSION_ID, id);
        match upstream::send(&running.url, &head, Bytes::new()).await {
            Ok(response) => {
                if response.status().is_success() {
                    own.clients.remove(session);
                }
                pass_back(self.clone(), "client".to_owned(), with_own_id(Some(session), response))
            }
            Err(_) => {
                own.clients.remove(session);
                empty(StatusCode::OK)
            }
        }
    }

    /// Waits for a process, and begins the session in it; returns its id there.
    pub(super) async fn reach(
        &self,
        own: &Own,
        session: Option<&ClientSession>,
        wait: Wait,
    ) -> Result<(Arc<Running>, Option<HeaderValue>), Unreachable> {
        loop {
            let running = own.running(wait).await?;
            let Some(session) = session else { return Ok((running, None)) };
            match timeout(REPLAY, self.enter(session, &running)).await {
                Ok(Ok(id)) => return Ok((running, id)),
                Ok(Err(NotEntered::Refused(response))) => {
                    let note = format!(
                        "the new process refuses a session that was begun in another one: HTTP {}",
                        response.status().as_u16()
                    );
                    report(&format!("mcp-dev: {note}"));
                    self.trace.note("server", &note);
                    return Err(Unreachable::Refused(Box::new(response)));
                }
                Ok(Err(NotEntered::Failed(text))) => {
                    if own.end_of(running.start, BROKEN).await.is_none() {
                        return Err(Unreachable::NotRunning(format!("the server cannot be reached: {text}")));
                    }
                }
                Err(_) => {
                    let text = "the new process has not answered the handshake in time";
                    return Err(Unreachable::NotRunning(text.to_owned()));
                }
            }
        }
    }

    /// Begins a session in a process, if it is in another one.
    async fn enter(
        &self,
        session: &ClientSession,
        running: &Running,
    ) -> Result<Option<HeaderValue>, NotEntered> {
        let mut link = session.link.lock().await;
        if link.start == running.start {
            return Ok(link.id.clone());
        }
        let (mut head, params) = {
            let state = session.state();
            (state.head.clone(), state.handshake.params.clone())
        };
        head.method = Method::POST;
        let revision = head.headers.remove(PROTOCOL_VERSION);
        for (name, value) in [
            (header::CONTENT_TYPE, "application/json"),
            (header::ACCEPT, "application/json, text/event-stream"),
        ] {
            head.headers.insert(name, HeaderValue::from_static(value));
        }
        let line = message::request("mcp-dev:initialize", "initialize", &params);
        let (id, answer) = self.ask(&running.url, &head, line).await?;
        let Some(notes) = session.state().handshake.take_repeated(&answer) else {
            let note = format!("the new process refuses the repeated messages: {}", answer["error"]);
            report(&format!("mcp-dev: {note}"));
            self.trace.note("server", &note);
            return Err(NotEntered::Refused(refusal(
                StatusCode::NOT_FOUND,
                &json!({ "error": "the new process has refused the session: begin a new one" }),
            )));
        };
        for note in notes {
            report(&format!("mcp-dev: {note}"));
            self.trace.note("server", &note);
        }
        set(&mut head.headers, SESSION_ID, id.clone());
        let revision = match answer["result"]["protocolVersion"].as_str() {
            Some(text) if revision.is_some() => HeaderValue::try_from(text).ok(),
            _ => revision,
        };
        set(&mut head.headers, PROTOCOL_VERSION, revision);
        let (is_initialized, repeated) = {
            let state = session.state();
            (state.handshake.is_initialized, state.handshake.repeated())
        };
        if is_initialized {
            let line = message::notification("notifications/initialized");
            drop(upstream::send(&running.url, &head, line.into()).await?);
        }
        for (method, params) in repeated {
            let line = message::request(&format!("mcp-dev:{method}"), method, &params);
            let refused = match self.ask(&running.url, &head, line).await {
                Ok((_, answer)) => answer.get("error").map(Value::to_string),
                Err(NotEntered::Refused(response)) => Some(format!("HTTP {}", response.status().as_u16())),
                Err(failed) => return Err(failed),
            };
            if let Some(refused) = refused {
                let note = format!("the new process refuses the repeated `{method}`: {refused}");
                report(&format!("mcp-dev: {note}"));
                self.trace.note("server", &note);
            }
        }
        let mut state = session.state();
        let withdrawn = state.asked.withdraw();
        state.due.extend(withdrawn);
        state.has_changed = true;
        drop(state);
        *link = Link { start: running.start, id: id.clone() };
        Ok(id)
    }

    /// Sends a request of this program; returns the id of the session, and the response.
    pub(super) async fn ask(
        &self,
        server: &url::Url,
        head: &request::Parts,
        line: Vec<u8>,
    ) -> Result<(Option<HeaderValue>, Value), NotEntered> {
        let response = upstream::send(server, head, line.into()).await?;
        if !response.status().is_success() {
            return Err(NotEntered::Refused(pass_whole(response).await));
        }
        let id = response.headers().get(SESSION_ID).cloned();
        let is_stream = is_of_kind(response.headers(), EVENT_STREAM);
        let (mut incoming, mut kept, mut searched) = (response.into_body(), Vec::new(), 0);
        let failed = |text: &str| NotEntered::Failed(text.to_owned());
        let answer_in = |text: &[u8]| {
            Line::parse(text)
                .messages()
                .iter()
                .find(|message| matches!(kind(message), Kind::Response { .. }))
                .cloned()
        };
        loop {
            let part = next_part(&mut incoming).await.map_err(|error| failed(&error.to_string()))?;
            kept.extend_from_slice(part.as_deref().unwrap_or_default());
            while let Some(event) = is_stream.then(|| events::next_event(&mut kept, &mut searched)).flatten()
            {
                if let Some(answer) = answer_in(&events::data_of(&event)) {
                    return Ok((id, answer));
                }
            }
            if kept.len() > MAX_MESSAGE {
                return Err(failed("its answer is too long"));
            }
            if part.is_none() {
                let answer = answer_in(&kept).ok_or_else(|| failed("its answer has no response"))?;
                return Ok((id, answer));
            }
        }
    }

    /// Opens a stream of a session, which goes on with each process.
    async fn listen(
        self: Arc<Self>,
        own: Arc<Own>,
        session: Arc<ClientSession>,
        mut head: request::Parts,
        name: String,
    ) -> Response<Body> {
        let (running, id) = match self.reach(&own, Some(&session), own.wait(0, false)).await {
            Ok(reached) => reached,
            Err(unreachable) => return unreachable.into_response(),
        };
        let resumed = head.headers.remove(LAST_EVENT_ID);
        let resumed = resumed.as_ref().and_then(|id| events::marked(id.to_str().ok()?));
        let own_id = resumed.filter(|(start, _)| *start == running.start);
        if let Some(id) = own_id.and_then(|(_, id)| HeaderValue::try_from(id).ok()) {
            head.headers.insert(LAST_EVENT_ID, id);
        }
        set(&mut head.headers, SESSION_ID, id);
        let response = match upstream::send(&running.url, &head, Bytes::new()).await {
            Ok(response) => Some(response),
            // the stream begins with the next process
            Err(_) if own.end_of(running.start, BROKEN).await.is_some() => None,
            Err(failed) => {
                let text = format!("the server cannot be reached: {failed}");
                return Unreachable::NotRunning(text).into_response();
            }
        };
        let incoming = match response {
            Some(response)
                if response.status().is_success() && is_of_kind(response.headers(), EVENT_STREAM) =>
            {
                Some(response.into_body())
            }
            // a server without such streams: changes are told on it all the same
            Some(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED && own_id.is_none() => None,
            None => None,
            Some(response) => return pass_back(self, name, with_own_id(Some(&session), response)),
        };
        head.headers.remove(LAST_EVENT_ID);
        let (sender, receiver) = mpsc::channel(PARTS);
        let stream = Standalone { proxy: self, own, session, head, name, sender };
        let start = running.start;
        tokio::spawn(async move {
            stream.session.streams.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                () = stream.run(incoming, start) => {}
                () = stream.session.end.cancelled() => {}
                () = stream.sender.closed() => {}
            }
            stream.session.streams.fetch_sub(1, Ordering::Relaxed);
        });
        let mut response = Response::new(Body::Passed(receiver));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

/// A request that is not answered.
struct Pending {
    id: Value,
    params: Value,
    effect: Effect,
    /// Its line, if it may be sent to another process.
    again: Option<Vec<u8>>,
    was_repeated: bool,
}

/// The requests of one message over HTTP, until all are answered.
struct Exchange {
    proxy: Arc<Proxy>,
    own: Arc<Own>,
    session: Option<Arc<ClientSession>>,
    head: request::Parts,
    name: String,
    is_batch: bool,
    /// The body, as the first process gets it.
    first: Option<Bytes>,
    pending: Vec<Pending>,
    /// Answers of this program.
    ready: Vec<Value>,
}

/// What a process has begun to answer.
enum Attached {
    Stream(response::Parts, Incoming, u64),
    Json(response::Parts, Vec<u8>, Vec<Value>),
    /// Anything else.
    Other(Response<Body>),
    /// This program has answered everything.
    Answered,
}

impl Exchange {
    async fn run(mut self) -> Response<Body> {
        let is_patient =
            self.pending.iter().any(|one| matches!(one.effect, Effect::Initialize | Effect::Discover));
        let bytes = self.first.as_ref().map_or(0, Bytes::len);
        match self.attach(self.own.wait(bytes, is_patient)).await {
            Attached::Other(response) => response,
            Attached::Answered => {
                let text = self.with_ready(Vec::new());
                let mut response = Response::new(Body::whole(text.into()));
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Attached::Json(mut head, bytes, messages) => {
                head.headers.remove(header::CONTENT_LENGTH);
                let bytes = if self.ready.is_empty() { bytes } else { self.with_ready(messages) };
                Response::from_parts(head, Body::whole(bytes.into()))
            }
            Attached::Stream(mut head, incoming, start) => {
                head.headers.remove(header::CONTENT_LENGTH);
                let (sender, receiver) = mpsc::channel(PARTS);
                tokio::spawn(self.stream(incoming, start, sender));
                Response::from_parts(head, Body::Passed(receiver))
            }
        }
    }

    /// The body with the answers of this program, and others.
    fn with_ready(&mut self, mut others: Vec<Value>) -> Vec<u8> {
        others.append(&mut self.ready);
        match others.pop() {
            Some(one) if !self.is_batch && others.is_empty() => message::to_line(&one),
            one => {
                others.extend(one);
                message::to_line(&Value::Array(others))
            }
        }
    }

    /// The body of what is not answered.
    fn body(&self) -> Bytes {
        let mut lines = self.pending.iter().filter_map(|one| one.again.as_deref());
        if !self.is_batch {
            return lines.next().unwrap_or_default().to_vec().into();
        }
        [b"[".as_slice(), &lines.collect::<Vec<_>>().join(&b','), b"]"].concat().into()
    }

    /// Sends what is not answered to a process, until one begins to answer.
    async fn attach(&mut self, wait: Wait) -> Attached {
        let is_first = self.pending.iter().any(|one| matches!(one.effect, Effect::Initialize));
        loop {
            if self.pending.is_empty() {
                return Attached::Answered;
            }
            let session = self.session.as_deref().filter(|_| !is_first);
            let (running, id) = match self.proxy.reach(&self.own, session, wait).await {
                Ok(reached) => reached,
                Err(Unreachable::Refused(response)) => return Attached::Other(*response),
                Err(unreachable) => {
                    let (reason, detail) = unreachable.reason();
                    self.end_all(reason, &detail);
                    return Attached::Answered;
                }
            };
            set(&mut self.head.headers, SESSION_ID, id);
            let body = self.first.take().unwrap_or_else(|| self.body());
            let response = match upstream::send(&running.url, &self.head, body.clone()).await {
                Ok(response) => response,
                Err(Failed::Unreached(_)) if wait.until.is_none_or(|until| until > Instant::now()) => {
                    self.first = Some(body);
                    sleep(AGAIN).await;
                    continue;
                }
                Err(failed) => {
                    self.take_break(running.start, &failed.to_string()).await;
                    continue;
                }
            };
            let is_json = is_of_kind(response.headers(), "application/json");
            let is_stream = is_of_kind(response.headers(), EVENT_STREAM);
            if response.status() == StatusCode::NOT_FOUND
                && let Some(session) = session
            {
                self.own.clients.remove(session);
            }
            if !response.status().is_success() || !(is_json || is_stream) {
                let response = with_own_id(self.session.as_deref(), response);
                return Attached::Other(pass_back(self.proxy.clone(), self.name.clone(), response));
            }
            let (mut head, incoming) = response.into_parts();
            let id = head.headers.remove(SESSION_ID);
            for name in NOT_PASSED.iter().filter(|name| *name != header::CONTENT_LENGTH) {
                head.headers.remove(name);
            }
            if is_first {
                self.begin(Link { start: running.start, id }).await;
            }
            set(&mut head.headers, SESSION_ID, self.session.as_ref().map(|session| session.id.clone()));
            if is_stream {
                return Attached::Stream(head, incoming, running.start);
            }
            match body::read(incoming, MAX_MESSAGE).await {
                Ok(Some(bytes)) => {
                    let (bytes, messages) = self.take(bytes, running.start);
                    return Attached::Json(head, bytes, messages);
                }
                Ok(None) => self.end_all("too_long", "the server's answer is too long"),
                Err(error) => self.take_break(running.start, &error.to_string()).await,
            }
        }
    }

    /// Begins a session, or the same one in another process.
    async fn begin(&mut self, link: Link) {
        if let Some(session) = &self.session {
            *session.link.lock().await = link;
            return;
        }
        let first = self.pending.iter().find(|one| matches!(one.effect, Effect::Initialize));
        let params = first.map(|one| one.params.clone()).unwrap_or_default();
        self.session = self.own.clients.begin(&self.head, params, link);
        if let Some(id) = self.session.as_ref().and_then(|session| session.id.to_str().ok()) {
            self.proxy.name_session(id, &self.name);
        }
    }

    /// Takes what the server has sent: bytes for the client, and the messages in them.
    fn take(&mut self, bytes: Vec<u8>, start: u64) -> (Vec<u8>, Vec<Value>) {
        let (proxy, name) = (self.proxy.clone(), self.name.clone());
        proxy.show(&name, bytes, |message| self.take_message(message, start))
    }

    /// `None` if the client must not get a message, `Some(None)` if it gets it as it is.
    fn take_message(&mut self, message: &Value, start: u64) -> Option<Option<Value>> {
        let is_gone = self.own.is_gone(start);
        match kind(message) {
            Kind::Response { id } => {
                let Some(at) = self.pending.iter().position(|one| one.id == *id) else { return Some(None) };
                if is_gone && self.pending[at].effect.is_stream() {
                    // the stream goes on with the next process
                    return None;
                }
                let effect = self.pending.remove(at).effect;
                let mut state = self.session.as_ref().map(|session| session.state());
                let handshake = state.as_mut().map(|state| &mut state.handshake);
                Some(effect.take_response(message, handshake, &self.proxy.tools))
            }
            Kind::Notification { method: "notifications/events/terminated" } if is_gone => {
                (!self.pending.iter().any(|one| one.effect.is_stream())).then_some(None)
            }
            Kind::Notification { method } => {
                let lasting = self.pending.iter_mut().find(|one| one.effect.is_stream());
                match lasting {
                    Some(one) => one.effect.take_notification(&mut one.again, method, message),
                    None => with_shown_ids(&self.proxy, self.session.as_deref(), message, is_gone),
                }
            }
            _ => with_shown_ids(&self.proxy, self.session.as_deref(), message, is_gone),
        }
    }

    /// Waits for the end of a process whose connection has broken.
    async fn take_break(&mut self, start: u64, text: &str) {
        match self.own.end_of(start, BROKEN).await {
            Some(end) => self.take_end(&end),
            None => {
                let detail = format!("the server has ended the connection before it answered: {text}");
                self.end_all("broken", &detail);
            }
        }
    }

    /// Answers what no other process gets.
    fn take_end(&mut self, end: &End) {
        let is_lost = |one: &Pending| one.again.is_none() || one.was_repeated;
        for one in self.pending.extract_if(.., |one| is_lost(one)) {
            self.ready.push(not_answered(&one.id, end.reason, end.detail.trim_end()));
        }
        for one in &mut self.pending {
            one.was_repeated |= !one.effect.begins_anew();
        }
        self.record_ready();
    }

    fn end_all(&mut self, reason: &str, detail: &str) {
        for one in self.pending.drain(..) {
            self.ready.push(not_answered(&one.id, reason, detail));
        }
        self.record_ready();
    }

    fn record_ready(&self) {
        for answer in &self.ready {
            self.proxy.record(&self.name, Direction::ToClient, answer);
        }
    }

    /// Passes a stream on to the client, and continues it with the next process where something is not answered.
    async fn stream(
        mut self,
        mut incoming: Incoming,
        mut start: u64,
        sender: mpsc::Sender<io::Result<Bytes>>,
    ) {
        loop {
            let mark = self.session.is_some().then_some(start);
            let ended = relay(&mut incoming, &sender, mark, |data| self.take(data, start)).await;
            let is_whole = match ended {
                Ended::ClientGone => {
                    self.suspend(start);
                    return;
                }
                _ if self.pending.is_empty() => return,
                Ended::Whole => true,
                Ended::Broken(_) => false,
            };
            match (self.own.end_of(start, if is_whole { ENDED } else { BROKEN }).await, ended) {
                (Some(end), _) => self.take_end(&end),
                (None, Ended::Broken(error)) => {
                    // the client must not take it for the end
                    let _gone = sender.send(Err(error)).await;
                    return;
                }
                // the server ends the connection, and the client may come back
                (None, _) => return self.suspend(start),
            }
            if !self.send_ready(&sender).await || self.pending.is_empty() {
                return;
            }
            let until = (!self.pending.iter().any(|one| one.effect.is_stream()))
                .then(|| Instant::now() + self.own.limits.hold);
            let wait = Wait { until, is_patient: true, bytes: 0 };
            let attached = tokio::select! {
                attached = self.attach(wait) => attached,
                () = sender.closed() => return,
            };
            if !self.send_ready(&sender).await {
                return;
            }
            match attached {
                Attached::Stream(_, next, next_start) => {
                    (incoming, start) = (next, next_start);
                    let changes: Vec<Value> =
                        self.pending.iter().flat_map(|one| one.effect.list_changes(&one.id)).collect();
                    if !send_all(&self.proxy, &self.name, &sender, &changes).await {
                        return;
                    }
                }
                Attached::Json(_, _, messages) => {
                    for message in messages {
                        if sender.send(Ok(events::of_message(&message))).await.is_err() {
                            return;
                        }
                    }
                    return;
                }
                Attached::Other(response) => {
                    let status = response.status().as_u16();
                    self.end_all(
                        "refused",
                        &format!("the new process refuses the repeated request with HTTP {status}"),
                    );
                    self.send_ready(&sender).await;
                    return;
                }
                Attached::Answered => return,
            }
        }
    }

    fn suspend(&mut self, start: u64) {
        if let Some(session) = &self.session {
            session.suspend(start, self.pending.drain(..).map(|one| one.id));
        }
    }

    /// Sends the answers of this program, which are recorded; `false` if the client is gone.
    async fn send_ready(&mut self, sender: &mpsc::Sender<io::Result<Bytes>>) -> bool {
        for answer in std::mem::take(&mut self.ready) {
            if sender.send(Ok(events::of_message(&answer))).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// A stream of a session for what belongs to no call.
struct Standalone {
    proxy: Arc<Proxy>,
    own: Arc<Own>,
    session: Arc<ClientSession>,
    head: request::Parts,
    name: String,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Standalone {
    async fn run(&self, mut incoming: Option<Incoming>, mut start: u64) {
        loop {
            if !self.send(self.session.take_due(true)).await || !self.send(self.lost(start)).await {
                return;
            }
            if let Some(incoming) = &mut incoming {
                match relay(incoming, &self.sender, Some(start), |data| self.take(data, start)).await {
                    Ended::ClientGone => return,
                    // the server ends the stream
                    _ if self.own.end_of(start, ENDED).await.is_none() => return,
                    _ => {}
                }
            } else {
                // it lasts as long as the process
                while self.own.end_of(start, Duration::from_secs(3600)).await.is_none() {}
            }
            let wait = Wait { until: None, is_patient: true, bytes: 0 };
            let Ok((running, id)) = self.proxy.reach(&self.own, Some(&self.session), wait).await else {
                return;
            };
            let mut head = self.head.clone();
            set(&mut head.headers, SESSION_ID, id);
            start = running.start;
            incoming = match upstream::send(&running.url, &head, Bytes::new()).await {
                Ok(response) if response.status().is_success() => Some(response.into_body()),
                Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => None,
                Ok(_) => return,
                // with the next process
                Err(_) if self.own.end_of(start, BROKEN).await.is_some() => None,
                Err(_) => return,
            };
        }
    }

    /// Answers for calls that went on without a stream in processes before this one.
    fn lost(&self, start: u64) -> Vec<Value> {
        let mut state = self.session.state();
        let lost = state.suspended.extract_if(.., |(own, _)| *own < start);
        let detail = "the server was restarted before it answered: send it again";
        lost.map(|(_, id)| not_answered(&id, "restarted", detail)).collect()
    }

    fn take(&self, data: Vec<u8>, start: u64) -> (Vec<u8>, Vec<Value>) {
        self.proxy.show(&self.name, data, |message| {
            if let Kind::Response { id } = kind(message) {
                self.session.state().suspended.retain(|(_, own)| own != id);
            }
            with_shown_ids(&self.proxy, Some(&self.session), message, self.own.is_gone(start))
        })
    }

    async fn send(&self, messages: Vec<Value>) -> bool {
        send_all(&self.proxy, &self.name, &self.sender, &messages).await
    }
}

/// Records and sends messages of this program; `false` if the client is gone.
async fn send_all(
    proxy: &Proxy,
    name: &str,
    sender: &mpsc::Sender<io::Result<Bytes>>,
    messages: &[Value],
) -> bool {
    for message in messages {
        proxy.record(name, Direction::ToClient, message);
        if sender.send(Ok(events::of_message(message))).await.is_err() {
            return false;
        }
    }
    true
}

/// A message of the server with the ids that the client knows of what the server asks. `None` if the client must not get it.
fn with_shown_ids(
    proxy: &Proxy,
    session: Option<&ClientSession>,
    message: &Value,
    is_gone: bool,
) -> Option<Option<Value>> {
    let Some(session) = session else { return Some(None) };
    match kind(message) {
        // its answer could not be delivered
        Kind::Request { .. } if is_gone => None,
        Kind::Request { id, .. } => {
            let schema = message["params"].get("requestedSchema").cloned();
            let fresh = session.state().asked.note(id, schema, || proxy.fresh_id());
            let Some(fresh) = fresh else { return Some(None) };
            let mut message = message.clone();
            message["id"] = fresh;
            Some(Some(message))
        }
        Kind::Notification { method: "notifications/cancelled" } => {
            let id = &message["params"]["requestId"];
            let Some(shown) = session.state().asked.shown(id).filter(|shown| shown != id) else {
                return Some(None);
            };
            let mut message = message.clone();
            message["params"]["requestId"] = shown;
            Some(Some(message))
        }
        _ => Some(None),
    }
}

/// How a stream has ended.
enum Ended {
    ClientGone,
    Whole,
    Broken(io::Error),
}

/// Passes a stream on event by event, until it ends. `take` returns other data.
async fn relay(
    incoming: &mut Incoming,
    sender: &mpsc::Sender<io::Result<Bytes>>,
    mark: Option<u64>,
    mut take: impl FnMut(Vec<u8>) -> (Vec<u8>, Vec<Value>),
) -> Ended {
    let (mut kept, mut searched) = (Vec::new(), 0);
    loop {
        let part = tokio::select! {
            part = next_part(incoming) => part,
            () = sender.closed() => return Ended::ClientGone,
        };
        match part {
            Ok(Some(part)) => kept.extend_from_slice(&part),
            Ok(None) => return Ended::Whole,
            Err(error) => return Ended::Broken(io::Error::other(error)),
        }
        while let Some(event) = events::next_event(&mut kept, &mut searched) {
            let data = events::data_of(&event);
            let event = if data.is_empty() {
                events::rewrite(&event, None, mark)
            } else {
                let (new, _) = take(data.clone());
                if new.is_empty() {
                    continue;
                }
                events::rewrite(&event, (new != data).then_some(&new), mark)
            };
            if sender.send(Ok(event.into())).await.is_err() {
                return Ended::ClientGone;
            }
        }
        if kept.len() > MAX_MESSAGE {
            return Ended::Broken(io::Error::other("an event is too long"));
        }
    }
}

async fn next_part(incoming: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    while let Some(frame) = poll_fn(|context| Pin::new(&mut *incoming).poll_frame(context)).await {
        if let Ok(part) = frame?.into_data() {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

/// The same response, read here.
async fn pass_whole(response: Response<Incoming>) -> Response<Body> {
    let (mut head, incoming) = response.into_parts();
    for name in NOT_PASSED {
        head.headers.remove(name);
    }
    head.headers.remove(SESSION_ID);
    let bytes = body::read(incoming, MAX_MESSAGE).await.ok().flatten().unwrap_or_default();
    Response::from_parts(head, Body::whole(bytes.into()))
}

fn is_of_kind(headers: &hyper::HeaderMap, kind: &str) -> bool {
    let own = headers.get(header::CONTENT_TYPE).and_then(|own| own.to_str().ok()).unwrap_or_default();
    own.to_ascii_lowercase().starts_with(kind)
}

/// The same response with the id that the client knows: servers may repeat theirs on each response.
fn with_own_id(session: Option<&ClientSession>, mut response: Response<Incoming>) -> Response<Incoming> {
    set(response.headers_mut(), SESSION_ID, session.map(|session| session.id.clone()));
    response
}

/// Sets a header, or removes it.
pub(super) fn set(headers: &mut hyper::HeaderMap, name: header::HeaderName, value: Option<HeaderValue>) {
    match value {
        Some(value) => drop(headers.insert(name, value)),
        None => drop(headers.remove(name)),
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::new()));
    *response.status_mut() = status;
    response
}
