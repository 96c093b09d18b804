//! The standalone stream of a session, for messages that do not belong to a request: list changes, and updates of
//! resources. A session has one, which any number of responses carry.

use std::{future::poll_fn, sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    resumable::{OpenStream, ResumableStream},
    session_table::SessionData,
    sessions::unix_time,
};
use crate::{
    core::{admission::Owner, changes::Subscriber, spawn::spawn},
    transport::http::{endpoint::Endpoint, sse::message_event},
};

/// How long it waits for a client to reconnect.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// The stream of a session, as long as it is open.
pub(super) struct StandaloneStream {
    pub(super) stream: Arc<ResumableStream>,
    /// Sends changes that the caller may know of who opened or resumed the stream last.
    pub(super) subscriber: Arc<Subscriber>,
}

impl StandaloneStream {
    /// Sends changes on a stream until its session ends or expires, at that time in seconds since 1970, the server stops, or
    /// no client reconnects.
    pub(super) fn start(
        open: OpenStream,
        data: Arc<SessionData>,
        subscriber: Subscriber,
        (endpoint, owner): (Arc<Endpoint>, Owner),
        expires: u64,
    ) -> Self {
        open.register();
        let this = Self { stream: open.stream.clone(), subscriber: Arc::new(subscriber) };
        let subscriber = this.subscriber.clone();
        spawn(async move {
            tokio::select! {
                biased;
                () = data.ended.cancelled() => {}
                () = endpoint.shutdown.cancelled() => {}
                () = sleep(Duration::from_secs(expires.saturating_sub(unix_time()))) => {}
                () = send_changes(&open, &subscriber, &endpoint, &owner) => {}
            }
            let closed = data.standalone.lock().take();
            drop(closed);
            open.end();
        });
        this
    }
}

/// Sends changes until some were lost, or no client reconnects in time.
async fn send_changes(open: &OpenStream, subscriber: &Subscriber, endpoint: &Endpoint, owner: &Owner) {
    let stream = &open.stream;
    let mut changes = stream.changes();
    loop {
        changes.mark_unchanged();
        if !stream.is_connected() {
            let Some(_permit) = endpoint.budgets.waiting.try_acquire(owner, 1) else { return };
            if timeout(RECONNECT_TIMEOUT, changes.changed()).await.is_err() {
                return;
            }
            continue;
        }
        let change = tokio::select! {
            biased;
            change = poll_fn(|cx| subscriber.poll_next(cx)) => change,
            () = stream.wait_for_change(&mut changes) => continue,
        };
        let Some(change) = change else { return };
        open.send(message_event(&change.notification(|_| {})), None).await;
    }
}
