//! What lasts longer than one request: the connection or session that it came in on. Transports implement [`Link`];
//! asking, logging and subscribing go through it.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use tokio::sync::{oneshot, watch};

use super::LogLevel;

/// A connection, or a session of the handshake era.
pub(crate) trait Link: Send + Sync {
    /// Makes room for the client's answer to a request of ours.
    ///
    /// # Errors
    /// Why this client cannot be asked.
    fn expect(&self) -> Result<Expected, &'static str>;

    /// Closes the connection that waits for this call, whose client comes back after `retry`; `false` where a client
    /// cannot come back.
    fn close_stream(&self, _retry: Duration) -> bool {
        false
    }

    /// Why clients cannot be asked at all here, where that is so.
    fn never(&self) -> Option<&'static str> {
        None
    }

    /// Fires when the connection, or the whole server, comes to its end.
    fn ending(&self) -> Ending;

    /// What a client of the handshake era has set; `None` where nothing is kept between requests.
    fn session(&self) -> Option<&dyn Session>;
}

/// What a client of the handshake era may set, until its session ends.
pub(crate) trait Session: Send + Sync {
    /// The least level of the log messages it wants, once it has said so.
    fn level(&self) -> Option<LogLevel>;

    /// Sets that level; `false` when there is no room to remember it.
    fn set_level(&self, level: LogLevel) -> bool;

    /// Wants to be told when that resource changes; `false` when there is no room to remember it.
    fn subscribe(&self, uri: &str) -> bool;

    /// No longer wants to be told.
    fn unsubscribe(&self, uri: &str);
}

/// Fires once, when a connection or a server ends; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Ending(watch::Sender<bool>);

impl Default for Ending {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Ending {
    pub(crate) fn fire(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn has_fired(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for it; forever if it never fires.
    pub(crate) async fn fired(&self) {
        let mut receiver = self.0.subscribe();
        // cannot close: this is one of its senders
        let _closed = receiver.wait_for(|fired| *fired).await;
    }
}

/// Raw JSON of the client's result, or of its error.
pub(crate) type Response = Result<Box<str>, Box<str>>;

/// Whom a request of ours went to: the session, or zeroes where there is only one client.
pub(crate) type Owner = [u8; 16];

/// Requests of ours that wait for their responses, by their ids; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mailbox(Arc<Mutex<HashMap<Box<str>, Waiting>>>);

#[derive(Debug)]
struct Waiting {
    owner: Owner,
    response: oneshot::Sender<Response>,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expects the answer of that client.
    ///
    /// # Errors
    /// There is no randomness for an id that nobody can guess.
    pub(crate) fn expect(&self, owner: Owner) -> Result<Expected, &'static str> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| "there is no randomness for the id of a request")?;
        let id: Box<str> = format!("\"mcp-{:032x}\"", u128::from_ne_bytes(random)).into();
        let (sender, response) = oneshot::channel();
        self.lock().insert(id.clone(), Waiting { owner, response: sender });
        Ok(Expected { id, mailbox: self.clone(), response })
    }

    /// Hands over a response, by the raw JSON of its id; `false` if no request of ours to that client has this id.
    pub(crate) fn deliver(&self, owner: &Owner, id: &str, response: Response) -> bool {
        let mut waiting = self.lock();
        if waiting.get(id).is_none_or(|waiting| waiting.owner != *owner) {
            return false;
        }
        if let Some(waiting) = waiting.remove(id) {
            // whoever asked may have given up in this moment
            let _gone = waiting.response.send(response);
        }
        true
    }

    /// Nobody will answer any more: whoever waits is told so.
    pub(crate) fn close(&self, owner: &Owner) {
        self.lock().retain(|_, waiting| waiting.owner != *owner);
    }

    /// Nobody at all will answer any more.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "elsewhere there is one client only"))]
    pub(crate) fn close_all(&self) {
        self.lock().clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// The place of one response that is waited for; dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct Expected {
    id: Box<str>,
    mailbox: Mailbox,
    response: oneshot::Receiver<Response>,
}

impl Expected {
    /// Raw JSON of the id that the request must have.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The response; `None` when there will be none.
    pub(crate) fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Response>> {
        Pin::new(&mut self.response).poll(cx).map(Result::ok)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.mailbox.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_reaches_only_whoever_was_asked_and_waits() {
        let mailbox = Mailbox::default();
        let mut expected = mailbox.expect([1; 16]).unwrap();
        let id = expected.id().to_owned();
        assert!(!mailbox.deliver(&[2; 16], &id, Ok("{}".into())), "another client");
        assert!(!mailbox.deliver(&[1; 16], "\"mcp-0\"", Ok("{}".into())), "another id");
        assert!(mailbox.deliver(&[1; 16], &id, Ok("{}".into())));
        let mut cx = TaskContext::from_waker(std::task::Waker::noop());
        assert_eq!(expected.poll(&mut cx), Poll::Ready(Some(Ok("{}".into()))));
        assert!(!mailbox.deliver(&[1; 16], &id, Ok("{}".into())), "only once");

        drop(expected);
        let dropped = mailbox.expect([1; 16]).unwrap();
        let mut closed = mailbox.expect([3; 16]).unwrap();
        drop(dropped);
        assert_eq!(mailbox.len(), 1);
        mailbox.close(&[3; 16]);
        assert_eq!(closed.poll(&mut cx), Poll::Ready(None));
    }
}
