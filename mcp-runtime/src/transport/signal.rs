//! The signals that ask the process to stop: SIGTERM and Ctrl-C. The first one begins a graceful shutdown; the next one
//! ends the process, also if its runtime is blocked.

use std::{thread, time::Duration};

use tokio::sync::oneshot;

/// How long `main` may take to return after the second signal.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Receives SIGTERM and Ctrl-C.
pub(super) struct StopSignals {
    #[cfg(unix)]
    terminate: Option<tokio::signal::unix::Signal>,
    #[cfg(unix)]
    interrupt: Option<tokio::signal::unix::Signal>,
}

impl StopSignals {
    pub(super) fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let receive = |kind| match signal(kind) {
                Ok(signal) => Some(signal),
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "cannot handle a signal: SIGTERM and Ctrl-C will kill the process without waiting for its calls"
                    );
                    None
                }
            };
            Self { terminate: receive(SignalKind::terminate()), interrupt: receive(SignalKind::interrupt()) }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for the next signal.
    #[cfg(unix)]
    pub(super) async fn recv(&mut self) {
        use tokio::signal::unix::Signal;
        async fn next(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = next(&mut self.terminate) => {}
            () = next(&mut self.interrupt) => {}
        }
    }

    /// Waits for the next signal. Only Unix has SIGTERM.
    #[cfg(not(unix))]
    pub(super) async fn recv(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Completes at the next signal, which ends the process: `main` has a second to return, then it exits with code 0. The
/// signals are those that have received the first one, so that none is lost in between. A thread receives the next, since
/// the runtime may be blocked by what is to be ended. Dropping the future ends the thread.
pub(super) async fn second_signal(mut signals: StopSignals) {
    let (received, signal) = oneshot::channel();
    // dropped with this future
    let (_cancel, cancelled) = oneshot::channel::<()>();
    let wait = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        let is_cancelled = runtime.block_on(async {
            tokio::select! {
                biased;
                _ = cancelled => true,
                () = signals.recv() => false,
            }
        });
        if is_cancelled {
            return;
        }
        tracing::warn!("told to stop again: calls that are still running are dropped");
        let _not_waited_for = received.send(());
        thread::sleep(EXIT_TIMEOUT);
        std::process::exit(0);
    };
    let started = thread::Builder::new().name("mcp-signals".into()).spawn(wait);
    if started.is_err() || signal.await.is_err() {
        std::future::pending::<()>().await;
    }
}
