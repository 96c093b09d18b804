//! The edge that every transport shares: what one message means, which revision it is written in, whether its id is
//! free, how a batch is put together, and who drives a call that takes its time. Transports only move bytes.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{
    Listening, Request,
    response::{Pending, Reply, Response},
    subscriptions::Subscription,
    unsupported_version,
};
use crate::{
    connection::{ClientId, PendingRequests, RequestContext},
    jsonrpc::{JsonRpcMessage, MalformedMessage, ProtocolError, RequestId, parse},
    protocol::Revision,
    server::Server,
};

/// The most that an array of messages may hold.
pub(crate) const MAX_BATCH: usize = 50;

/// The requests of one connection, or of all sessions; clones are the same.
#[derive(Debug, Default, Clone)]
pub(crate) struct InFlight(Arc<Mutex<Requests>>);

#[derive(Debug, Default)]
struct Requests {
    clients: HashMap<ClientId, Vec<Entry>>,
    serial: u64,
}

#[derive(Debug)]
struct Entry {
    id: RequestId,
    serial: u64,
    cancel: Option<oneshot::Sender<()>>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request of that id is being answered; `id` is raw JSON.
    pub(crate) fn contains(&self, client: &ClientId, id: &str) -> bool {
        let table = self.lock();
        if table.clients.is_empty() {
            return false;
        }
        let id = RequestId::from_json(id);
        table.clients.get(client).is_some_and(|entries| entries.iter().any(|entry| entry.id == id))
    }

    /// Registers a request; `None` if its id is in use.
    pub(crate) fn register(&self, client: ClientId, id: &str) -> Option<Registration> {
        let id = RequestId::from_json(id);
        let mut table = self.lock();
        table.serial += 1;
        let serial = table.serial;
        let entries = table.clients.entry(client).or_default();
        if entries.iter().any(|entry| entry.id == id) {
            return None;
        }
        let (cancel, cancelled) = oneshot::channel();
        entries.push(Entry { id: id.clone(), serial, cancel: Some(cancel) });
        Some(Registration { in_flight: self.clone(), client, id, serial, cancelled })
    }

    /// Cancels a request.
    pub(crate) fn cancel(&self, client: &ClientId, id: &RequestId) {
        let cancel = {
            let mut table = self.lock();
            let entry = table.clients.get_mut(client).and_then(|all| all.iter_mut().find(|e| e.id == *id));
            entry.and_then(|entry| entry.cancel.take())
        };
        // dropping it wakes the request
        drop(cancel);
    }

    /// Cancels every request of a client.
    #[cfg(feature = "http")]
    pub(crate) fn cancel_all(&self, client: &ClientId) {
        let cancels: Vec<_> = {
            let mut table = self.lock();
            let entries = table.clients.get_mut(client).into_iter().flatten();
            entries.filter_map(|entry| entry.cancel.take()).collect()
        };
        drop(cancels);
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.lock().clients.is_empty()
    }
}

/// A request that is being answered; dropping it frees the id.
pub(crate) struct Registration {
    in_flight: InFlight,
    client: ClientId,
    id: RequestId,
    serial: u64,
    cancelled: oneshot::Receiver<()>,
}

impl Registration {
    /// Ready when the client has cancelled the request.
    pub(crate) fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.cancelled).poll(cx).map(|_| ())
    }

    /// Whether the client has cancelled the request.
    pub(crate) fn is_cancelled(&mut self) -> bool {
        self.poll_cancelled(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Waits until the client cancels the request.
    pub(crate) async fn cancelled(&mut self) {
        std::future::poll_fn(|cx| self.poll_cancelled(cx)).await;
    }

    /// Takes the registration of that id out of others; `id` is raw JSON.
    pub(super) fn take_from(held: &mut Vec<Self>, id: &str) -> Option<Self> {
        if held.is_empty() {
            return None;
        }
        let id = RequestId::from_json(id);
        let at = held.iter().position(|registration| registration.id == id)?;
        Some(held.swap_remove(at))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut table = self.in_flight.lock();
        let Some(entries) = table.clients.get_mut(&self.client) else { return };
        entries.retain(|entry| entry.serial != self.serial);
        if entries.is_empty() {
            table.clients.remove(&self.client);
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Which revision a message is written in, on a connection that keeps what `initialize` settled.
pub(crate) enum Era {
    /// `initialize` itself.
    Initialize,
    Of(Revision),
    /// It cannot be told, or is not served.
    Refused(ProtocolError),
}

/// The revision of a message on a connection; `handshake` is what `initialize` settled there.
pub(crate) fn era(message: &JsonRpcMessage<'_>, handshake: Option<Revision>) -> Era {
    let method = message.method().unwrap_or_default();
    match Server::version_in(&message.params().meta) {
        Ok(Some(version)) if version == Revision::LATEST.as_str() => Era::Of(Revision::LATEST),
        Ok(Some(version)) => Era::Refused(unsupported_version(&version)),
        Ok(None) if method == "initialize" => Era::Initialize,
        Ok(None) => match handshake {
            Some(revision) => Era::Of(revision),
            None if method == "ping" => Era::Of(Revision::LATEST_LEGACY),
            None => Era::Refused(ProtocolError::invalid_params(format!(
                "`{method}` came before `initialize`\nsend `initialize` first, or name the revision in `_meta` as \
                 `io.modelcontextprotocol/protocolVersion`"
            ))),
        },
        Err(error) => Era::Refused(error),
    }
}

/// The requests between the server and one client, in both directions: of a connection, or of a session.
#[derive(Clone, Copy)]
pub(crate) struct Clients<'a> {
    pub(crate) client: ClientId,
    pub(crate) in_flight: &'a InFlight,
    pub(crate) pending: &'a PendingRequests,
}

impl Clients<'_> {
    /// A notification: only that of a cancelled request has a meaning.
    pub(crate) fn notification(&self, message: &JsonRpcMessage<'_>) {
        if message.method() == Some("notifications/cancelled")
            && let Some(id) = message.params().request_id.and_then(RequestId::from_raw)
        {
            self.in_flight.cancel(&self.client, &id);
        }
    }

    /// Hands a response to the request that waits for it; `false` if none does.
    pub(crate) fn response(&self, message: &JsonRpcMessage<'_>) -> bool {
        let (Some(id), Some(response)) = (message.id(), message.response()) else { return false };
        self.pending.deliver(&self.client, id, response.map(Into::into).map_err(Into::into))
    }
}

/// How a request has begun.
pub(crate) enum Received {
    Reply(Reply),
    Running(RunningRequest),
}

/// How `subscriptions/listen` has begun.
pub(crate) enum Subscribed {
    Stream(Subscription, Option<Registration>),
    Refused(Reply),
}

/// `-32600`: the client uses the id of a request that is still being answered.
fn id_in_use(id: &str) -> Reply {
    ProtocolError::invalid_request(format!("the id {id} belongs to a request that still runs")).into()
}

impl Server {
    /// Begins to answer a request, but not `subscriptions/listen`. `clients` is absent where requests stand alone: they
    /// may have any id then. `held` are registrations that were made before.
    pub(crate) fn receive(
        &self,
        request: Request<'_>,
        clients: Option<Clients<'_>>,
        held: &mut Vec<Registration>,
    ) -> Received {
        let Request { id, .. } = request;
        let registration = Registration::take_from(held, id);
        if registration.is_none()
            && clients.is_some_and(|clients| clients.in_flight.contains(&clients.client, id))
        {
            return Received::Reply(id_in_use(id));
        }
        let pending = match self.answer(request) {
            Response::Ready(reply) => return Received::Reply(reply),
            Response::Pending(pending) => pending,
        };
        let registration = match (registration, clients) {
            (None, Some(clients)) => match clients.in_flight.register(clients.client, id) {
                Some(registration) => Some(registration),
                // another request with this id has begun at the same time
                None => return Received::Reply(id_in_use(id)),
            },
            (registration, _) => registration,
        };
        Received::Running(RunningRequest { id: id.into(), pending, registration })
    }

    /// Begins to answer `subscriptions/listen`.
    pub(crate) fn receive_listen(&self, request: Request<'_>, clients: Option<Clients<'_>>) -> Subscribed {
        let registration = match clients {
            None => None,
            Some(clients) => match clients.in_flight.register(clients.client, request.id) {
                Some(registration) => Some(registration),
                None => return Subscribed::Refused(id_in_use(request.id)),
            },
        };
        match self.answer_listen(request) {
            Listening::Stream(subscription) => Subscribed::Stream(subscription, registration),
            Listening::Refused(reply) => Subscribed::Refused(reply),
        }
    }
}

/// A request whose reply takes its time.
#[derive(Debug)]
pub(crate) struct RunningRequest {
    /// Raw JSON.
    pub(crate) id: Box<str>,
    pub(crate) pending: Pending,
    registration: Option<Registration>,
}

impl RunningRequest {
    /// Ready when the client has cancelled the request.
    pub(crate) fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.registration {
            Some(registration) => registration.poll_cancelled(cx),
            None => Poll::Pending,
        }
    }
}

impl Future for RunningRequest {
    /// `None` when the client has cancelled the request: it gets no reply.
    type Output = Option<Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Reply>> {
        // first, since a cancelled request gets no reply, also if it ends because of that
        if self.poll_cancelled(cx).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.pending).poll(cx).map(Some)
    }
}

/// One request of a message.
#[derive(Debug)]
pub(crate) enum Member {
    /// With raw JSON of its id.
    Replied(Box<str>, Reply),
    Running(RunningRequest),
    /// Cancelled by its client, or answered.
    Done,
}

impl Member {
    fn of(id: &str, received: Received) -> Self {
        match received {
            Received::Reply(reply) => Self::Replied(id.into(), reply),
            Received::Running(running) => Self::Running(running),
        }
    }
}

/// The requests of one message, in order.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) members: Vec<Member>,
    /// Whether they came as an array, and are answered as one.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "streams of lines ask when they write"))]
    pub(crate) batch: bool,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "as above"))]
    pub(crate) revision: Revision,
}

impl Calls {
    /// One request that takes its time.
    #[cfg(feature = "http")]
    pub(crate) fn single(running: RunningRequest, revision: Revision) -> Self {
        Self { members: vec![Member::Running(running)], batch: false, revision }
    }

    /// Polls every member; ready when none is running any more.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut all = Poll::Ready(());
        for member in &mut self.members {
            let Member::Running(running) = member else { continue };
            *member = match Pin::new(&mut *running).poll(cx) {
                Poll::Pending => {
                    all = Poll::Pending;
                    continue;
                }
                Poll::Ready(Some(reply)) => Member::Replied(std::mem::take(&mut running.id), reply),
                Poll::Ready(None) => Member::Done,
            };
        }
        all
    }

    /// Takes the replies that are there, in order.
    pub(crate) fn take_replies(&mut self) -> Vec<(Box<str>, Reply)> {
        let mut replies = Vec::new();
        for member in &mut self.members {
            match std::mem::replace(member, Member::Done) {
                Member::Replied(id, reply) => replies.push((id, reply)),
                other => *member = other,
            }
        }
        replies
    }

    /// The calls that still run.
    #[cfg(feature = "http")]
    pub(crate) fn running(&mut self) -> impl Iterator<Item = &mut RunningRequest> {
        self.members.iter_mut().filter_map(|member| match member {
            Member::Running(running) => Some(running),
            Member::Replied(..) | Member::Done => None,
        })
    }

    pub(crate) fn is_running(&self) -> bool {
        self.members.iter().any(|member| matches!(member, Member::Running(_)))
    }
}

/// An array of messages of 2025-03-26 whose requests have begun.
pub(crate) struct Batch {
    pub(crate) calls: Calls,
    /// It holds a response that no request waits for.
    pub(crate) unexpected: bool,
    /// It holds a message that cannot be read, not even its id.
    pub(crate) unreadable: Option<ProtocolError>,
}

/// The messages of an array, as far as they can be read.
pub(crate) struct Messages<'a>(Vec<Result<JsonRpcMessage<'a>, MalformedMessage>>);

impl<'a> Messages<'a> {
    pub(crate) fn read(messages: &[&'a RawValue]) -> Self {
        Self(messages.iter().map(|raw| parse(raw.get().as_bytes())).collect())
    }

    /// Raw JSON of the ids of its requests.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|message| match message {
            Ok(message) if message.is_response() => None,
            Ok(message) => message.id(),
            Err(malformed) => malformed.id.as_deref(),
        })
    }

    /// Whether an HTTP request with these messages gets a body.
    #[cfg(feature = "http")]
    pub(crate) fn await_replies(&self) -> bool {
        self.0.iter().any(|message| match message {
            Ok(message) => message.id().is_some() && !message.is_response(),
            Err(malformed) => malformed.expects_response,
        })
    }

    /// Whether it can be served at all.
    ///
    /// # Errors
    /// `-32600`
    pub(crate) fn check(&self) -> Result<(), ProtocolError> {
        if !(1..=MAX_BATCH).contains(&self.0.len()) {
            return Err(ProtocolError::invalid_request(format!("a batch holds 1 to {MAX_BATCH} messages")));
        }
        if self.0.iter().flatten().any(|message| message.method() == Some("initialize")) {
            return Err(ProtocolError::invalid_request("`initialize` must not be part of a batch"));
        }
        Ok(())
    }
}

/// Begins to answer an array of messages, which has been checked.
pub(crate) fn start_batch(
    server: &Server,
    messages: &Messages<'_>,
    context: &RequestContext,
    clients: Option<Clients<'_>>,
    held: &mut Vec<Registration>,
) -> Batch {
    let revision = Revision::V2025_03_26;
    let mut batch = Batch {
        calls: Calls { members: Vec::new(), batch: true, revision },
        unexpected: false,
        unreadable: None,
    };
    let members = &mut batch.calls.members;
    for message in &messages.0 {
        let message = match message {
            Ok(message) => message,
            Err(malformed) if !malformed.expects_response => continue,
            Err(malformed) => {
                match malformed.id.as_deref() {
                    Some(id) => members.push(Member::Replied(id.into(), malformed.error.clone().into())),
                    // this revision has no reply without an id
                    None => {
                        tracing::warn!(error = %malformed.error, "a message in an array could not be read");
                        batch.unreadable.get_or_insert_with(|| malformed.error.clone());
                    }
                }
                continue;
            }
        };
        if message.is_response() {
            batch.unexpected |= !clients.is_some_and(|clients| clients.response(message));
            continue;
        }
        let Some(request) = Request::of(message, revision, context) else {
            if let Some(clients) = clients {
                clients.notification(message);
            }
            continue;
        };
        if request.params.meta.version.is_some() {
            let text = "a request that names its revision in `_meta` must not be part of a batch";
            members.push(Member::Replied(request.id.into(), ProtocolError::invalid_request(text).into()));
            continue;
        }
        members.push(Member::of(request.id, server.receive(request, clients, held)));
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_found_by_client_and_id_until_it_is_answered() {
        let in_flight = InFlight::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut one = in_flight.register([1; 16], "1").expect("free");
        let mut other = in_flight.register([2; 16], "1").expect("free");
        let mut text = in_flight.register([1; 16], "\"1\"").expect("free");
        assert!(in_flight.contains(&[1; 16], "1") && !in_flight.contains(&[3; 16], "1"));
        assert!(in_flight.register([1; 16], "1").is_none(), "in use");
        in_flight.cancel(&[1; 16], &RequestId::from_json("1"));
        assert!(one.poll_cancelled(&mut cx).is_ready());
        assert!(other.poll_cancelled(&mut cx).is_pending() && text.poll_cancelled(&mut cx).is_pending());
        in_flight.cancel_all(&[1; 16]);
        assert!(text.poll_cancelled(&mut cx).is_ready() && other.poll_cancelled(&mut cx).is_pending());
        assert!(in_flight.contains(&[1; 16], "1"), "cancelled, but not over yet");
        drop((one, other, text));
        assert!(in_flight.is_empty());
    }
}
