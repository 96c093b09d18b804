//! Messages that a client over HTTP sends to a server that is replaced while it waits. Requests wait for a process; those in flight
//! at its end are answered with an error, or go to the next process.

use std::{io, sync::Arc, time::Duration};

use hyper::{
    Method, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{self, HeaderValue},
    http::{request, response},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use super::{
    super::{
        child::MAX_MESSAGE,
        message::{self, Kind, Line, kind, not_answered},
        page::body::{self, Body},
        replay::{Answered, Effect, may_repeat},
        trace::Direction,
    },
    PARTS, Proxy, SESSION_ID,
    clients::{ClientSession, Link},
    events,
    own::{BROKEN, ENDED, Own, Unreachable, Wait, with_own_id},
    pass_back,
    process::End,
    refusal,
    streams::{Ended, relay, send_all, with_shown_ids},
    upstream::{self, EVENT_STREAM, Failed, NOT_PASSED, is_of_kind, set},
};

/// The pause before a connection is tried again that a running process has refused.
const AGAIN: Duration = Duration::from_millis(50);

impl Proxy {
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
        let mut is_initialized = false;
        let (bytes, _) = line.changed(bytes, |message| match kind(message) {
            Kind::Request { id, method } => {
                let again = may_repeat(method, message, own.limits.retry_safe, &self.tools);
                pending.push(Pending {
                    id: id.clone(),
                    params: message["params"].clone(),
                    effect: Effect::of(method, &message["params"]),
                    again: again.then(|| message::to_line(message)),
                    was_repeated: false,
                });
                Some(None)
            }
            Kind::Notification { method } => {
                is_initialized |= method == "notifications/initialized";
                Some(None)
            }
            Kind::Response { id } => {
                let session = session.as_ref();
                match session.map_or(Answered::Unknown, |session| session.state().asked.answer(id)) {
                    Answered::Process { id: own, .. } => Some(message::with_id(message, own)),
                    Answered::Gone => None,
                    Answered::Unknown => Some(None),
                }
            }
            Kind::Other => Some(None),
        });
        if bytes.is_empty() {
            // all of it was for a process that is gone
            return empty(StatusCode::ACCEPTED);
        }
        let is_batch = matches!(line, Line::Batch(_));
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

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::new()));
    *response.status_mut() = status;
    response
}
