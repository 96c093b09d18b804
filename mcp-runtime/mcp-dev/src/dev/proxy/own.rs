//! A server that is started here: requests wait for its process, and sessions are begun again in each process before anything of
//! theirs is sent to it.

use std::{sync::Arc, time::Duration};

use hyper::{
    Method, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
    http::request,
};
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    super::{
        child::MAX_MESSAGE,
        message::{self, Kind, Line, kind},
        page::body::{self, Body},
        session::REPLAY,
    },
    Proxy, SESSION_ID,
    clients::{ClientSession, Clients, Link},
    events,
    process::{End, Running, State},
    refusal,
    upstream::{self, EVENT_STREAM, Failed, NOT_PASSED, is_of_kind, next_part, set},
};
use crate::report;

/// The largest total of requests that wait for a process, in units of the semaphore.
const MAX_HELD: u32 = 64 << 10;
const UNIT: usize = 1 << 10;
/// How long the end of a process may take to be known after a connection to it has broken, and after one has ended.
pub(super) const BROKEN: Duration = Duration::from_secs(5);
pub(super) const ENDED: Duration = Duration::from_secs(1);

const PROTOCOL_VERSION: header::HeaderName = header::HeaderName::from_static("mcp-protocol-version");

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
    pub(super) server: watch::Receiver<State>,
    pub(super) clients: Clients,
    held: Semaphore,
    held_bytes: Semaphore,
    pub(super) limits: Limits,
}

/// How long a request waits for a process.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// As long as its client does, if this is `None`.
    pub(super) until: Option<Instant>,
    /// Also if none can be expected soon.
    pub(super) is_patient: bool,
    pub(super) bytes: usize,
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
    pub(super) fn into_response(self) -> Response<Body> {
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
    pub(super) fn is_gone(&self, start: u64) -> bool {
        self.server.borrow().running.as_ref().is_none_or(|running| running.start != start)
    }

    /// Why a process answers no more; `None` if it does not end.
    pub(super) async fn end_of(&self, start: u64, most: Duration) -> Option<Arc<End>> {
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

/// The same response with the id that the client knows: servers may repeat theirs on each response.
pub(super) fn with_own_id(
    session: Option<&ClientSession>,
    mut response: Response<Incoming>,
) -> Response<Incoming> {
    set(response.headers_mut(), SESSION_ID, session.map(|session| session.id.clone()));
    response
}
