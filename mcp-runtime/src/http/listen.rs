//! GET: streams on which a session hears what no request has asked for, and streams that are taken up again after
//! their connection broke. The endpoint calls it.
//!
//! See [listening for messages](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server).

use std::{future::poll_fn, sync::Arc, time::Duration};

use axum::http::Response;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    endpoint::{Endpoint, Sessions, now},
    exchange::Exchange,
    feed::{Feed, Kind, Place, Position, Reader, session_name, write_id},
    head::{Field, Head},
    queue,
    reply::{self, Refusal, Reply},
    stream::KEEP_ALIVE,
};
use crate::session::{Open, Session};

/// How long what happens is kept together for a client that may come back.
const PATIENCE: Duration = Duration::from_secs(60);
/// Streams that wait for their clients.
pub(super) const MAX_WAITING: usize = 256;
/// When a client is to come back for a stream that goes on elsewhere.
const ELSEWHERE: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Opens a standing stream, or takes up another one.
    pub(super) async fn listen(self: &Arc<Self>, exchange: &Exchange, head: &Head<'_>) -> Response<Reply> {
        let Some(sessions) = self.sessions.as_ref().filter(|_| !head.is_modern()) else {
            return reply::not_allowed(self.allow(head));
        };
        match self.opened(sessions, exchange, head).await {
            Ok(response) => response,
            Err(refusal) => refusal.into(),
        }
    }

    async fn opened(
        self: &Arc<Self>,
        sessions: &Sessions,
        exchange: &Exchange,
        head: &Head<'_>,
    ) -> Result<Response<Reply>, Refusal> {
        head.once().map_err(|name| head.repeated(name))?;
        if !head.accepts(&exchange.parts().headers).stream {
            return Err(Refusal::no_stream());
        }
        let caller = self.caller(exchange.parts());
        let session = self.session(sessions, head, caller.as_deref())?;
        let place =
            Place::enter(&self.streams, self.options.max_streams).ok_or_else(Refusal::too_many_streams)?;
        let open = sessions.table.open(session.sid).ok_or_else(Refusal::too_many_streams)?;
        // it may have been ended while it was being opened
        if sessions.revoked.contains(&session.sid) {
            sessions.table.end(&session.sid);
            return Err(Refusal::no_session());
        }
        let mut replayed = Vec::new();
        if let Field::One(id) = head.last_event {
            let position = id.to_str().ok().and_then(Position::read).ok_or_else(Refusal::no_event)?;
            let running = open.memory.streams().get(position.stream).cloned();
            if let Some(feed) = running {
                let (reader, events) = Reader::new(Some(place));
                tokio::spawn(async move { feed.resume(&reader, position.number).await });
                return Ok(reply::events(Reply::Events(events)));
            }
            let over = self.replay(sessions, &session, &position, &mut replayed).await;
            match (over, position.kind) {
                (None, Kind::Call) => return Err(Refusal::no_event()),
                (Some(true), Kind::Call) => return Ok(reply::events(Reply::Whole(replayed.into()))),
                (Some(false), Kind::Call) => {
                    // it goes on at another replica
                    let retry = format!("retry: {}\n\n", ELSEWHERE.as_millis());
                    replayed.extend_from_slice(retry.as_bytes());
                    return Ok(reply::events(Reply::Whole(replayed.into())));
                }
                // what has been forgotten is lost, but there may be more to hear
                (_, Kind::Standing) => {}
            }
        }
        let (reader, events) = Reader::new(Some(place));
        let standing = Standing::open(self, open, &session, caller).ok_or_else(Refusal::too_many_streams)?;
        tokio::spawn(standing.run(reader, replayed, session.expires));
        Ok(reply::events(Reply::Events(events)))
    }

    /// Writes what a client has missed of a stream that is over, or goes on elsewhere; whether it is over, `None` if
    /// nothing is known of it.
    async fn replay(
        &self,
        sessions: &Sessions,
        session: &Session,
        position: &Position<'_>,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let store = sessions.store.as_ref()?;
        let missed = store.read(&session_name(&session.sid), position.stream, position.number).await?;
        let over = missed.last().is_some_and(|event| event.last);
        for event in missed.iter().filter(|event| !event.message.is_empty()) {
            write_id(out, position.stream, event.number);
            queue::event(out, event.message.as_bytes());
        }
        Some(over)
    }
}

/// A standing stream.
struct Standing {
    endpoint: Arc<Endpoint>,
    feed: Arc<Feed>,
    /// Its number within the session.
    serial: u64,
}

impl Standing {
    /// `None` if too many follow already.
    fn open(
        endpoint: &Arc<Endpoint>,
        open: Open<Arc<Feed>>,
        session: &Session,
        caller: Option<Arc<crate::context::Caller>>,
    ) -> Option<Self> {
        let store = endpoint.sessions.as_ref()?.store.clone();
        let restricted = endpoint.options.caller.is_some();
        let memory = open.memory.clone();
        let hub = open.hub().clone();
        let feed = Feed::new(Kind::Standing, open, session.revision, store)?;
        let serial = memory.standing.join(|| hub.follow(memory.filter().clone(), caller, restricted))?;
        Some(Self { endpoint: endpoint.clone(), feed, serial })
    }

    async fn run(self, reader: Reader, replayed: Vec<u8>, expires: u64) {
        let feed = &self.feed;
        let _registered = feed.register();
        reader.send(replayed).await;
        reader.send(feed.priming()).await;
        feed.attach(&reader, 0);
        drop(reader);
        let memory = feed.memory();
        let (ended, stopped) = (memory.ending.clone(), self.endpoint.ending.clone());
        let mut end = std::pin::pin!(async {
            tokio::select! {
                () = ended.fired() => {}
                () = stopped.fired() => {}
                () = sleep(Duration::from_secs(expires.saturating_sub(now()))) => {}
            }
        });
        let mut waiting: Option<(Instant, Place)> = None;
        loop {
            let reader = feed.reader();
            memory.standing.reads(self.serial, reader.is_some());
            match &reader {
                Some(_) => waiting = None,
                None if waiting.is_some() => {}
                None => match Place::enter(&self.endpoint.waiting, MAX_WAITING) {
                    Some(place) => waiting = Some((Instant::now() + PATIENCE, place)),
                    None => return,
                },
            }
            let until = waiting.as_ref().map_or_else(|| Instant::now() + KEEP_ALIVE, |(until, _)| *until);
            tokio::select! {
                biased;
                () = &mut end => return,
                change = poll_fn(|cx| memory.standing.poll(self.serial, cx)) => match change {
                    // a client that does not read holds this up, but not beyond the end of its session
                    Some(change) => tokio::select! {
                        biased;
                        () = &mut end => return,
                        () = feed.emit(change.notification(|_| {}), false) => {}
                    },
                    None => return,
                },
                () = feed.gone() => {}
                () = feed.changed.notified() => {}
                () = sleep_until(until) => match &reader {
                    Some(reader) => reader.keep_alive(),
                    None => return,
                },
            }
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.feed.memory().standing.leave(self.serial);
    }
}
