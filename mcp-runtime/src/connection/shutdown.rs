//! A signal that a connection, a session or a server ends.

use tokio::sync::watch;

/// Fires once; clones share one signal.
#[derive(Debug, Clone)]
pub(crate) struct Shutdown(watch::Sender<bool>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Shutdown {
    pub(crate) fn fire(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn has_fired(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it fires.
    pub(crate) async fn fired(&self) {
        let mut receiver = self.0.subscribe();
        // the channel stays open: `self` is a sender
        let _closed = receiver.wait_for(|fired| *fired).await;
    }
}
