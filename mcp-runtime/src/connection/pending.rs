//! Requests that wait for their responses, whichever side sent them.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::oneshot;

use crate::{crypto::random_id, sync::Mutex};

/// Raw JSON of a result, or of an error.
pub(crate) type ClientResponse = Result<Box<str>, Box<str>>;

/// Which of many clients a request went to: the identity of its session.
pub(crate) type ClientId = [u8; 16];

/// Requests that wait for their responses, by id; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingRequests(Arc<Mutex<HashMap<Box<str>, WaitingRequest>>>);

#[derive(Debug)]
struct WaitingRequest {
    client: ClientId,
    response: oneshot::Sender<ClientResponse>,
}

impl PendingRequests {
    /// Expects a response of that client, to a request with an id that cannot be guessed.
    ///
    /// # Errors
    /// The operating system has no randomness to give.
    pub(crate) fn expect(&self, client: ClientId) -> Result<PendingResponse, &'static str> {
        let id = random_id().map_err(|_| "there is no randomness for the id of a request")?;
        let id: Box<str> = format!("\"mcp-{id}\"").into();
        let (sender, response) = oneshot::channel();
        self.0.lock().insert(id.clone(), WaitingRequest { client, response: sender });
        Ok(PendingResponse { id, requests: self.clone(), response })
    }

    /// Hands over a response, by the raw JSON of its id; `false` if no request to that client has this id.
    pub(crate) fn deliver(&self, client: &ClientId, id: &str, response: ClientResponse) -> bool {
        let mut waiting = self.0.lock();
        if waiting.get(id).is_none_or(|waiting| waiting.client != *client) {
            return false;
        }
        if let Some(waiting) = waiting.remove(id) {
            // the requester may have given up in this moment
            let _gone = waiting.response.send(response);
        }
        true
    }

    /// No response of that client will come any more: its requests fail.
    pub(crate) fn close(&self, client: &ClientId) {
        self.0.lock().retain(|_, waiting| waiting.client != *client);
    }

    /// No response at all will come any more.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "elsewhere a connection has one client"))]
    pub(crate) fn close_all(&self) {
        self.0.lock().clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// A response that is waited for; dropping it gives up.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    id: Box<str>,
    requests: PendingRequests,
    response: oneshot::Receiver<ClientResponse>,
}

impl PendingResponse {
    /// Raw JSON of the id that the request has.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The response; `None` when there will be none.
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
    fn a_response_reaches_only_the_request_that_its_client_was_sent() {
        let requests = PendingRequests::default();
        let mut expected = requests.expect([1; 16]).unwrap();
        let id = expected.id().to_owned();
        assert!(!requests.deliver(&[2; 16], &id, Ok("{}".into())), "another client");
        assert!(!requests.deliver(&[1; 16], "\"mcp-0\"", Ok("{}".into())), "another id");
        assert!(requests.deliver(&[1; 16], &id, Ok("{}".into())));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert_eq!(expected.poll(&mut cx), Poll::Ready(Some(Ok("{}".into()))));
        assert!(!requests.deliver(&[1; 16], &id, Ok("{}".into())), "only once");

        drop(expected);
        let dropped = requests.expect([1; 16]).unwrap();
        let mut closed = requests.expect([3; 16]).unwrap();
        drop(dropped);
        assert_eq!(requests.len(), 1);
        requests.close(&[3; 16]);
        assert_eq!(closed.poll(&mut cx), Poll::Ready(None));
    }
}
