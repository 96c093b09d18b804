//! Which era a message belongs to, and what each era wants to be checked before dispatch. The endpoint hands it every
//! body.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode};
use serde_json::value::RawValue;

use super::{
    call::{Calls, Part, Pending},
    endpoint::{Endpoint, Permit, Received, Started, now},
    head::{Field, SESSION_ID},
    mirror,
    reply::{self, Refusal},
};
use crate::{
    context::Viewer,
    dispatch::{Begun, Status},
    jsonrpc::{self, Malformed, Message, ProtocolError, RequestId, error_reply, text_of},
    protocol::{HEADER_MISMATCH, INVALID_PARAMS, Revision},
    server::Server,
    session::{Session, Sid},
};

/// Messages in one array.
const MAX_BATCH: usize = 50;

impl Endpoint {
    /// Serves one body as far as that goes without waiting.
    pub(super) fn start(self: &Arc<Self>, text: &[u8], request: &Received<'_>) -> Started {
        let message = match jsonrpc::parse(text) {
            Ok(message) => message,
            Err(malformed) => return self.malformed(text, &malformed, request),
        };
        if message.params().meta.version.is_some() || request.head.is_modern() {
            self.modern(&message, request)
        } else {
            self.legacy(&message, request)
        }
    }

    /// A request of the stateless era: it says all that there is to know.
    fn modern(self: &Arc<Self>, message: &Message<'_>, request: &Received<'_>) -> Started {
        let head = request.head;
        let refuse =
            |error: &ProtocolError| reply::error(StatusCode::BAD_REQUEST, message.id(), error).into();
        if message.is_response() {
            return Refusal::bad_request("this revision has no requests to clients, so no responses either")
                .into();
        }
        if message.id().is_none() {
            // no notification means anything here: a client cancels by closing its stream
            return reply::empty(StatusCode::ACCEPTED).into();
        }
        let meta = &message.params().meta;
        let complete = meta.capabilities.is_some_and(|raw| raw.get().starts_with('{'));
        let version = match Server::version_in(meta) {
            Ok(Some(version)) if complete => version,
            Err(error) if complete => return refuse(&error),
            // dispatch says what is missing
            _ => return self.call(message, Revision::LATEST, None, request),
        };
        if let Err(name) = head.once() {
            return refuse(&mismatch(format!("`{name}` stands twice in the request")));
        }
        match head.version {
            Field::One(sent) if sent.as_bytes() == version.as_bytes() => {}
            Field::Absent => return refuse(&mismatch("`MCP-Protocol-Version` is missing")),
            _ => return refuse(&mismatch("`MCP-Protocol-Version` is not the version in `_meta`")),
        }
        if version != Revision::LATEST.as_str() {
            return refuse(&self.server.unsupported_version(&version));
        }
        let method = message.method().unwrap_or_default();
        if let Err(error) = self.mirrored(message, method, request) {
            return refuse(&error);
        }
        self.call(message, Revision::LATEST, None, request)
    }

    fn mirrored(
        &self,
        message: &Message<'_>,
        method: &str,
        request: &Received<'_>,
    ) -> Result<(), ProtocolError> {
        mirror::standard(message, method, request.head)?;
        if method != "tools/call" {
            return Ok(());
        }
        let params = message.params();
        let Some(name) = params.name.and_then(text_of) else { return Ok(()) };
        let viewer = Viewer::new(request.caller.as_deref(), self.options.caller.is_some());
        let mirrored = self.server.mirrored(&name, viewer);
        if mirrored.is_empty() {
            return Ok(());
        }
        mirror::arguments(&mirrored, params.arguments, &request.exchange.parts().headers)
    }

    /// A message of the handshake era.
    fn legacy(self: &Arc<Self>, message: &Message<'_>, request: &Received<'_>) -> Started {
        // a response is not answered: the id in it is one of ours
        let id = message.id().filter(|_| !message.is_response());
        if let Err(name) = request.head.once() {
            return request.head.repeated(name).reply(id).into();
        }
        let method = message.method().unwrap_or_default();
        if method == "initialize" && message.id().is_some() {
            return self.initialize(message, request);
        }
        let (session, revision) = match self.place(request) {
            Ok(place) => place,
            Err(refusal) => return refusal.reply(id).into(),
        };
        if message.is_response() {
            return match session {
                Some(session) if self.answered(&session, message) => {
                    reply::empty(StatusCode::ACCEPTED).into()
                }
                _ => Refusal::no_request().into(),
            };
        }
        if message.id().is_none() {
            self.notified(message, method, session.as_ref());
            return reply::empty(StatusCode::ACCEPTED).into();
        }
        self.call(message, revision, session.as_ref(), request)
    }

    /// The session of a legacy message, where there are sessions, and its revision.
    fn place(&self, request: &Received<'_>) -> Result<(Option<Session>, Revision), Refusal> {
        match &self.sessions {
            Some(sessions) => {
                let session = self.session(sessions, request.head, request.caller.as_deref())?;
                let revision = session.revision;
                Ok((Some(session), revision))
            }
            // the header did not exist before 2025-06-18
            None => Ok((None, request.head.legacy_revision().unwrap_or(Revision::V2025_03_26))),
        }
    }

    fn initialize(&self, message: &Message<'_>, request: &Received<'_>) -> Started {
        let accepts = request.accepts();
        if !accepts.json && !accepts.stream {
            return Refusal::not_acceptable().reply(message.id()).into();
        }
        let mut out = Vec::with_capacity(512);
        let handshake = self.server.initialize(message, self.sessions.is_some(), &mut out);
        let mut response = super::call::whole(Status::Ok, out, request.exchange.queue(), accepts);
        if let (Some(handshake), Some(sessions)) = (handshake, &self.sessions) {
            let caller = request.caller.as_deref();
            let id = sessions.token.issue(handshake.revision, &handshake.client, caller, now());
            let Some(id) = id.and_then(|id| HeaderValue::try_from(id).ok()) else {
                let error = ProtocolError::internal("no session can be started now");
                return reply::error(StatusCode::INTERNAL_SERVER_ERROR, message.id(), &error).into();
            };
            response.headers_mut().insert(SESSION_ID, id);
        }
        response.into()
    }

    /// A notification: only that of a cancelled request means anything, and only within its session.
    fn notified(&self, message: &Message<'_>, method: &str, session: Option<&Session>) {
        let (Some(sessions), Some(session)) = (&self.sessions, session) else { return };
        if method == "notifications/cancelled"
            && let Some(id) = message.params().request_id.and_then(RequestId::from_raw)
        {
            sessions.running.cancel(&session.sid, &id);
        }
    }

    /// Hands a response to whoever asked; `false` if nobody did. That the caller is the one who was asked is known:
    /// the session is bound to it.
    fn answered(&self, session: &Session, message: &Message<'_>) -> bool {
        let (Some(sessions), Some(id), Some(response)) = (&self.sessions, message.id(), message.response())
        else {
            return false;
        };
        sessions.mailbox.deliver(&session.sid, id, response.map(Into::into).map_err(Into::into))
    }

    /// What is no single message: perhaps an array of them, which one revision had.
    #[cold]
    fn malformed(self: &Arc<Self>, text: &[u8], malformed: &Malformed, request: &Received<'_>) -> Started {
        let modern = request.head.is_modern();
        if let Some(messages) = jsonrpc::batch(text)
            && !modern
        {
            if let Err(name) = request.head.once() {
                return request.head.repeated(name).into();
            }
            match self.place(request) {
                Ok((session, Revision::V2025_03_26)) => {
                    return self.batch(&messages, session.as_ref(), request);
                }
                Ok(_) => {}
                Err(refusal) => return refusal.into(),
            }
        }
        // a legacy client looks for the error of its own request in a 200
        let told = !modern && malformed.id.is_some() && malformed.error.code == INVALID_PARAMS;
        let status = if told { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        reply::error(status, malformed.id.as_deref(), &malformed.error).into()
    }

    /// An array of messages, as 2025-03-26 had them.
    fn batch(
        self: &Arc<Self>,
        messages: &[&RawValue],
        session: Option<&Session>,
        request: &Received<'_>,
    ) -> Started {
        if messages.is_empty() || messages.len() > MAX_BATCH {
            return Refusal::bad_request("an array holds 1 to 50 messages").into();
        }
        let messages: Vec<_> = messages.iter().map(|raw| jsonrpc::parse(raw.get().as_bytes())).collect();
        if messages.iter().flatten().any(|message| message.method() == Some("initialize")) {
            return Refusal::bad_request("`initialize` stands alone, not in an array").into();
        }
        let accepts = request.accepts();
        if !accepts.json && !accepts.stream && messages.iter().any(awaits_reply) {
            return Refusal::not_acceptable().into();
        }
        let Some(permit) = Permit::enter(self, messages.len()) else { return Refusal::busy().into() };
        let sid = session.map(|session| session.sid);
        let peer = self.peer(request, session, accepts, Revision::V2025_03_26);
        let mut parts = Vec::new();
        let mut unexpected = false;
        let mut unreadable = None;
        for message in &messages {
            match message {
                Ok(message) if message.is_response() => {
                    unexpected |= !session.is_some_and(|session| self.answered(session, message));
                }
                Ok(message) if message.id().is_none() => {
                    self.notified(message, message.method().unwrap_or_default(), session);
                }
                Ok(message) => parts.push(self.member(message, sid, &peer)),
                Err(malformed) if malformed.silent => {}
                Err(malformed) => match malformed.id.as_deref() {
                    Some(id) => parts.push(refused(id, &malformed.error)),
                    // this revision has no reply without an id
                    None => {
                        tracing::warn!(error = %malformed.error, "a message in an array could not be read");
                        unreadable.get_or_insert(&malformed.error);
                    }
                },
            }
        }
        if parts.is_empty()
            && let Some(error) = unreadable
        {
            return reply::error(StatusCode::BAD_REQUEST, None, error).into();
        }
        if parts.is_empty() && unexpected {
            return Refusal::no_request().into();
        }
        if parts.is_empty() {
            return reply::empty(StatusCode::ACCEPTED).into();
        }
        let running = parts.iter().any(|part| matches!(part, Part::Running(_)));
        let exchange = request.exchange.clone();
        let calls =
            Calls { parts, batch: true, status: Status::Ok, exchange, accepts, detaches: true, permit };
        if running { Started::Running(calls) } else { calls.finish().into() }
    }

    fn member(&self, message: &Message<'_>, sid: Option<Sid>, peer: &crate::context::Peer) -> Part {
        if message.params().meta.version.is_some()
            && let Some(id) = message.id()
        {
            let text = "a request that names its revision in `_meta` stands alone, not in an array";
            return refused(id, &ProtocolError::invalid_request(text));
        }
        let mut out = Vec::with_capacity(256);
        match self.server.begin(message, Revision::V2025_03_26, peer, &mut out) {
            Begun::Done(_) => Part::Done(out),
            Begun::Running(running) => {
                let cancel = self.cancellable(sid, message, &running);
                Part::Running(Pending { running, cancel })
            }
            // not in this era
            Begun::Listening(listening) => Part::Done(listening.result()),
        }
    }
}

fn refused(id: &str, error: &ProtocolError) -> Part {
    let mut out = Vec::new();
    error_reply(&mut out, Some(id), error);
    Part::Done(out)
}

fn awaits_reply(message: &Result<Message<'_>, Malformed>) -> bool {
    match message {
        Ok(message) => message.id().is_some() && !message.is_response(),
        Err(malformed) => !malformed.silent,
    }
}

fn mismatch(text: impl Into<String>) -> ProtocolError {
    ProtocolError::new(HEADER_MISMATCH, text)
}
