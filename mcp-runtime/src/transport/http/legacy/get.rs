//! GET: streams on which a session hears what no request has asked for, and streams that are resumed after their
//! connection broke.
//!
//! See [listening for messages](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server).

use std::{future::poll_fn, sync::Arc, time::Duration};

use http::Response;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Session, Sessions, now,
    resumable::{AttachedReader, EventPosition, ResumableStream, StreamKind, session_name},
    table::OpenSession,
};
use crate::{
    admission::Permit,
    connection::Caller,
    transport::http::{
        exchange::Exchange,
        headers::{HeaderField, ProtocolHeaders},
        response::{self, HttpError, ResponseBody},
        service::Endpoint,
        sse::{write_end, write_id, write_message, write_retry},
    },
};

/// How long what happens is kept together for a client that may come back.
const PATIENCE: Duration = Duration::from_secs(60);
/// When a client is to come back for a stream that goes on elsewhere.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// What a client has missed of a stream that does not run here.
struct Missed {
    events: Vec<u8>,
    /// The stream has ended; otherwise it goes on elsewhere.
    over: bool,
}

impl Sessions {
    /// Opens a standalone stream, or resumes another one.
    pub(super) async fn get(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        exchange: &Exchange,
        head: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        if !exchange.accepts().stream {
            return Err(HttpError::no_stream());
        }
        let caller = endpoint.caller(exchange.parts());
        let session = self.find(head, caller.as_deref())?;
        let permit = endpoint.budgets.streams.try_acquire(1).ok_or_else(HttpError::too_many_streams)?;
        let open = self.table.open(session.sid).ok_or_else(HttpError::too_many_streams)?;
        // it may have been ended while it was being opened
        if self.revoked.contains(&session.sid) {
            self.table.end(&session.sid);
            return Err(HttpError::no_session());
        }
        let mut replayed = Vec::new();
        if let HeaderField::One(id) = head.last_event {
            let position = id.to_str().ok().and_then(EventPosition::read).ok_or_else(HttpError::no_event)?;
            let running = open.memory.streams.lock().get(position.stream).cloned();
            if let Some(stream) = running {
                let (reader, body) = AttachedReader::new(endpoint, Some(permit));
                tokio::spawn(async move { stream.resume(&reader, position.number).await });
                return Ok(response::events(body));
            }
            let missed = self.missed(&session, &position).await;
            match (position.kind, missed) {
                (StreamKind::Call, None) => return Err(HttpError::no_event()),
                // nothing to send: a stream would only make the client come back once more
                (StreamKind::Call, Some(Missed { over: true, events })) if events.is_empty() => {
                    return Ok(response::not_allowed("POST, DELETE"));
                }
                (StreamKind::Call, Some(Missed { over, mut events })) => {
                    if !over {
                        write_retry(&mut events, ELSEWHERE);
                        write_end(&mut events);
                    }
                    return Ok(response::events(ResponseBody::whole(events)));
                }
                // what has been forgotten is lost, but there may be more to hear
                (StreamKind::Standalone, missed) => {
                    replayed = missed.map(|missed| missed.events).unwrap_or_default();
                }
            }
        }
        let (reader, body) = AttachedReader::new(endpoint, Some(permit));
        let standalone = StandaloneStream::open(endpoint, self, open, &session, caller);
        let standalone = standalone.ok_or_else(HttpError::too_many_streams)?;
        tokio::spawn(standalone.run(reader, replayed, session.expires));
        Ok(response::events(body))
    }

    /// What a client has missed of a stream; `None` if nothing is known of it.
    async fn missed(&self, session: &Session, position: &EventPosition<'_>) -> Option<Missed> {
        let store = self.store.as_ref()?;
        let missed = store.read(&session_name(&session.sid), position.stream, position.number).await?;
        let over = missed.last().is_some_and(|event| event.last);
        let mut events = Vec::new();
        for missed in missed.iter().filter(|event| !event.message.is_empty()) {
            write_id(&mut events, position.stream, missed.number);
            write_message(&mut events, missed.message.as_bytes());
        }
        Some(Missed { events, over })
    }
}

/// A standalone stream.
struct StandaloneStream {
    endpoint: Arc<Endpoint>,
    stream: Arc<ResumableStream>,
    /// Its number within the session.
    serial: u64,
}

impl StandaloneStream {
    /// `None` if there are too many subscribers already.
    fn open(
        endpoint: &Arc<Endpoint>,
        sessions: &Sessions,
        open: OpenSession<Arc<ResumableStream>>,
        session: &Session,
        caller: Option<Arc<Caller>>,
    ) -> Option<Self> {
        let authenticated = endpoint.options.caller.is_some();
        let memory = open.memory.clone();
        let hub = open.hub().clone();
        let stream =
            ResumableStream::new(StreamKind::Standalone, open, session.revision, sessions.store.clone())?;
        let follow = || hub.subscribe(memory.filter().clone(), caller, authenticated);
        let serial = memory.standalone.join(follow)?;
        Some(Self { endpoint: endpoint.clone(), stream, serial })
    }

    async fn run(self, reader: AttachedReader, replayed: Vec<u8>, expires: u64) {
        let stream = &self.stream;
        let _registered = stream.register();
        reader.send(replayed).await;
        reader.send(stream.priming()).await;
        stream.attach(&reader, 0);
        drop(reader);
        let memory = stream.memory();
        let (ended, stopped) = (memory.ended.clone(), self.endpoint.shutdown.clone());
        let mut end = std::pin::pin!(async {
            tokio::select! {
                () = ended.fired() => {}
                () = stopped.fired() => {}
                () = sleep(Duration::from_secs(expires.saturating_sub(now()))) => {}
            }
        });
        let mut waiting: Option<(Instant, Permit)> = None;
        loop {
            let reader = stream.reader();
            memory.standalone.reads(self.serial, reader.is_some());
            match &reader {
                Some(_) => waiting = None,
                None if waiting.is_some() => {}
                None => match self.endpoint.budgets.waiting.try_acquire(1) {
                    Some(permit) => waiting = Some((Instant::now() + PATIENCE, permit)),
                    None => return,
                },
            }
            let given_up = async {
                match &waiting {
                    Some((until, _)) => sleep_until(*until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut end => return,
                change = poll_fn(|cx| memory.standalone.poll(self.serial, cx)) => match change {
                    // a client that does not read holds this up, but not beyond the end of its session
                    Some(change) => tokio::select! {
                        biased;
                        () = &mut end => return,
                        () = stream.emit(change.notification(|_| {}), false) => {}
                    },
                    None => return,
                },
                () = stream.gone() => {}
                () = stream.changed.notified() => {}
                () = given_up => return,
            }
        }
    }
}

impl Drop for StandaloneStream {
    fn drop(&mut self) {
        self.stream.memory().standalone.leave(self.serial);
    }
}
