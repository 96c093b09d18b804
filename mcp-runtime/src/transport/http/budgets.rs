//! The limits that the requests of one endpoint share: how many run, how many streams are open, and how many bytes are
//! buffered. A request that exceeds one is refused as busy.

use std::sync::Arc;

use super::http_error::HttpError;
use crate::{
    admission::{Budget, Permit},
    blocking,
    config::HttpOptions,
    dispatch::Calls,
};

/// The budgets of one endpoint.
#[derive(Debug)]
pub(super) struct Budgets {
    /// Requests that run concurrently.
    pub(super) requests: Arc<Budget>,
    /// Responses and notifications that are read while `requests` is exhausted.
    messages: Arc<Budget>,
    /// Calls that continue after their client has disconnected.
    detached: Arc<Budget>,
    /// Streams that are opened with GET.
    pub(super) streams: Arc<Budget>,
    /// Standalone streams that wait for their clients to reconnect.
    pub(super) waiting: Arc<Budget>,
    /// Bytes of request bodies that are not complete yet.
    pub(super) bodies: Arc<Budget>,
    /// Bytes of messages that clients have not read yet.
    pub(super) outbound: Arc<Budget>,
}

/// The permit to read one message.
pub(super) enum MessagePermit {
    /// Taken from the requests that run concurrently; the message's call keeps it.
    Request(Permit),
    /// For a response or a notification while `requests` is exhausted: running calls may be waiting for it.
    Message { _permit: Permit },
}

impl MessagePermit {
    /// The permit for the message's request.
    ///
    /// # Errors
    /// Too many requests are running.
    pub(super) fn into_request_permit(self) -> Result<Permit, HttpError> {
        match self {
            Self::Request(permit) => Ok(permit),
            Self::Message { .. } => Err(HttpError::busy()),
        }
    }
}

/// Batch that are read while the budget of requests is exhausted.
const MAX_MESSAGES: usize = 64;

impl Budgets {
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            requests: Budget::new(options.max_requests),
            messages: Budget::new(MAX_MESSAGES),
            detached: Budget::new(options.max_detached),
            streams: Budget::new(options.max_streams),
            waiting: Budget::new(options.max_waiting),
            bodies: Budget::new(options.max_unfinished_bytes),
            outbound: Budget::new(options.max_unread_bytes),
        }
    }

    /// The permit for a message that has not been read yet.
    ///
    /// # Errors
    /// Too many messages are being served.
    pub(super) fn admit(&self) -> Result<MessagePermit, HttpError> {
        let request = self.requests.try_acquire(1).map(MessagePermit::Request);
        request
            .or_else(|| self.messages.try_acquire(1).map(|permit| MessagePermit::Message { _permit: permit }))
            .ok_or_else(HttpError::busy)
    }

    /// Permits for further requests of one message.
    ///
    /// # Errors
    /// Too many requests are running.
    pub(super) fn admit_more(&self, requests: usize) -> Result<Vec<Permit>, HttpError> {
        let permits = (0..requests).map(|_| self.requests.try_acquire(1));
        permits.collect::<Option<_>>().ok_or_else(HttpError::busy)
    }

    /// Lets calls continue without their client, with permits of `detached`; `false` if too many do already.
    pub(super) fn detach(&self, calls: &mut Calls) -> bool {
        calls.running_mut().all(|running| match self.detached.try_acquire(1) {
            Some(permit) => {
                running.pending.hold_instead(blocking::CallPermit::Budget(permit));
                true
            }
            None => false,
        })
    }
}
