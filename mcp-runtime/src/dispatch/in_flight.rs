//! Requests that are being answered, by the client that sent them and their ids: how an id in use and
//! `notifications/cancelled` find them.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::sync::oneshot;

use crate::{connection::ClientId, jsonrpc::RequestId};

/// The requests of one connection, or of all sessions; clones are the same.
#[derive(Debug, Default, Clone)]
pub(crate) struct InFlight(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
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
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request of that id is being answered; `id` is raw JSON.
    pub(crate) fn contains(&self, client: &ClientId, id: &str) -> bool {
        let table = self.lock();
        if table.clients.is_empty() {
            return false;
        }
        let id = RequestId::of(id);
        table.clients.get(client).is_some_and(|entries| entries.iter().any(|entry| entry.id == id))
    }

    /// Registers a request; `None` if its id is in use.
    pub(crate) fn register(&self, client: ClientId, id: &str) -> Option<Registration> {
        let id = RequestId::of(id);
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
        let id = RequestId::of(id);
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
        in_flight.cancel(&[1; 16], &RequestId::of("1"));
        assert!(one.poll_cancelled(&mut cx).is_ready());
        assert!(other.poll_cancelled(&mut cx).is_pending() && text.poll_cancelled(&mut cx).is_pending());
        in_flight.cancel_all(&[1; 16]);
        assert!(text.poll_cancelled(&mut cx).is_ready() && other.poll_cancelled(&mut cx).is_pending());
        assert!(in_flight.contains(&[1; 16], "1"), "cancelled, but not over yet");
        drop((one, other, text));
        assert!(in_flight.is_empty());
    }
}
