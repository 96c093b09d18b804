//! The interface to the state of sessions at other replicas. Only a program with a store that replicas share contains an
//! implementation, because the builder's method that sets the store names it.

use std::sync::Arc;

use http::Response;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{
    event_log::{EventLog, Origin},
    event_sender::EventSender,
    resumable::StreamSession,
    session_id::{Session, SessionUid},
    sessions::Sessions,
    shared_sessions::Listening,
};
use crate::{
    core::{
        admission::Owner,
        connection::{ClientId, ClientResponse, SubscribeError},
        dispatch::OpenElsewhere,
        protocol::LogLevel,
        server::Server,
        spawn::spawn,
        store::StoreFuture,
    },
    transport::http::{endpoint::Endpoint, http_error::HttpError, response_body::ResponseBody},
};

/// Makes those of a server; an option has it.
#[derive(Clone, Copy)]
pub(super) struct OpenReplicas(pub(super) fn(&Server) -> Option<Arc<dyn OtherReplicas>>);

/// The other replicas of a server, as the sessions of one endpoint see them.
pub(super) trait OtherReplicas: Send + Sync {
    /// Identifies this process.
    fn process(&self) -> &str;

    /// Lets other processes ask for what these sessions have here.
    fn answer_for(self: Arc<Self>, sessions: &Arc<Sessions>);

    /// The id of a new request to the client of a session; `None` if it cannot be sealed.
    fn request_id(&self, uid: &SessionUid) -> Option<String>;

    /// Passes a response on to the replica that waits for it, if another one does.
    fn pass_response(
        self: Arc<Self>,
        uid: SessionUid,
        id: &str,
        response: ClientResponse,
        owner: Owner,
    ) -> Option<PassedOn>;

    /// Keeps a response that cannot be delivered while the store is away, and delivers it when it is back; `false` if no
    /// replica waits for it, or too much is kept.
    fn keep_response(
        self: Arc<Self>,
        uid: SessionUid,
        id: &str,
        response: ClientResponse,
        owner: Owner,
    ) -> bool;

    /// Tells the other replicas that a request is cancelled; `id` is raw JSON.
    fn pass_cancellation(self: Arc<Self>, uid: SessionUid, id: &str) -> Option<PassedOn>;

    /// Tells the other replicas that a session has ended.
    fn tell_ended<'a>(&'a self, uid: &'a SessionUid) -> StoreFuture<'a, ()>;

    /// Tells a response of another process, which carries a stream, what has happened to the stream.
    fn tell_follower<'a>(
        &'a self,
        follower: &'a Follower,
        uid: &'a SessionUid,
        stream: &'a str,
        news: FollowNews,
    ) -> StoreFuture<'a, ()>;

    /// Sends the events of a stream as they are logged, until it ends, its client disconnects or the server stops.
    fn follow(
        self: Arc<Self>,
        following: Following,
        sender: EventSender,
        ended: CancellationToken,
    ) -> StoreFuture<'static, ()>;

    /// Sets the log level of a session for all replicas; `false` if the store does not take it.
    fn share_level<'a>(
        &'a self,
        session: &'a Session,
        owner: &'a Owner,
        level: LogLevel,
    ) -> StoreFuture<'a, bool>;

    /// Subscribes a session to a resource for all replicas, or ends its subscription.
    fn share_subscription<'a>(
        self: Arc<Self>,
        session: &'a Session,
        owner: &'a Owner,
        uri: &'a str,
        is_on: bool,
    ) -> StoreFuture<'a, Result<(), SubscribeError>>;

    /// Has this process get the changes of a session, from another one if that has them, for the streams that are open here.
    /// If the client `comes_back`, and no process has collected them, it is told that everything has changed.
    fn claim_changes<'a>(
        &'a self,
        data: &'a StreamSession,
        of: Listening<'a>,
        comes_back: bool,
    ) -> StoreFuture<'a, Result<(), HttpError>>;

    /// Finds out whether this process still has the changes of a session, and gets them again if no other one has them.
    /// `subscribe` makes streams that were idle get them. Returns whether it has them.
    fn check_changes<'a>(
        &'a self,
        data: &'a StreamSession,
        of: Listening<'a>,
        subscribe: &'a (dyn Fn() -> bool + Send + Sync),
    ) -> StoreFuture<'a, Result<bool, HttpError>>;

    /// Tells other processes that have streams of a session that the client here has disconnected.
    fn tell_idle<'a>(&'a self, uid: &'a SessionUid) -> StoreFuture<'a, ()>;

    /// Says that this process has the changes of a session no more, unless a stream is open.
    fn leave_changes<'a>(&'a self, data: &'a StreamSession, of: Listening<'a>) -> StoreFuture<'a, ()>;
}

/// The response to a message that is passed on.
pub(super) type PassedOn = StoreFuture<'static, Response<ResponseBody>>;

/// A response of another process, which carries a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Follower {
    pub(super) process: String,
    /// Of the responses of that process: a notice for an earlier one of the stream may arrive late.
    pub(super) number: u64,
}

/// A notice from a process to the one that follows its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FollowNews {
    /// The log has another event.
    Appended,
    /// The response is to be closed; the client reconnects after this many milliseconds.
    Closed { retry: u64 },
    /// The client has resumed the stream elsewhere.
    Replaced,
}

/// The stream of a call that runs in another process, for a client that has resumed it here.
pub(super) struct Following {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) uid: SessionUid,
    pub(super) owner: Owner,
    pub(super) stream: Box<str>,
    pub(super) log: EventLog,
    pub(super) origin: Origin,
    /// The number of the last event that the client has received.
    pub(super) received: u64,
    /// Whether an event without a message can be sent.
    pub(super) has_empty_events: bool,
}

/// Passes on what a batch contains.
pub(super) struct PassOn<'a> {
    pub(super) replicas: &'a Arc<dyn OtherReplicas>,
    pub(super) owner: Owner,
}

impl OpenElsewhere for PassOn<'_> {
    fn pass_response(&self, client: &ClientId, id: &str, response: ClientResponse) -> bool {
        let passed = self.replicas.clone().pass_response(*client, id, response, self.owner.clone());
        let is_expected = passed.is_some();
        if let Some(passed) = passed {
            spawn(async move { drop(passed.await) });
        }
        is_expected
    }

    fn pass_cancellation(&self, client: &ClientId, id: &str) {
        if let Some(passed) = self.replicas.clone().pass_cancellation(*client, id) {
            spawn(async move { drop(passed.await) });
        }
    }
}
