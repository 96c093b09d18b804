//! Streams of a server that is replaced while clients read them: the connection to the client stays open, and each event is
//! shown with the ids that its client knows.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hyper::{
    Response, StatusCode,
    body::{Bytes, Incoming},
    header::{self, HeaderValue},
    http::request,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    super::{
        child::MAX_MESSAGE,
        message::{self, Kind, Line, kind, not_answered},
        page::body::Body,
        trace::Direction,
    },
    PARTS, Proxy, SESSION_ID,
    clients::ClientSession,
    events,
    own::{BROKEN, ENDED, Own, Unreachable, Wait, with_own_id},
    pass_back,
    upstream::{self, EVENT_STREAM, is_of_kind, next_part, set},
};

pub(super) const LAST_EVENT_ID: header::HeaderName = header::HeaderName::from_static("last-event-id");

impl Proxy {
    /// The messages of the server in `bytes` as its client gets them, which are recorded; `change` is that of [`Line::changed`].
    pub(super) fn show(
        &self,
        name: &str,
        bytes: Vec<u8>,
        mut change: impl FnMut(&Value) -> Option<Option<Value>>,
    ) -> (Vec<u8>, Vec<Value>) {
        Line::parse(&bytes).changed(bytes, |message| {
            let changed = change(message)?;
            self.record(name, Direction::ToClient, changed.as_ref().unwrap_or(message));
            Some(changed)
        })
    }

    /// Opens a stream of a session, which goes on with each process.
    pub(super) async fn listen(
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
pub(super) async fn send_all(
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
pub(super) fn with_shown_ids(
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
            Some(message::with_id(message, fresh))
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
pub(super) enum Ended {
    ClientGone,
    Whole,
    Broken(io::Error),
}

/// Passes a stream on event by event, until it ends. `take` returns other data.
pub(super) async fn relay(
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
