//! The edge that every transport shares: which revision a message is written in, whether its id is free, who drives a call
//! whose reply is pending, and how a call is cancelled. Transports only move bytes.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::sync::oneshot;

use super::{
    Request,
    response::{PendingReply, Reply, Response},
    subscriptions::NotificationStream,
};
use crate::{
    core::{
        admission::Permit,
        blocking::CallPermit,
        connection::{ClientId, PendingRequests},
        jsonrpc::{JsonRpcMessage, Meta, ProtocolError, RequestId, decode_string},
        maybe_ready::MaybeReady,
        protocol::{self, Revision},
        server::Server,
        sync::{Mutex, MutexGuard},
    },
    schema::truncate,
};

/// The revision that a request is written in, on a connection that keeps the result of `initialize`.
pub(crate) enum RequestRevision {
    /// The request is `initialize`, which negotiates the revision.
    Initialize,
    Known(Revision),
    /// The revision is unknown or not supported.
    Unsupported(ProtocolError),
}

/// The revision of a request on a connection; `negotiated` is the result of `initialize` there.
pub(crate) fn resolve_revision(
    message: &JsonRpcMessage<'_>,
    negotiated: Option<Revision>,
) -> RequestRevision {
    let method = message.method().unwrap_or_default();
    match declared_version(&message.params().meta) {
        Ok(Some(version)) if version == Revision::LATEST.as_str() => RequestRevision::Known(Revision::LATEST),
        Ok(Some(version)) => RequestRevision::Unsupported(unsupported_version(&version)),
        Ok(None) if method == "initialize" => RequestRevision::Initialize,
        Ok(None) => match negotiated {
            Some(revision) => RequestRevision::Known(revision),
            None if method == "ping" => RequestRevision::Known(Revision::LATEST_LEGACY),
            None => RequestRevision::Unsupported(ProtocolError::invalid_params(format!(
                "`{method}` came before `initialize`\nsend `initialize` first, or name the revision in `_meta` as \
                 `io.modelcontextprotocol/protocolVersion`"
            ))),
        },
        Err(error) => RequestRevision::Unsupported(error),
    }
}

/// The version that a request's `_meta` declares; `None` before 2026-07-28.
pub(crate) fn declared_version<'a>(meta: &Meta<'a>) -> Result<Option<Cow<'a, str>>, ProtocolError> {
    let Some(raw) = meta.version else { return Ok(None) };
    decode_string(raw)
        .map(Some)
        .ok_or_else(|| ProtocolError::invalid_params("the protocol version in `_meta` is not a string"))
}

/// `-32022`, listing the versions that are supported.
pub(crate) fn unsupported_version(requested: &str) -> ProtocolError {
    ProtocolError::new(protocol::UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version")
        .with_data(serde_json::json!({ "supported": [Revision::LATEST.as_str()], "requested": requested }))
}

/// `-32600`: the client uses the id of a request that is still being answered.
pub(crate) fn id_in_use(id: &str) -> ProtocolError {
    ProtocolError::invalid_request(format!("the id {id} is in use by a request that is still running"))
}

/// The reply to a call that was still running at the end of the shutdown timeout.
pub(crate) fn cut_off_error() -> ProtocolError {
    ProtocolError::internal(
        "the server has stopped before the call had ended\nwhat the call has done by then is not known",
    )
}

/// Whether a message is `notifications/initialized`, after which a legacy client may be sent requests.
pub(crate) fn is_initialized(message: &JsonRpcMessage<'_>) -> bool {
    message.method() == Some("notifications/initialized") && message.id().is_none()
}

/// The requests that are being answered, of one connection or of all sessions, by client and id: an id is in use until
/// its [`Registration`] is dropped. Clones share them.
#[derive(Default, Clone)]
pub(crate) struct InFlight(Arc<Mutex<RegisteredRequests>>);

type RegisteredRequests = HashMap<ClientId, HashMap<RequestId, RegisteredRequest>>;

struct RegisteredRequest {
    /// The number of the message that waits with it, if one does.
    queued: Option<u64>,
    /// Dropping it cancels the request.
    cancel: Option<oneshot::Sender<()>>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, RegisteredRequests> {
        self.0.lock()
    }

    /// Whether a request of that id is being answered; `id` is raw JSON.
    pub(crate) fn contains(&self, client: &ClientId, id: &str) -> bool {
        let table = self.lock();
        // nearly always: an id that is not looked for is not read
        if table.is_empty() {
            return false;
        }
        table.get(client).is_some_and(|requests| requests.contains_key(&RequestId::from_json(id)))
    }

    /// Registers a request, and the message that waits with it, if one does; `None` if its id is in use.
    pub(crate) fn register(&self, client: ClientId, id: &str, queued: Option<u64>) -> Option<Registration> {
        let id = RequestId::from_json(id);
        let mut table = self.lock();
        let Entry::Vacant(entry) = table.entry(client).or_default().entry(id.clone()) else { return None };
        let (cancel, cancelled) = oneshot::channel();
        entry.insert(RegisteredRequest { queued, cancel: Some(cancel) });
        Some(Registration { in_flight: self.clone(), client, id, cancelled, was_cancelled: false })
    }

    /// Cancels a request, if one of that id is being answered; returns the number of the message that waits with it.
    pub(crate) fn cancel(&self, client: &ClientId, id: &RequestId) -> Option<u64> {
        let (_cancel, queued) = {
            let mut table = self.lock();
            let request = table.get_mut(client)?.get_mut(id)?;
            (request.cancel.take()?, request.queued)
        };
        // dropped after the lock is released, since that wakes the request
        queued
    }

    /// Cancels every request of a client.
    pub(crate) fn cancel_all(&self, client: &ClientId) {
        let cancels: Vec<_> = {
            let mut table = self.lock();
            let requests = table.get_mut(client).into_iter().flatten();
            requests.filter_map(|(_, request)| request.cancel.take()).collect()
        };
        drop(cancels);
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// A request that is being answered, and can be cancelled by its id; dropping it frees the id.
pub(crate) struct Registration {
    in_flight: InFlight,
    client: ClientId,
    id: RequestId,
    cancelled: oneshot::Receiver<()>,
    was_cancelled: bool,
}

impl Registration {
    /// Ready when the client has cancelled the request.
    pub(crate) fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // a channel that was ready may not be polled again
        if !self.was_cancelled {
            std::task::ready!(Pin::new(&mut self.cancelled).poll(cx)).unwrap_or_default();
            self.was_cancelled = true;
        }
        Poll::Ready(())
    }

    /// Whether the client has cancelled the request.
    pub(crate) fn is_cancelled(&mut self) -> bool {
        self.poll_cancelled(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Waits until the client cancels the request.
    pub(crate) async fn cancelled(&mut self) {
        std::future::poll_fn(|cx| self.poll_cancelled(cx)).await;
    }

    /// Whether the client has cancelled the request of that id, whose registration is in a list; `id` is raw JSON.
    pub(super) fn is_cancelled_in(registrations: &mut [Self], id: &str) -> bool {
        if registrations.is_empty() {
            return false;
        }
        let id = RequestId::from_json(id);
        registrations.iter_mut().any(|registration| registration.id == id && registration.is_cancelled())
    }

    /// Removes the registration of that id from a list; `id` is raw JSON.
    fn take_from(registrations: &mut Vec<Self>, id: &str) -> Option<Self> {
        if registrations.is_empty() {
            return None;
        }
        let id = RequestId::from_json(id);
        let index = registrations.iter().position(|registration| registration.id == id)?;
        Some(registrations.swap_remove(index))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut table = self.in_flight.lock();
        let Some(requests) = table.get_mut(&self.client) else { return };
        requests.remove(&self.id);
        if requests.is_empty() {
            table.remove(&self.client);
        }
    }
}

/// The open requests between the server and one client, in both directions: of a connection, or of a session.
#[derive(Clone, Copy)]
pub(crate) struct OpenRequests<'a> {
    pub(crate) client: ClientId,
    pub(crate) in_flight: &'a InFlight,
    pub(crate) pending: &'a PendingRequests,
}

impl OpenRequests<'_> {
    /// Handles a notification; all but `notifications/cancelled` are ignored. Returns the number of the queued message of which
    /// a request is cancelled by that.
    pub(crate) fn handle_notification(&self, message: &JsonRpcMessage<'_>) -> Option<u64> {
        if message.method() == Some("notifications/cancelled")
            && let Some(raw) = message.params().get("requestId")
            && let Some(id) = RequestId::from_raw(raw)
        {
            let reason = message.params().get("reason").and_then(decode_string).unwrap_or_default();
            // quoted, so that it cannot imitate other log entries
            tracing::debug!(id = raw.get(), reason = ?truncate(&reason), "the client cancels a request");
            return self.in_flight.cancel(&self.client, &id);
        }
        None
    }

    /// Delivers a response to the request that waits for it; `false` if none does.
    pub(crate) fn deliver_response(&self, message: &JsonRpcMessage<'_>) -> bool {
        let (Some(id), Some(response)) = (message.id(), message.response()) else { return false };
        self.pending.deliver(&self.client, id, response.map(Into::into).map_err(Into::into))
    }

    /// Registers a request.
    ///
    /// # Errors
    /// Its id is in use.
    fn register(&self, id: &str) -> Result<Registration, Reply> {
        self.in_flight.register(self.client, id, None).ok_or_else(|| id_in_use(id).into())
    }
}

/// A request that has been started.
pub(crate) type StartedRequest = MaybeReady<Reply, RunningRequest>;

impl StartedRequest {
    /// The same request, which holds a permit as long as it runs.
    pub(crate) fn holding(mut self, permit: Option<Permit>) -> Self {
        if let (Self::Pending(running), Some(permit)) = (&mut self, permit) {
            running.hold(permit);
        }
        self
    }
}

impl Server {
    /// Starts to answer a request, but none that opens a stream. `open` is `None` where requests are independent of
    /// each other, so that ids need not be unique. `registrations` were made when the message was queued.
    pub(crate) fn start_request(
        &self,
        request: Request<'_>,
        open: Option<OpenRequests<'_>>,
        registrations: &mut Vec<Registration>,
    ) -> StartedRequest {
        let Request { id, .. } = request;
        let registration = Registration::take_from(registrations, id);
        if registration.is_none() && open.is_some_and(|open| open.in_flight.contains(&open.client, id)) {
            return Reply::from(id_in_use(id)).into();
        }
        let pending = match self.answer(request) {
            Response::Ready(reply) => return reply.into(),
            Response::Pending(pending) => pending,
        };
        // only requests that stay open are registered; another one with this id may have been started meanwhile
        let registration = match (registration, open) {
            (None, Some(open)) => match open.register(id) {
                Ok(registration) => Some(registration),
                Err(reply) => return reply.into(),
            },
            (registration, _) => registration,
        };
        StartedRequest::Pending(RunningRequest { id: id.into(), pending, registration })
    }

    /// Starts to answer a request that opens a stream.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(crate) fn start_stream(
        &self,
        request: Request<'_>,
        open: Option<OpenRequests<'_>>,
    ) -> Result<(NotificationStream, Option<Registration>), Reply> {
        let registration = open.map(|open| open.register(request.id)).transpose()?;
        Ok((self.answer_with_stream(request)?, registration))
    }
}

/// A request whose reply is pending.
pub(crate) struct RunningRequest {
    /// Raw JSON.
    pub(crate) id: Box<str>,
    pub(crate) pending: PendingReply,
    registration: Option<Registration>,
}

impl RunningRequest {
    /// Holds a permit until the call and its blocking threads have ended.
    pub(crate) fn hold(&mut self, permit: Permit) {
        self.pending.hold(vec![CallPermit::Share(permit)]);
    }

    /// Ready when the client has cancelled the request.
    pub(crate) fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.registration {
            Some(registration) => registration.poll_cancelled(cx),
            None => Poll::Pending,
        }
    }
}

impl Future for RunningRequest {
    /// `None` when the client has cancelled the request, which gets no reply then.
    type Output = Option<Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Reply>> {
        // first: a function that returns because of the cancellation gets no reply either
        if self.poll_cancelled(cx).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.pending).poll(cx).map(Some)
    }
}

/// The reply to a call, with raw JSON of its id, or the call that is running.
pub(super) type StartedCall = MaybeReady<(Box<str>, Reply), RunningRequest>;

/// The calls that one message starts, in order.
pub(crate) struct Calls {
    /// Without those that the client has cancelled, and those whose replies have been taken.
    pub(super) started: Vec<StartedCall>,
    /// Whether the message was a batch, so that the replies form an array.
    pub(crate) batch: bool,
    pub(crate) revision: Revision,
}

impl Calls {
    /// The call of a single request.
    pub(crate) fn single(running: RunningRequest, revision: Revision) -> Self {
        Self { started: vec![StartedCall::Pending(running)], batch: false, revision }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.started.is_empty()
    }

    /// Polls every call; ready when none is running.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut all = Poll::Ready(());
        self.started.retain_mut(|call| {
            let StartedCall::Pending(running) = call else { return true };
            match Pin::new(&mut *running).poll(cx) {
                Poll::Pending => all = Poll::Pending,
                Poll::Ready(None) => return false,
                Poll::Ready(Some(reply)) => *call = (std::mem::take(&mut running.id), reply).into(),
            }
            true
        });
        all
    }

    /// Drops the calls that are running, which are answered with an error.
    pub(crate) fn cut_off(&mut self) {
        for call in &mut self.started {
            if let StartedCall::Pending(running) = call {
                *call = (std::mem::take(&mut running.id), cut_off_error().into()).into();
            }
        }
    }

    /// Takes the replies that are ready, in order, each with raw JSON of its id.
    pub(crate) fn take_replies(&mut self) -> Vec<(Box<str>, Reply)> {
        let mut replies = Vec::new();
        for call in std::mem::take(&mut self.started) {
            match call {
                StartedCall::Ready(reply) => replies.push(reply),
                running => self.started.push(running),
            }
        }
        replies
    }

    /// The calls that are running.
    pub(crate) fn running_mut(&mut self) -> impl Iterator<Item = &mut RunningRequest> {
        self.started.iter_mut().filter_map(|call| match call {
            StartedCall::Pending(running) => Some(running),
            StartedCall::Ready(_) => None,
        })
    }

    pub(crate) fn is_running(&self) -> bool {
        self.started.iter().any(|call| matches!(call, StartedCall::Pending(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_registered_by_client_and_id_until_it_is_answered() {
        let in_flight = InFlight::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = in_flight.register([1; 16], "1", None).expect("free");
        let mut other_client = in_flight.register([2; 16], "1", None).expect("free");
        let mut other_id = in_flight.register([1; 16], "\"1\"", Some(7)).expect("free");
        assert!(in_flight.contains(&[1; 16], "1") && !in_flight.contains(&[3; 16], "1"));
        assert!(in_flight.register([1; 16], "1", None).is_none(), "in use");
        assert_eq!(in_flight.cancel(&[1; 16], &RequestId::from_json("1")), None, "no message waits with it");
        assert!(first.poll_cancelled(&mut cx).is_ready());
        assert!(first.is_cancelled() && first.is_cancelled(), "however often it is asked");
        assert!(other_client.poll_cancelled(&mut cx).is_pending());
        assert!(other_id.poll_cancelled(&mut cx).is_pending());
        in_flight.cancel_all(&[1; 16]);
        assert!(other_id.poll_cancelled(&mut cx).is_ready());
        assert!(other_client.poll_cancelled(&mut cx).is_pending());
        assert!(in_flight.contains(&[1; 16], "1"), "cancelled, but not dropped yet");
        drop((first, other_client, other_id));
        assert!(in_flight.is_empty());
    }
}
