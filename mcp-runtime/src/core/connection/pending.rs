//! Client requests that wait for their responses: each response is delivered once, and only if it comes from the client
//! that the request was sent to.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::oneshot;

use crate::core::{crypto::random_id, sync::Mutex};

/// Raw JSON of a result, or of an error.
pub(crate) type ClientResponse = Result<Box<str>, Box<str>>;

/// The prefix of the ids of requests.
const PREFIX: &str = "mcp-";

/// The identity of a client's session.
pub(crate) type ClientId = [u8; 16];

/// Requests that wait for their responses, by id; clones share one table.
#[derive(Clone, Default)]
pub(crate) struct PendingRequests(Arc<Mutex<HashMap<Box<str>, WaitingRequest>>>);

struct WaitingRequest {
    client: ClientId,
    response: oneshot::Sender<ClientResponse>,
}

impl PendingRequests {
    /// Registers a request to that client, with an id that cannot be guessed.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(crate) fn expect_response(&self, client: ClientId) -> Result<PendingResponse, &'static str> {
        let id = random_id().map_err(|_| "the operating system provides no randomness for a request id")?;
        let id: Box<str> = format!("\"{PREFIX}{id}\"").into();
        let (sender, response) = oneshot::channel();
        self.0.lock().insert(id.clone(), WaitingRequest { client, response: sender });
        Ok(PendingResponse { id, requests: self.clone(), response })
    }

    /// Delivers a response, by the raw JSON of its id; `false` if no request to that client has this id.
    pub(crate) fn deliver(&self, client: &ClientId, id: &str, response: ClientResponse) -> bool {
        let mut waiting = self.0.lock();
        if waiting.get(id).is_none_or(|waiting| waiting.client != *client) {
            return false;
        }
        if let Some(waiting) = waiting.remove(id) {
            // the receiver may have been dropped concurrently
            let _dropped = waiting.response.send(response);
        }
        true
    }

    /// Fails the requests to that client, which has disconnected.
    pub(crate) fn close(&self, client: &ClientId) {
        self.0.lock().retain(|_, waiting| waiting.client != *client);
    }

    /// Fails all requests.
    pub(crate) fn close_all(&self) {
        self.0.lock().clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// The response to a client request; dropping it removes the request.
pub(crate) struct PendingResponse {
    id: Box<str>,
    requests: PendingRequests,
    response: oneshot::Receiver<ClientResponse>,
}

impl PendingResponse {
    /// Raw JSON of the request's id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The response; `None` if the request failed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<ClientResponse>> {
        Pin::new(&mut self.response).poll(cx).map(Result::ok)
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        self.requests.0.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_delivered_once_and_only_from_the_client_of_its_request() {
        let requests = PendingRequests::default();
        let mut pending = requests.expect_response([1; 16]).unwrap();
        let id = pending.id().to_owned();
        assert!(!requests.deliver(&[2; 16], &id, Ok("{}".into())), "another client");
        assert!(!requests.deliver(&[1; 16], "\"mcp-0\"", Ok("{}".into())), "another id");
        assert!(requests.deliver(&[1; 16], &id, Ok("{}".into())));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert_eq!(pending.poll(&mut cx), Poll::Ready(Some(Ok("{}".into()))));
        assert!(!requests.deliver(&[1; 16], &id, Ok("{}".into())), "only once");

        drop(pending);
        let dropped = requests.expect_response([1; 16]).unwrap();
        let mut closed = requests.expect_response([3; 16]).unwrap();
        drop(dropped);
        assert_eq!(requests.len(), 1);
        requests.close(&[3; 16]);
        assert_eq!(closed.poll(&mut cx), Poll::Ready(None));
    }
}
