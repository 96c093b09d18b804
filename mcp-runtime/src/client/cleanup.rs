//! Messages without a reader, such as the cancellation of a call that was dropped: sent in the background, a few at a
//! time, each within a time limit. A server that does not take them costs neither connections nor memory.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

/// Messages that are sent at once, where each takes a connection.
const CONNECTIONS: usize = 8;
/// Messages that are sent or wait for that; more are not sent.
const MAX_MESSAGES: u32 = 4096;
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long closing a connection waits for what is being sent.
pub(in crate::client) const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The background messages of one connection.
pub(in crate::client) struct Cleanup {
    /// A permit for each message that is sent now.
    sending: Semaphore,
    /// A permit for each message.
    messages: Arc<Semaphore>,
}

impl Cleanup {
    fn new(at_once: usize) -> Arc<Self> {
        let messages = Arc::new(Semaphore::new(MAX_MESSAGES as usize));
        Arc::new(Self { sending: Semaphore::new(at_once), messages })
    }

    /// Messages that each take a connection.
    pub(in crate::client) fn by_connection() -> Arc<Self> {
        Self::new(CONNECTIONS)
    }

    /// Messages that share a stream: in their order, and before what is sent later.
    pub(in crate::client) fn on_stream() -> Arc<Self> {
        Self::new(MAX_MESSAGES as usize)
    }

    /// Waits until every message is sent that was given up to now, at most for so long.
    pub(in crate::client) async fn flush(&self, limit: Duration) {
        let _late = timeout(limit, self.messages.acquire_many(MAX_MESSAGES)).await;
    }

    /// Sends a message when there is room. Without a runtime, nothing is sent.
    pub(in crate::client) fn spawn(self: &Arc<Self>, message: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Ok(permit) = self.messages.clone().try_acquire_owned() else {
            return tracing::debug!("the server does not take messages: a cancellation is not sent");
        };
        let cleanup = self.clone();
        runtime.spawn(async move {
            let _sending = cleanup.sending.acquire().await;
            // a server that is slow does not get it
            let _late = timeout(TIME_LIMIT, message).await;
            drop(permit);
        });
    }
}
