//! The end of a connection, a session or a server, for everything that waits there.

use tokio::sync::watch;

/// Fires once; clones are the same.
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

    /// Waits for it; forever if it never fires.
    pub(crate) async fn fired(&self) {
        let mut receiver = self.0.subscribe();
        // cannot close: this is one of its senders
        let _closed = receiver.wait_for(|fired| *fired).await;
    }
}
