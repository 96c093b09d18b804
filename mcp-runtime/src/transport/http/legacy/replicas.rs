//! Sessions across replicas: the response to a request of the server reaches the process that waits for it, a cancellation
//! the process that runs the call, and the end of a session all of them. The id of such a request is sealed for its session
//! and names the process, so that forged ids are refused without asking another process. A client that resumes the stream
//! of a call gets the logged events from any replica, and an error if the process that runs the call has stopped.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    event_log::{Logged, LoggedEvents},
    event_sender::EventSender,
    kept_responses::{Attempt, KeptResponses},
    other_replicas::{FollowNews, Follower, Following, OtherReplicas, PassedOn},
    resumable::{StreamSession, store_key},
    session_id::{Session, SessionUid},
    sessions::Sessions,
    shared_sessions::{Listener, Listening, SessionChange, SharedSession},
};
use crate::{
    core::{
        admission::Owner,
        changes::Change,
        connection::{ClientResponse, PendingRequests, SubscribeError},
        crypto::Seal,
        jsonrpc::{ProtocolError, RequestId, write_error_response},
        protocol::{ItemList, LogLevel},
        server::{PeerHandler, Peers, Server, WeakServer},
        spawn::spawn,
        store::{StoreError, StoreFuture},
        sync::Mutex,
    },
    transport::http::{
        http_error::HttpError,
        replay::{replay_cost, write_event_id},
        response_body::empty_response,
        sse::write_event,
    },
};

/// Purpose of the key that seals the ids of requests to clients.
const PURPOSE: &str = "mcp-runtime client request 1";

/// The other replicas of a server, as the sessions of one endpoint see them.
struct Replicas {
    peers: Arc<dyn Peers>,
    server: WeakServer,
    /// Seals the ids of requests to clients.
    ids: Seal,
    /// The streams of other processes that clients have resumed here.
    followed: Mutex<HashMap<FollowedKey, Arc<FollowedStream>>>,
    /// How many there have been.
    followed_before: AtomicU64,
    /// The sessions that other processes ask about.
    sessions: OnceLock<Weak<Sessions>>,
    /// Responses that wait for the store.
    kept: KeptResponses,
}

/// A session, and the name of a stream.
type FollowedKey = (SessionUid, Box<str>);

/// The notices that this process, where a client has resumed a stream, got from the process that runs the stream.
#[derive(Default)]
struct FollowedStream {
    /// [`Follower::number`].
    number: u64,
    /// Why the response here must end.
    end: Mutex<Option<FollowNews>>,
    told: Notify,
}

/// How often the process that runs a stream is asked whether it does.
const FOLLOW_AGAIN: Duration = Duration::from_secs(4);
/// After this many unanswered questions in a row, of two seconds each, a process counts as stopped. That is longer than
/// reconnecting to the store takes after an outage.
const UNANSWERED: u32 = 4;

/// How often subscriptions are read that were changed in an unknown order.
const SYNC_ATTEMPTS: usize = 10;
/// After a failure.
const SYNC_RETRY: Duration = Duration::from_secs(1);

/// A question from one process to another.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question<'a> {
    /// To deliver the response to a request that it has sent to a client.
    Response {
        session: Cow<'a, str>,
        /// Raw JSON, like the response.
        #[serde(borrow)]
        id: &'a RawValue,
        is_result: bool,
        #[serde(borrow)]
        response: &'a RawValue,
    },
    /// To leave the changes of a session to the process that asks, and to answer with those that it has not sent.
    Release { session: Cow<'a, str> },
    /// Whether it has the changes of a session, and a client that is connected.
    Listening { session: Cow<'a, str> },
    /// To tell the process of what happens to a stream, whose client has resumed it there.
    Follow { session: Cow<'a, str>, stream: Cow<'a, str>, follower: Follower },
}

/// A notice from one process to others.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Notice<'a> {
    /// The client has cancelled a request.
    Cancelled {
        session: Cow<'a, str>,
        #[serde(borrow)]
        id: &'a RawValue,
    },
    /// The client has ended its session.
    Ended { session: Cow<'a, str> },
    /// The client has set a log level.
    Level { session: Cow<'a, str>, owner: Cow<'a, str>, level: Cow<'a, str> },
    /// The client has subscribed to a resource, or ended a subscription; what is stored of it has that version.
    Subscription { session: Cow<'a, str>, uri: Cow<'a, str>, is_on: bool, version: u64 },
    /// The client of the process that has the changes of a session has disconnected; another one may have it.
    Idle { session: Cow<'a, str> },
    /// Changes were lost between two processes that have had them.
    Missed { session: Cow<'a, str> },
    /// Something has happened to a stream; only the process that follows it is told, with the number of its response.
    Stream { session: Cow<'a, str>, stream: Cow<'a, str>, number: u64, news: FollowNews },
}

/// A change that a process has not sent to the client of a session.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UnsentChange {
    Updated(String),
    #[serde(untagged)]
    List(ItemList),
}

impl UnsentChange {
    /// Sessions of older clients are told of no other changes.
    fn of(change: Change) -> Option<Self> {
        Some(match change {
            Change::List(list) => Self::List(list),
            Change::Updated(uri) => Self::Updated((*uri).into()),
            Change::Subject(_) => return None,
        })
    }
}

impl From<UnsentChange> for Change {
    fn from(change: UnsentChange) -> Self {
        match change {
            UnsentChange::List(list) => Self::List(list),
            UnsentChange::Updated(uri) => Self::Updated(uri.into()),
        }
    }
}

/// The answer to a question: that it was done. The answer is empty if there was nothing to do it with.
const DONE: &[u8] = b"1";

/// The session of a key, see [`store_key`].
fn uid_of_key(key: &str) -> Option<SessionUid> {
    URL_SAFE_NO_PAD.decode(key).ok()?.try_into().ok()
}

impl Replicas {
    fn sessions(&self) -> Option<Arc<Sessions>> {
        self.sessions.get()?.upgrade()
    }

    /// The process that has sent a request with that id, which is raw JSON, to the client of that session.
    fn process_of(&self, uid: &SessionUid, id: &str) -> Option<String> {
        let id = PendingRequests::id_without_prefix(id)?;
        String::from_utf8(self.ids.open(id.as_bytes(), uid)?.plain).ok()
    }

    /// Asks the process that waits for a response to take it; `None` if it does not answer, and otherwise whether it has.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn ask_for_response(
        &self,
        process: &str,
        uid: &SessionUid,
        (id, response): (&str, &ClientResponse),
        owner: &Owner,
    ) -> Result<Option<bool>, StoreError> {
        let (is_result, text) = match response {
            Ok(result) => (true, result),
            Err(error) => (false, error),
        };
        let (id, response) = (serde_json::from_str(id)?, serde_json::from_str(text)?);
        let session = Cow::Owned(store_key(uid).into());
        let question = serde_json::to_vec(&Question::Response { session, id, is_result, response })?;
        let answer = self.peers.ask(process, &question, owner).await?;
        Ok(answer.map(|answer| answer == DONE))
    }

    /// Attempts to deliver a response that was kept.
    async fn deliver_kept(
        &self,
        uid: &SessionUid,
        (id, response): (&str, &ClientResponse),
        owner: &Owner,
    ) -> Attempt {
        let Some(sessions) = self.sessions() else { return Attempt::Done };
        let Some(shared) = &sessions.shared else { return Attempt::Done };
        match shared.get(uid).await {
            Ok(SharedSession { has_ended: true, .. }) => return Attempt::Done,
            Err(_) if !shared.allows_unchecked => return Attempt::StoreAway,
            _ => {}
        }
        let Some(process) = self.process_of(uid, id) else { return Attempt::Done };
        if process == self.peers.id() {
            let _nothing_waits = sessions.pending.deliver(uid, id, response.clone());
            return Attempt::Done;
        }
        match self.ask_for_response(&process, uid, (id, response), owner).await {
            Ok(Some(_)) => Attempt::Done,
            Ok(None) => Attempt::Unanswered,
            Err(_) => Attempt::StoreAway,
        }
    }

    async fn tell_all(&self, notice: &Notice<'_>) -> Result<(), HttpError> {
        let notice = serde_json::to_string(notice).map_err(|_| HttpError::sessions_unavailable())?;
        self.peers.tell_all(&notice).await.map_err(|error| {
            tracing::debug!(%error, "other replicas cannot be told");
            HttpError::sessions_unavailable()
        })
    }
}

impl Replicas {
    /// Tells the other replicas of a log level.
    async fn tell_level(&self, uid: &SessionUid, owner: &Owner, level: LogLevel) {
        let session = Cow::Owned(store_key(uid).into());
        let (owner, level) = (Cow::Borrowed(&**owner.as_str()), level.as_str().into());
        // the next request there finds it in the store
        let _told = self.tell_all(&Notice::Level { session, owner, level }).await;
    }

    /// Has another process leave the changes of a session to this one. Returns those that it has not sent; `None` if it does
    /// not answer.
    async fn release(&self, process: &str, uid: &SessionUid, owner: &Owner) -> Option<Vec<Change>> {
        let session = Cow::Owned(store_key(uid).into());
        let question = serde_json::to_vec(&Question::Release { session }).ok()?;
        let answer = self.peers.ask(process, &question, owner).await.ok()??;
        if answer.is_empty() {
            // it has had none for a while
            return None;
        }
        let unsent: Vec<UnsentChange> = serde_json::from_slice(&answer).ok()?;
        Some(unsent.into_iter().map(Change::from).collect())
    }

    /// Tells the client of a session here that everything has changed, which may be so.
    fn tell_everything(&self, data: &StreamSession) {
        if let Some(server) = self.server.upgrade() {
            server.publish_everything(Some(data.filter()));
        }
    }

    /// Whether another process has the changes of a session, and its client.
    async fn is_listening(&self, process: &str, uid: &SessionUid, owner: &Owner) -> Result<bool, StoreError> {
        let session = Cow::Owned(store_key(uid).into());
        let question = serde_json::to_vec(&Question::Listening { session })?;
        Ok(self.peers.ask(process, &question, owner).await?.is_some_and(|answer| answer == DONE))
    }

    /// Sets the log level of a session for all replicas; `false` if the store does not take it.
    async fn set_level(&self, session: &Session, owner: &Owner, level: LogLevel) -> bool {
        let Some(sessions) = self.sessions() else { return false };
        let Some(shared) = &sessions.shared else { return false };
        let of = Listening { uid: &session.uid, expires: session.expires, owner };
        match shared.change(of, |session| session.level = Some(level)).await {
            Ok(SessionChange::Done) => {
                sessions.told_levels.fetch_add(1, Ordering::AcqRel);
                self.tell_level(&session.uid, owner, level).await;
                sessions.table.set_level(&session.uid, owner, level)
            }
            Ok(_) => false,
            Err(error) => {
                tracing::debug!(%error, "a log level cannot be stored");
                false
            }
        }
    }

    /// Subscribes a session to a resource for all replicas, or ends its subscription. The process that has the changes of the
    /// session is told before the client is answered, and so before any change that is reported later.
    ///
    /// # Errors
    /// It exceeds a limit, or the store cannot be reached.
    async fn set_subscription(
        self: &Arc<Self>,
        session: &Session,
        owner: &Owner,
        uri: &str,
        is_on: bool,
    ) -> Result<(), SubscribeError> {
        let unavailable = |error: StoreError| {
            tracing::debug!(%error, "a subscription cannot be stored");
            SubscribeError::Unavailable
        };
        let Some(sessions) = self.sessions() else { return Err(SubscribeError::NoSession) };
        let Some(shared) = &sessions.shared else { return Err(SubscribeError::NoSession) };
        let of = Listening { uid: &session.uid, expires: session.expires, owner };
        let changed = shared.subscribe(of, uri, is_on).await.map_err(unavailable)??;
        self.take_subscription(&session.uid, uri, is_on, changed.version);
        if changed.after.process.as_deref() == Some(self.peers.id()) {
            return Ok(());
        }
        // also if none is known: a store that was emptied does not know it
        let notice = Notice::Subscription {
            session: Cow::Owned(store_key(&session.uid).into()),
            uri: uri.into(),
            is_on,
            version: changed.version,
        };
        self.tell_all(&notice).await.map_err(|_| SubscribeError::Unavailable)
    }

    /// Takes over what replicas share of a subscription, if this process has the changes of the session.
    fn take_subscription(self: &Arc<Self>, uid: &SessionUid, uri: &str, is_on: bool, version: u64) {
        let Some(sessions) = self.sessions() else { return };
        let Some(data) = sessions.table.data(uid).filter(|data| data.standalone.is_subscribed()) else {
            return;
        };
        if data.take_subscription(uri, is_on, version) {
            let (replicas, uid) = (self.clone(), *uid);
            spawn(async move {
                for _ in 0..SYNC_ATTEMPTS {
                    if replicas.take_subscriptions(&uid, &data).await.is_ok() {
                        return;
                    }
                    sleep(SYNC_RETRY).await;
                }
            });
        }
    }

    /// Takes over all subscriptions of a session; returns whether there is a new one.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn take_subscriptions(&self, uid: &SessionUid, data: &StreamSession) -> Result<bool, StoreError> {
        let Some(sessions) = self.sessions() else { return Ok(false) };
        let Some(shared) = &sessions.shared else { return Ok(false) };
        loop {
            let told = data.told_subscriptions();
            let (listener, version) = shared.listener(uid).await?;
            // again only if its client has changed a subscription meanwhile
            if let Some(is_new) = data.take_subscriptions(&listener.uris, version, told) {
                return Ok(is_new);
            }
        }
    }

    /// Has this process get the changes of a session, from another one if that has them, for the streams that are open here.
    /// If the client `comes_back`, and no process has collected them, it is told that everything has changed.
    ///
    /// # Errors
    /// The store cannot be reached, or the session has ended.
    async fn claim(
        &self,
        data: &StreamSession,
        of: Listening<'_>,
        comes_back: bool,
    ) -> Result<(), HttpError> {
        let Some(sessions) = self.sessions() else { return Ok(()) };
        let Some(shared) = &sessions.shared else { return Ok(()) };
        let _claiming = data.claiming.lock().await;
        let unavailable = |error: StoreError| {
            tracing::debug!(%error, "what replicas share of a session cannot be reached");
            HttpError::sessions_unavailable()
        };
        let process = self.peers.id();
        let claimed = shared.change_listener(of, |listener| {
            if *listener == Listener::default() {
                // the store was emptied, if there is anything here
                listener.uris = data.filter().uris().iter().map(|uri| (**uri).to_owned()).collect();
            }
            listener.process = Some(process.to_owned());
            Ok(())
        });
        let claimed = match claimed.await {
            Ok(Ok(claimed)) => claimed,
            // the streams are there, but others do not know it
            Ok(Err(error)) => {
                tracing::debug!(%error, "the standalone streams of a session are known to this process only");
                return Ok(());
            }
            Err(_) if shared.allows_unchecked => return Ok(()),
            Err(error) => return Err(unavailable(error)),
        };
        // a request that ends it from now on tells this process as well
        if shared.get(of.uid).await.map_err(unavailable)?.has_ended {
            sessions.end_here(of.uid);
            return Err(HttpError::unknown_session());
        }
        let is_new = self.take_subscriptions(of.uid, data).await.map_err(unavailable)?;
        let has_missed = match claimed.before.process {
            Some(previous) if previous != process => match self.release(&previous, of.uid, of.owner).await {
                Some(unsent) => !data.standalone.carry_over(unsent),
                None => true,
            },
            // a subscription of which this process was not told
            Some(_) => comes_back || is_new,
            None => comes_back,
        };
        if !has_missed {
            return Ok(());
        }
        if data.standalone.is_subscribed() {
            self.tell_everything(data);
        } else {
            // the next one has got them meanwhile, without what this one should have sent
            let session = Cow::Owned(store_key(of.uid).into());
            self.tell_all(&Notice::Missed { session }).await?;
        }
        Ok(())
    }

    /// Finds out whether this process still has the changes of a session, and gets them again if no other one has them.
    /// `subscribe` makes streams that were idle get them. Returns whether it has them.
    ///
    /// # Errors
    /// The store cannot be reached, or the session has ended.
    async fn check(
        &self,
        data: &StreamSession,
        of: Listening<'_>,
        subscribe: &(dyn Fn() -> bool + Send + Sync),
    ) -> Result<bool, HttpError> {
        let Some(sessions) = self.sessions() else { return Ok(true) };
        let Some(shared) = &sessions.shared else { return Ok(true) };
        let unavailable = |error: StoreError| {
            tracing::debug!(%error, "what replicas share of a session cannot be reached");
            HttpError::sessions_unavailable()
        };
        let is_subscribed = data.standalone.is_subscribed();
        let (listener, _) = shared.listener(of.uid).await.map_err(unavailable)?;
        if is_subscribed && !data.standalone.is_subscribed() {
            // the state that was read is older
            return Ok(false);
        }
        let other = listener.process.filter(|process| process != self.peers.id());
        if let Some(other) = &other {
            if is_subscribed {
                // it has got them while this process was cut off, and has told its client that it may have missed some
                drop(data.standalone.release());
                return Ok(false);
            }
            if self.is_listening(other, of.uid, of.owner).await.map_err(unavailable)? {
                return Ok(false);
            }
        }
        if !subscribe() {
            return Ok(false);
        }
        self.claim(data, of, false).await?;
        Ok(true)
    }

    /// Tells other processes that have streams of a session that the client here has disconnected.
    async fn tell_all_idle(&self, uid: &SessionUid) {
        // those ask now and then anyway
        let _told = self.tell_all(&Notice::Idle { session: Cow::Owned(store_key(uid).into()) }).await;
    }

    /// Says that this process has the changes of a session no more, unless a stream is open.
    async fn leave(&self, data: &StreamSession, of: Listening<'_>) {
        let Some(sessions) = self.sessions() else { return };
        let Some(shared) = &sessions.shared else { return };
        let _claiming = data.claiming.lock().await;
        if !data.standalone.is_empty() {
            return;
        }
        data.leave_subscriptions();
        let left = shared.change_listener(of, |listener| {
            if listener.process.as_deref() == Some(self.peers.id()) {
                listener.process = None;
            }
            Ok(())
        });
        if let Err(error) = left.await {
            tracing::debug!(%error, "the standalone streams of a session are still known to the store");
        }
    }
}

impl FollowedStream {
    fn tell(&self, news: FollowNews) {
        if news != FollowNews::Appended {
            *self.end.lock() = Some(news);
        }
        self.told.notify_one();
    }
}

/// Stops to follow a stream.
struct Registered<'a>(&'a Replicas, FollowedKey, Arc<FollowedStream>);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut followed = self.0.followed.lock();
        if followed.get(&self.1).is_some_and(|current| Arc::ptr_eq(current, &self.2)) {
            followed.remove(&self.1);
        }
    }
}

impl Following {
    async fn run(self, replicas: &Replicas, sender: EventSender, ended: CancellationToken) {
        let shutdown = self.endpoint.shutdown.clone();
        tokio::select! {
            biased;
            () = self.follow(replicas, &sender) => {}
            () = sender.wait_until_disconnected() => {}
            () = ended.cancelled() => {}
            () = shutdown.cancelled() => {}
        }
    }

    async fn follow(&self, replicas: &Replicas, sender: &EventSender) {
        let number = replicas.followed_before.fetch_add(1, Ordering::Relaxed);
        let followed = Arc::new(FollowedStream { number, ..FollowedStream::default() });
        let key = (self.uid, self.stream.clone());
        if let Some(previous) = replicas.followed.lock().insert(key.clone(), followed.clone()) {
            previous.tell(FollowNews::Replaced);
        }
        let _registered = Registered(replicas, key, followed.clone());
        let (mut received, mut unanswered) = (self.received, 0);
        let mut ask_at = Instant::now();
        loop {
            let asks = ask_at <= Instant::now();
            let mut is_gone = false;
            if asks {
                match self.ask(replicas, number).await {
                    Ok(Some(runs)) => {
                        (is_gone, unanswered) = (!runs, 0);
                        ask_at = Instant::now() + FOLLOW_AGAIN;
                    }
                    Ok(None) => {
                        unanswered += 1;
                        is_gone = unanswered >= UNANSWERED;
                    }
                    // the store is away: the client comes back
                    Err(()) => return,
                }
            }
            // after that: what was logged before the process has answered is there
            match self.send_logged(sender, received).await {
                Some(SentEvents { last, ended: false }) => received = last,
                _ => return,
            }
            if is_gone {
                // it may have logged the end of the stream meanwhile, and then this is sent
                if self.log_errors(received).await.is_none() {
                    return;
                }
                continue;
            }
            if unanswered > 0 {
                continue;
            }
            if let Some(end) = *followed.end.lock() {
                if let FollowNews::Closed { retry } = end
                    && self.has_empty_events
                {
                    let name = &self.stream;
                    let event = format!("id: {name}.{received}\nretry: {retry}\ndata: \n\n");
                    sender.send_now(event.into_bytes());
                }
                return;
            }
            tokio::select! {
                () = followed.told.notified() => {}
                () = sleep_until(ask_at) => {}
            }
        }
    }

    /// Asks whether the process runs the stream; `None` if it does not answer.
    async fn ask(&self, replicas: &Replicas, number: u64) -> Result<Option<bool>, ()> {
        let question = Question::Follow {
            session: Cow::Owned(store_key(&self.uid).into()),
            stream: (&*self.stream).into(),
            follower: Follower { process: replicas.peers.id().to_owned(), number },
        };
        let question = serde_json::to_vec(&question).map_err(drop)?;
        let answer = replicas.peers.ask(&self.origin.process, &question, &self.owner).await;
        let answer = answer.map_err(|error| tracing::debug!(%error, "a stream cannot be followed"))?;
        Ok(answer.map(|answer| answer == DONE))
    }

    /// Sends the events after a number; `None` if the stream cannot be sent any more.
    async fn send_logged(&self, sender: &EventSender, mut received: u64) -> Option<SentEvents> {
        let LoggedEvents { events, ended, last, .. } = self.log.read_after(received).await.ok()??;
        let mut permit = self.endpoint.budgets.outbound.acquire_last(&self.owner, replay_cost(&events))?;
        for event in events {
            let held = permit.split(replay_cost(std::slice::from_ref(&event)));
            received = event.number;
            if event.message().is_empty() {
                continue;
            }
            if !sender.wait_for_capacity().await {
                return None;
            }
            let mut out = Vec::with_capacity(event.message().len() + 64);
            write_event_id(&mut out, &self.stream, event.number);
            write_event(&mut out, event.message());
            if !sender.send(out, Some(held)).await {
                return None;
            }
        }
        Some(SentEvents { last: received.max(last), ended })
    }

    /// Logs an error for each request whose process is gone, as the last events of the stream; `None` if that fails.
    async fn log_errors(&self, last: u64) -> Option<()> {
        let mut number = last;
        let requests = &self.origin.requests;
        for (n, id) in requests.iter().enumerate() {
            number += 1;
            let error = ProtocolError::internal(
                "the process that ran the call has stopped\nwhat the call has done by then is not known",
            );
            let mut message = Vec::with_capacity(192);
            write_error_response(&mut message, Some(id.get()), &error);
            let entry = self.log.encode(&message, n + 1 == requests.len());
            match self.log.append(number, &entry).await.ok()? {
                Logged::Stored => {}
                // the process is there after all, or another one has done the same
                Logged::Overtaken => return Some(()),
            }
        }
        (!requests.is_empty()).then_some(())
    }
}

/// The part of a log that was sent.
struct SentEvents {
    /// The number of the last event.
    last: u64,
    /// Whether the stream ends with it.
    ended: bool,
}

/// The other replicas of a server, if they share a store.
pub(super) fn open_replicas(server: &Server) -> Option<Arc<dyn OtherReplicas>> {
    let replicas = Replicas {
        peers: server.peers()?,
        server: server.downgrade(),
        ids: Seal::new(server.keys(), PURPOSE),
        followed: Mutex::default(),
        followed_before: AtomicU64::new(0),
        sessions: OnceLock::new(),
        kept: KeptResponses::new(server.options().limits.share_percent),
    };
    Some(Arc::new(replicas))
}

impl OtherReplicas for Replicas {
    fn process(&self) -> &str {
        self.peers.id()
    }

    fn answer_for(self: Arc<Self>, sessions: &Arc<Sessions>) {
        // once for each endpoint
        let _unset = self.sessions.set(Arc::downgrade(sessions));
        let handler: Weak<Self> = Arc::downgrade(&self);
        self.peers.add_handler(handler);
    }

    fn request_id(&self, uid: &SessionUid) -> Option<String> {
        self.ids.seal(self.peers.id().as_bytes(), uid).ok()
    }

    fn pass_response(
        self: Arc<Self>,
        uid: SessionUid,
        id: &str,
        response: ClientResponse,
        owner: Owner,
    ) -> Option<PassedOn> {
        let process = self.process_of(&uid, id).filter(|process| process != self.peers.id())?;
        let id = id.to_owned();
        Some(Box::pin(async move {
            match self.ask_for_response(&process, &uid, (&id, &response), &owner).await {
                Ok(Some(true)) => empty_response(StatusCode::ACCEPTED),
                Ok(Some(false)) => HttpError::unexpected_response().into(),
                Ok(None) => HttpError::replica_unavailable().into(),
                Err(error) => {
                    tracing::debug!(%error, "a response cannot be passed on to another replica now");
                    match self.keep_response(uid, &id, response, owner) {
                        true => empty_response(StatusCode::ACCEPTED),
                        false => HttpError::sessions_unavailable().into(),
                    }
                }
            }
        }))
    }

    fn keep_response(
        self: Arc<Self>,
        uid: SessionUid,
        id: &str,
        response: ClientResponse,
        owner: Owner,
    ) -> bool {
        if self.process_of(&uid, id).is_none() {
            return false;
        }
        let (Ok(text) | Err(text)) = &response;
        let bytes = text.len();
        let (replicas, of) = (self.clone(), owner.clone());
        let kept = Arc::new((id.to_owned(), response));
        self.kept.keep(&owner, bytes, move || {
            let (replicas, kept, owner) = (replicas.clone(), kept.clone(), of.clone());
            async move { replicas.deliver_kept(&uid, (&kept.0, &kept.1), &owner).await }
        })
    }

    fn pass_cancellation(self: Arc<Self>, uid: SessionUid, id: &str) -> Option<PassedOn> {
        let id = RawValue::from_string(id.to_owned()).ok()?;
        Some(Box::pin(async move {
            let session = Cow::Owned(store_key(&uid).into());
            let told = self.tell_all(&Notice::Cancelled { session, id: &id }).await;
            told.map_or_else(Into::into, |()| empty_response(StatusCode::ACCEPTED))
        }))
    }

    fn tell_ended<'a>(&'a self, uid: &'a SessionUid) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let session = Cow::Owned(store_key(uid).into());
            // each of them finds out by itself if it was cut off
            let _told = self.tell_all(&Notice::Ended { session }).await;
        })
    }

    fn tell_follower<'a>(
        &'a self,
        follower: &'a Follower,
        uid: &'a SessionUid,
        stream: &'a str,
        news: FollowNews,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let session = Cow::Owned(store_key(uid).into());
            let notice = Notice::Stream { session, stream: stream.into(), number: follower.number, news };
            if let Ok(notice) = serde_json::to_vec(&notice)
                && let Err(error) = self.peers.tell(&follower.process, &notice).await
            {
                tracing::debug!(%error, "a replica that follows a stream cannot be told");
            }
        })
    }

    fn follow(
        self: Arc<Self>,
        following: Following,
        sender: EventSender,
        ended: CancellationToken,
    ) -> StoreFuture<'static, ()> {
        Box::pin(async move { following.run(&self, sender, ended).await })
    }

    fn share_level<'a>(
        &'a self,
        session: &'a Session,
        owner: &'a Owner,
        level: LogLevel,
    ) -> StoreFuture<'a, bool> {
        Box::pin(self.set_level(session, owner, level))
    }

    fn share_subscription<'a>(
        self: Arc<Self>,
        session: &'a Session,
        owner: &'a Owner,
        uri: &'a str,
        is_on: bool,
    ) -> StoreFuture<'a, Result<(), SubscribeError>> {
        Box::pin(async move { self.set_subscription(session, owner, uri, is_on).await })
    }

    fn claim_changes<'a>(
        &'a self,
        data: &'a StreamSession,
        of: Listening<'a>,
        comes_back: bool,
    ) -> StoreFuture<'a, Result<(), HttpError>> {
        Box::pin(self.claim(data, of, comes_back))
    }

    fn check_changes<'a>(
        &'a self,
        data: &'a StreamSession,
        of: Listening<'a>,
        subscribe: &'a (dyn Fn() -> bool + Send + Sync),
    ) -> StoreFuture<'a, Result<bool, HttpError>> {
        Box::pin(self.check(data, of, subscribe))
    }

    fn tell_idle<'a>(&'a self, uid: &'a SessionUid) -> StoreFuture<'a, ()> {
        Box::pin(self.tell_all_idle(uid))
    }

    fn leave_changes<'a>(&'a self, data: &'a StreamSession, of: Listening<'a>) -> StoreFuture<'a, ()> {
        Box::pin(self.leave(data, of))
    }
}

impl PeerHandler for Replicas {
    fn answer(self: Arc<Self>, question: &[u8]) -> Option<Vec<u8>> {
        let sessions = self.sessions()?;
        match serde_json::from_slice(question).ok()? {
            Question::Response { session, id, is_result, response } => {
                let uid = uid_of_key(&session)?;
                let response = response.get().into();
                let response = if is_result { Ok(response) } else { Err(response) };
                // another endpoint of this process may have sent it
                sessions.pending.deliver(&uid, id.get(), response).then(|| DONE.to_vec())
            }
            Question::Release { session } => {
                let data = sessions.table.data(&uid_of_key(&session)?)?;
                if !data.standalone.is_subscribed() {
                    return None;
                }
                let unsent = data.standalone.release();
                let unsent: Vec<_> = unsent.into_iter().filter_map(UnsentChange::of).collect();
                serde_json::to_vec(&unsent).ok()
            }
            Question::Listening { session } => {
                let data = sessions.table.data(&uid_of_key(&session)?)?;
                data.standalone.is_connected().then(|| DONE.to_vec())
            }
            Question::Follow { session, stream, follower } => {
                let data = sessions.table.data(&uid_of_key(&session)?)?;
                let stream = data.streams().get(&*stream).cloned()?;
                stream.follow(&follower).then(|| DONE.to_vec())
            }
        }
    }

    fn receive(self: Arc<Self>, message: &[u8]) {
        let Some(sessions) = self.sessions() else { return };
        match serde_json::from_slice(message) {
            Ok(Notice::Cancelled { session, id }) => {
                if let (Some(uid), Some(id)) = (uid_of_key(&session), RequestId::from_raw(id)) {
                    sessions.in_flight.cancel(&uid, &id);
                }
            }
            Ok(Notice::Ended { session }) => {
                if let Some(uid) = uid_of_key(&session) {
                    sessions.end_here(&uid);
                }
            }
            Ok(Notice::Level { session, owner, level }) => {
                if let (Some(uid), Ok(level)) = (uid_of_key(&session), level.parse()) {
                    sessions.told_levels.fetch_add(1, Ordering::AcqRel);
                    // of other sessions, the next request finds it in the store
                    if sessions.table.data(&uid).is_some() || sessions.in_flight.has_requests(&uid) {
                        let owner = Owner::from_text((*owner).into());
                        let _is_set = sessions.table.set_level(&uid, &owner, level);
                    }
                }
            }
            Ok(Notice::Subscription { session, uri, is_on, version }) => {
                if let Some(uid) = uid_of_key(&session) {
                    self.take_subscription(&uid, &uri, is_on, version);
                }
            }
            Ok(Notice::Idle { session }) => {
                let data = uid_of_key(&session).and_then(|uid| sessions.table.data(&uid));
                if let Some(data) = data.filter(|data| !data.standalone.is_subscribed()) {
                    data.standalone.check();
                }
            }
            Ok(Notice::Missed { session }) => {
                let data = uid_of_key(&session).and_then(|uid| sessions.table.data(&uid));
                if let Some(data) = data {
                    self.tell_everything(&data);
                }
            }
            Ok(Notice::Stream { session, stream, number, news }) => {
                if let Some(uid) = uid_of_key(&session) {
                    let followed = self.followed.lock().get(&(uid, (&*stream).into())).cloned();
                    if let Some(followed) = followed.filter(|followed| followed.number == number) {
                        followed.tell(news);
                    }
                }
            }
            // of another version of this crate
            Err(_) => tracing::debug!("a message of another replica cannot be read"),
        }
    }

    fn missed(self: Arc<Self>) {
        let Some(sessions) = self.sessions() else { return };
        let mut open = sessions.table.sessions();
        open.extend(sessions.in_flight.clients());
        spawn(async move {
            for uid in open {
                let Some(shared) = &sessions.shared else { return };
                match shared.get(&uid).await {
                    Ok(SharedSession { has_ended: true, .. }) => sessions.end_here(&uid),
                    Ok(SharedSession { level: Some(level), .. }) => sessions.table.update_level(&uid, level),
                    _ => {}
                }
                if let Some(data) = sessions.table.data(&uid) {
                    data.standalone.check();
                }
            }
        });
    }
}
