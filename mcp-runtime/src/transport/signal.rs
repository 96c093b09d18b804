//! SIGTERM, which asks the process to stop. Other systems than Unix have no such signal.

/// Receives SIGTERM.
pub(super) struct TerminateSignal {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl TerminateSignal {
    pub(super) fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let signal = signal(SignalKind::terminate());
            if let Err(error) = &signal {
                tracing::warn!(%error, "cannot handle SIGTERM: it will kill the process without waiting for its calls");
            }
            Self { signal: signal.ok() }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for the next SIGTERM.
    pub(super) async fn recv(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal {
            signal.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    }
}
