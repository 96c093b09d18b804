//! Responses of clients that arrive while the store is away that replicas share: it cannot be found out then whether their
//! session has ended, or which process waits for them, so they are kept for a while and delivered when it is back. The
//! kept bytes are bounded, and so are the concurrent requests to the store for them.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use crate::core::{
    admission::{Owner, Quota, Shares},
    spawn::spawn,
};

/// Bytes of responses that are kept.
const MAX_KEPT_BYTES: usize = 16 << 20;
/// The cost of a response besides its bytes: a task, and its share of the requests to the store.
const OVERHEAD: usize = 16 << 10;
/// The time for which a response is kept.
const KEPT: Duration = Duration::from_secs(300);
/// Between two attempts to deliver one.
const RETRY: Duration = Duration::from_millis(500);
/// How many are being delivered at once.
const AT_ONCE: usize = 16;
/// After this many unanswered attempts, of two seconds each, the process that waits for the response counts as
/// stopped. That is longer than reconnecting to the store takes after an outage.
const UNANSWERED: u32 = 6;

/// The responses of all clients that one endpoint keeps.
pub(super) struct KeptResponses {
    bytes: Arc<Shares>,
    at_once: Arc<Semaphore>,
}

/// The outcome of an attempt to deliver a response.
pub(super) enum Attempt {
    /// It was delivered, or nothing waits for it.
    Done,
    /// The process that waits for it does not answer.
    Unanswered,
    /// The store cannot be reached.
    StoreAway,
}

impl KeptResponses {
    /// One client may have `share_percent` of them.
    pub(super) fn new(share_percent: u8) -> Self {
        let bytes = Shares::new(Quota::new(MAX_KEPT_BYTES, share_percent));
        Self { bytes, at_once: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Keeps a response of this many bytes, and attempts to deliver it until that is done; `false` if too much is kept.
    pub(super) fn keep<F>(
        &self,
        owner: &Owner,
        bytes: usize,
        attempt: impl Fn() -> F + Send + 'static,
    ) -> bool
    where
        F: Future<Output = Attempt> + Send + 'static,
    {
        let Some(permit) = self.bytes.try_acquire(owner, bytes.saturating_add(OVERHEAD)) else {
            return false;
        };
        let at_once = self.at_once.clone();
        spawn(async move {
            let _permit = permit;
            let (end, mut unanswered) = (Instant::now() + KEPT, 0);
            while Instant::now() < end && unanswered < UNANSWERED {
                sleep(RETRY).await;
                let Ok(_turn) = at_once.acquire().await else { return };
                match attempt().await {
                    Attempt::Done => return,
                    Attempt::Unanswered => unanswered += 1,
                    Attempt::StoreAway => {}
                }
            }
            tracing::debug!("a response of a client has not reached its call");
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_response_is_attempted_until_it_is_delivered_or_its_process_is_gone_or_its_time_is_over() {
        for (outcome, most) in [
            (Attempt::Done as usize, 1),
            (Attempt::Unanswered as usize, 6),
            (Attempt::StoreAway as usize, 600),
        ] {
            let (kept, attempts) = (KeptResponses::new(50), Arc::new(AtomicUsize::new(0)));
            let counted = attempts.clone();
            assert!(kept.keep(&Owner::local(), 1, move || {
                counted.fetch_add(1, Ordering::Relaxed);
                async move {
                    match outcome {
                        0 => Attempt::Done,
                        1 => Attempt::Unanswered,
                        _ => Attempt::StoreAway,
                    }
                }
            }));
            sleep(2 * KEPT).await;
            assert_eq!((attempts.load(Ordering::Relaxed), kept.bytes.used()), (most, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_has_a_share_of_what_is_kept() {
        let kept = KeptResponses::new(50);
        let keep = |owner: &str, bytes| {
            kept.keep(&Owner::principal(owner.into()), bytes, || async { Attempt::StoreAway })
        };
        assert!(!keep("ada", 9 << 20) && keep("ada", 7 << 20) && !keep("ada", 2 << 20));
        assert!(keep("bob", 2 << 20));
        let rest = (0..2000).filter(|_| keep("eve", 0)).count();
        assert!((1..448).contains(&rest), "{rest}");
    }
}
