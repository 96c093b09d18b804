//! The standalone streams of a session, for messages that do not belong to a request: list changes, and updates of
//! resources. Each GET opens one, with a log and event ids of its own. Each message is sent on one of them: the one that a
//! client has opened or resumed last, of those that are connected. While none is, messages wait for the last one.

use std::{future::poll_fn, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    event_id::EventId, event_sender::EventSender, resumable::OpenStream, session_table::SessionData,
    sessions::unix_time,
};
use crate::{
    core::{admission::Owner, changes::Subscriber, connection::Principal, spawn::spawn},
    transport::http::{endpoint::Endpoint, http_error::HttpError, sse::message_event},
};

/// How long it waits for a client to reconnect.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// The streams of a session, as long as messages are sent on them.
pub(super) struct StandaloneStreams {
    /// In the order in which they were opened, or resumed: those that were connected the last time that a message was sent,
    /// and the last one.
    streams: Vec<Arc<OpenStream>>,
    /// Sends changes that the caller may know of who opened or resumed a stream last.
    subscriber: Arc<Subscriber>,
    /// Notified when one is opened or resumed.
    opened: watch::Sender<()>,
}

impl StandaloneStreams {
    /// Sends changes on streams until their session ends or expires, at that time in seconds since 1970, the server stops, or
    /// no client reconnects.
    pub(super) fn start(
        data: Arc<SessionData>,
        subscriber: Subscriber,
        (endpoint, owner): (Arc<Endpoint>, Owner),
        expires: u64,
    ) -> Self {
        let (subscriber, opened) = (Arc::new(subscriber), watch::Sender::default());
        let this = Self { streams: Vec::new(), subscriber: subscriber.clone(), opened };
        let opened = this.opened.subscribe();
        spawn(async move {
            tokio::select! {
                biased;
                () = data.ended.cancelled() => {}
                () = endpoint.shutdown.cancelled() => {}
                () = sleep(Duration::from_secs(expires.saturating_sub(unix_time()))) => {}
                () = send_changes(&data, &subscriber, opened, &endpoint, &owner) => {}
            }
            let closed = data.standalone.lock().take();
            closed.iter().flat_map(|closed| &closed.streams).for_each(|stream| stream.end());
        });
        this
    }

    /// The stream of an event.
    pub(super) fn find(&self, id: &EventId) -> Option<Arc<OpenStream>> {
        self.streams.iter().find(|open| open.stream.has(id)).cloned()
    }

    /// Attaches a response to a stream, which is the last one from now on, with its caller's access.
    ///
    /// # Errors
    /// The client leaves too many bytes unread.
    pub(super) fn attach(
        &mut self,
        open: Arc<OpenStream>,
        (sender, after): (EventSender, Option<u64>),
        caller: Option<Arc<Principal>>,
    ) -> Result<(), HttpError> {
        open.stream.attach(sender, after)?;
        self.subscriber.set_caller(caller);
        self.streams.retain(|other| !Arc::ptr_eq(other, &open));
        self.streams.push(open);
        self.opened.send_replace(());
        Ok(())
    }

    /// The last stream that is connected, or else the last one. Others whose clients have gone end: what is sent from now on is
    /// not on them.
    fn newest(&mut self) -> Option<Arc<OpenStream>> {
        let is_connected = |open: &Arc<OpenStream>| open.stream.is_connected();
        let newest = self.streams.iter().rfind(|open| is_connected(open)).or(self.streams.last())?.clone();
        self.streams.retain(|open| {
            let stays = is_connected(open) || Arc::ptr_eq(open, &newest);
            if !stays {
                open.end();
            }
            stays
        });
        Some(newest)
    }
}

/// Sends changes until some were lost, or no client reconnects in time.
async fn send_changes(
    data: &SessionData,
    subscriber: &Subscriber,
    mut opened: watch::Receiver<()>,
    endpoint: &Endpoint,
    owner: &Owner,
) {
    let newest = || data.standalone.lock().as_mut().and_then(StandaloneStreams::newest);
    let mut taken = None;
    loop {
        opened.mark_unchanged();
        // the first is opened before this is polled, or with it
        let Some(open) = newest() else { return };
        let mut changes = open.stream.changes();
        if !open.stream.is_connected() {
            let Some(_permit) = endpoint.budgets.waiting.try_acquire(owner, 1) else { return };
            if timeout(RECONNECT_TIMEOUT, opened.changed()).await.is_err() {
                return;
            }
            continue;
        }
        tokio::select! {
            biased;
            () = open.stream.wait_for_room() => {}
            _ = opened.changed() => continue,
        }
        // whether the client has gone is known now
        if !open.stream.is_connected() {
            continue;
        }
        match taken.take() {
            // by the time that there is one, another stream may be the newest
            None => tokio::select! {
                biased;
                change = poll_fn(|cx| subscriber.poll_next(cx)) => taken = Some(change),
                () = open.stream.wait_for_change(&mut changes) => {}
                _ = opened.changed() => {}
            },
            Some(None) => return,
            Some(Some(change)) => open.send(message_event(&change.notification(|_| {})), None).await,
        }
    }
}
