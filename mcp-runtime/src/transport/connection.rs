//! What one line means to a connection: which era it belongs to, whether it is served now, later or not at all.
//! The readers of stdio and of `Server::serve` feed it; replies that are there at once go to their buffer.
//!
//! See [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).

use std::sync::Arc;

use super::{
    calls::{Admission, Batch, Calls, Way},
    lines::Line,
    sink::{Notices, Sink},
};
use crate::{
    context::{Link, Peer},
    dispatch::Begun,
    jsonrpc::{Malformed, Message, ProtocolError, RequestId, batch, error_reply, parse},
    protocol::Revision,
    server::Server,
    subscribe::{Filter, Lists},
};

/// The most that an array of messages may hold.
const MAX_BATCH: usize = 50;

/// Replies on their way to the sink: whole lines, and how many.
#[derive(Debug, Default)]
pub(super) struct Replies {
    pub(super) bytes: Vec<u8>,
    pub(super) count: usize,
}

impl Replies {
    fn end_line(&mut self) {
        self.bytes.push(b'\n');
        self.count += 1;
    }

    fn error(&mut self, id: Option<&str>, error: &ProtocolError) {
        error_reply(&mut self.bytes, id, error);
        self.end_line();
    }

    /// Hands everything to the sink.
    pub(super) fn flush(&mut self, sink: &Arc<Sink>) {
        sink.send(&self.bytes, self.count);
        self.bytes.clear();
        self.count = 0;
    }
}

/// The reader's side of one connection.
pub(super) struct Connection {
    server: Server,
    calls: Arc<Calls>,
    sink: Arc<Sink>,
    /// What was agreed by `initialize`, and the client as it introduced itself there.
    handshake: Option<Revision>,
    legacy: Peer,
    modern: Peer,
    /// What a client that has shaken hands wants to be told of, until it shows that it has our reply.
    told: Option<Arc<Filter>>,
}

/// How a request is to be served.
enum Served {
    As(Revision),
    /// A reply has been written.
    Already,
}

impl Connection {
    pub(super) fn new(server: Server, calls: Arc<Calls>, sink: Arc<Sink>, peer: Peer) -> Self {
        let wire = calls.wire();
        let link: Arc<dyn Link> = Arc::clone(wire) as _;
        let outlet = Arc::new(Notices(Arc::clone(&sink)));
        let peer = Peer { outlet: Some(outlet), link: Some(link), ..peer };
        Self { server, calls, sink, handshake: None, legacy: peer.clone(), modern: peer, told: None }
    }

    /// Serves one line.
    pub(super) fn line(&mut self, line: &Line<'_>, out: &mut Replies) {
        match line {
            Line::Text(text) => match parse(text) {
                Ok(message) => self.message(&message, text, &Way::Line, out),
                Err(malformed) => self.malformed(text, &malformed, out),
            },
            Line::TooLong => {
                let limit = self.server.options().max_line;
                let error =
                    format!("the line is longer than {limit} bytes\nsend less at once, or raise `max_line`");
                self.refuse(None, &ProtocolError::invalid_request(error), out);
            }
        }
    }

    fn malformed(&mut self, text: &[u8], malformed: &Malformed, out: &mut Replies) {
        if text.trim_ascii().is_empty() {
            return;
        }
        if self.handshake == Some(Revision::V2025_03_26)
            && let Some(members) = batch(text)
        {
            let members: Vec<&str> = members.into_iter().map(serde_json::value::RawValue::get).collect();
            return self.batch(&members, out);
        }
        if malformed.silent {
            tracing::debug!(error = %malformed.error, "a malformed notification was ignored");
        } else {
            self.refuse(malformed.id.as_deref(), &malformed.error, out);
        }
    }

    /// An error, unless it has no id and the session's revision requires one.
    fn refuse(&self, id: Option<&str>, error: &ProtocolError, out: &mut Replies) {
        if id.is_none() && self.handshake.is_some_and(|revision| revision < Revision::V2025_11_25) {
            tracing::warn!(error = %error, "a message could not be read");
        } else {
            out.error(id, error);
        }
    }

    fn message(&mut self, message: &Message<'_>, text: &[u8], way: &Way, out: &mut Replies) {
        if message.is_response() {
            if !self.calls.wire().respond(message) {
                tracing::debug!("a response to no request of ours was ignored");
            }
            return;
        }
        let method = message.method().unwrap_or_default();
        if let Some(filter) = self.told.take() {
            self.follow(filter, out);
        }
        let Some(id) = message.id() else {
            if method == "notifications/cancelled"
                && let Some(id) = message.params().request_id.and_then(RequestId::from_raw)
            {
                self.calls.cancel(&id);
            }
            return;
        };
        let start = out.bytes.len();
        let revision = match self.era(message, id, method, out) {
            Served::As(revision) if revision.is_modern() && matches!(way, Way::Batch(_)) => {
                let error = ProtocolError::invalid_request(format!("{revision} has no batches"));
                error_reply(&mut out.bytes, Some(id), &error);
                return end(way, start, out);
            }
            Served::As(revision) => revision,
            Served::Already => return end(way, start, out),
        };
        // a ping tells whether the server is alive: it is answered however busy that is
        let admission = match method {
            "ping" => Admission::Now,
            "subscriptions/listen" => self.calls.admit_listening(id),
            _ => self.calls.admit(id),
        };
        let peer = if revision.is_modern() { &self.modern } else { &self.legacy };
        let refusal = match admission {
            Admission::Now => match self.server.begin(message, revision, peer, &mut out.bytes) {
                Begun::Done(_) => return end(way, start, out),
                Begun::Running(running) => return self.calls.run(id, running, way.clone()),
                Begun::Listening(listening) => return self.calls.listen(id, listening),
            },
            Admission::Queue => return self.calls.queue(id, text, revision, peer, way.clone()),
            Admission::Busy => {
                ProtocolError::internal("the server is busy\nask again when calls have been answered")
            }
            Admission::Duplicate => {
                ProtocolError::invalid_request(format!("the id {id} belongs to a request that still runs"))
            }
            Admission::Stopping => ProtocolError::internal("the server is stopping"),
        };
        error_reply(&mut out.bytes, Some(id), &refusal);
        end(way, start, out);
    }

    /// Tells a client of changes from now on: it goes on after `initialize`, whose reply must come first.
    fn follow(&self, filter: Arc<Filter>, out: &mut Replies) {
        out.flush(&self.sink);
        match self.server.hub().follow(filter, self.legacy.caller.clone(), self.legacy.restricted) {
            Some(follower) => self.calls.tell(follower),
            None => tracing::warn!(
                "a client is not told of changes: there are too many subscribers\nraise `max_subscribers`"
            ),
        }
    }

    /// Which revision a request is written in; `initialize` is served here.
    fn era(&mut self, message: &Message<'_>, id: &str, method: &str, out: &mut Replies) -> Served {
        let error = match Server::version_in(&message.params().meta) {
            Ok(Some(version)) if version == Revision::LATEST.as_str() => return Served::As(Revision::LATEST),
            Ok(Some(version)) => self.server.unsupported_version(&version),
            Ok(None) if method == "initialize" => {
                if let Some(handshake) = self.server.initialize(message, true, &mut out.bytes) {
                    self.handshake = Some(handshake.revision);
                    self.legacy.client = handshake.client;
                    let changes = self.server.offers(handshake.revision).changes;
                    if changes != Lists::default() {
                        self.told = self.calls.wire().follows(self.server.hub().filter(changes));
                    }
                }
                return Served::Already;
            }
            Ok(None) => match self.handshake {
                Some(revision) => return Served::As(revision),
                None if method == "ping" => return Served::As(Revision::LATEST_LEGACY),
                None => ProtocolError::invalid_params(format!(
                    "`{method}` came before `initialize`\nsend `initialize` first, or name the revision in \
                     `_meta` as `io.modelcontextprotocol/protocolVersion`"
                )),
            },
            Err(error) => error,
        };
        error_reply(&mut out.bytes, Some(id), &error);
        Served::Already
    }

    fn batch(&mut self, members: &[&str], out: &mut Replies) {
        let parsed: Vec<_> = members.iter().map(|text| (*text, parse(text.as_bytes()))).collect();
        let initializes = |m: &Message<'_>| m.method() == Some("initialize");
        let refusal = if parsed.is_empty() || parsed.len() > MAX_BATCH {
            Some(format!("a batch holds 1 to {MAX_BATCH} messages"))
        } else if parsed.iter().any(|(_, m)| m.as_ref().is_ok_and(initializes)) {
            Some("`initialize` must not be part of a batch".to_owned())
        } else {
            None
        };
        let id_of = |message: &Result<Message<'_>, Malformed>| match message {
            Ok(message) if message.is_response() => None,
            Ok(message) => message.id().map(str::to_owned),
            Err(malformed) => malformed.id.clone(),
        };
        let requests = parsed.iter().filter(|(_, message)| id_of(message).is_some()).count();
        if requests == 0
            && let Some(refusal) = refusal
        {
            return self.refuse(None, &ProtocolError::invalid_request(refusal), out);
        }
        let way = Way::Batch(Batch::new(Arc::clone(&self.sink), requests));
        for (text, message) in &parsed {
            // this revision has no reply without an id, so a refusal is told to each request
            let (id, error) = match (&refusal, id_of(message), message) {
                (Some(refusal), Some(id), _) => (id, ProtocolError::invalid_request(refusal.clone())),
                (None, Some(id), Err(malformed)) => (id, malformed.error.clone()),
                (None, _, Ok(message)) => {
                    self.message(message, text.as_bytes(), &way, out);
                    continue;
                }
                (_, None, _) => continue,
            };
            let start = out.bytes.len();
            error_reply(&mut out.bytes, Some(&id), &error);
            end(&way, start, out);
        }
    }
}

/// What stands behind `start` is one reply: its line ends, or it moves into its batch.
fn end(way: &Way, start: usize, out: &mut Replies) {
    match way {
        Way::Line => out.end_line(),
        Way::Batch(_) => {
            Calls::reply(way, out.bytes.get(start..).unwrap_or_default());
            out.bytes.truncate(start);
        }
    }
}
