//! The sending half of an event stream whose events are written by its sender, since they have ids or names.

use std::{ops::Deref, sync::Arc};

use crate::{
    core::{
        admission::{Owner, Permit, Shares},
        connection::{Outbound, Receiver},
    },
    transport::http::{response_body::ResponseBody, sse::StreamDeadline},
};

/// Sends events to one HTTP response, which ends when the last clone is dropped.
#[derive(Clone)]
pub(super) struct EventSender(Arc<EventChannel>);

struct EventChannel(Arc<Outbound>);

impl Drop for EventChannel {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Deref for EventSender {
    type Target = Outbound;

    fn deref(&self) -> &Outbound {
        &self.0.0
    }
}

impl EventSender {
    /// A sender, and the body of its response; `unread`: bytes that clients have not read yet; the response
    /// breaks off when `end` completes, if there is one. `permit` is that of a stream that was opened with GET: the body holds it, since
    /// the client may read for long after the last event was sent.
    pub(super) fn new(
        unread: &Arc<Shares>,
        owner: Owner,
        permit: Option<Permit>,
        end: Option<StreamDeadline>,
    ) -> (Self, ResponseBody) {
        let outbound = Outbound::new(unread.clone(), owner);
        let receiver = Receiver::new(outbound.clone());
        (Self(Arc::new(EventChannel(outbound))), ResponseBody::from_events(receiver, end).holding(permit))
    }

    /// Whether both are clones of one sender.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
