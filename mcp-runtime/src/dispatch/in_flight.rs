//! The requests that are being answered, by client and id: an id is in use until its [`Registration`] is dropped, and a
//! registered request can be cancelled by its id.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::sync::oneshot;

use crate::{
    connection::ClientId,
    jsonrpc::RequestId,
    sync::{Mutex, MutexGuard},
};

/// The requests of one connection, or of all sessions; clones share them.
#[derive(Debug, Default, Clone)]
pub(crate) struct InFlight(Arc<Mutex<RegisteredRequests>>);

#[derive(Debug, Default)]
struct RegisteredRequests {
    by_client: HashMap<ClientId, Vec<RegisteredRequest>>,
    last_serial: u64,
}

#[derive(Debug)]
struct RegisteredRequest {
    id: RequestId,
    serial: u64,
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
        if table.by_client.is_empty() {
            return false;
        }
        let id = RequestId::from_json(id);
        table.by_client.get(client).is_some_and(|requests| requests.iter().any(|request| request.id == id))
    }

    /// Registers a request; `None` if its id is in use.
    pub(crate) fn register(&self, client: ClientId, id: &str) -> Option<Registration> {
        let id = RequestId::from_json(id);
        let mut table = self.lock();
        table.last_serial += 1;
        let serial = table.last_serial;
        let requests = table.by_client.entry(client).or_default();
        if requests.iter().any(|request| request.id == id) {
            return None;
        }
        let (cancel, cancelled) = oneshot::channel();
        requests.push(RegisteredRequest { id: id.clone(), serial, cancel: Some(cancel) });
        Some(Registration { in_flight: self.clone(), client, id, serial, cancelled })
    }

    /// Cancels a request.
    pub(crate) fn cancel(&self, client: &ClientId, id: &RequestId) {
        let cancel = {
            let mut table = self.lock();
            let requests = table.by_client.get_mut(client);
            let request = requests.and_then(|requests| requests.iter_mut().find(|r| r.id == *id));
            request.and_then(|request| request.cancel.take())
        };
        // after the lock is released, since this wakes the request
        drop(cancel);
    }

    /// Cancels every request of a client.
    #[cfg(feature = "http")]
    pub(crate) fn cancel_all(&self, client: &ClientId) {
        let cancels: Vec<_> = {
            let mut table = self.lock();
            let requests = table.by_client.get_mut(client).into_iter().flatten();
            requests.filter_map(|request| request.cancel.take()).collect()
        };
        drop(cancels);
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.lock().by_client.is_empty()
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

    /// Removes the registration of that id from a list; `id` is raw JSON.
    pub(super) fn take_from(registrations: &mut Vec<Self>, id: &str) -> Option<Self> {
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
        let Some(requests) = table.by_client.get_mut(&self.client) else { return };
        requests.retain(|request| request.serial != self.serial);
        if requests.is_empty() {
            table.by_client.remove(&self.client);
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_registered_by_client_and_id_until_it_is_answered() {
        let in_flight = InFlight::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = in_flight.register([1; 16], "1").expect("free");
        let mut other_client = in_flight.register([2; 16], "1").expect("free");
        let mut other_id = in_flight.register([1; 16], "\"1\"").expect("free");
        assert!(in_flight.contains(&[1; 16], "1") && !in_flight.contains(&[3; 16], "1"));
        assert!(in_flight.register([1; 16], "1").is_none(), "in use");
        in_flight.cancel(&[1; 16], &RequestId::from_json("1"));
        assert!(first.poll_cancelled(&mut cx).is_ready());
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
