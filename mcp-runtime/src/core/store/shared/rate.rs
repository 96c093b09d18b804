//! Rates that replicas count together: the store decides. While it cannot be asked, each replica counts by itself, so that no
//! request fails or waits because of the store for longer than a second.

use std::time::Duration;

use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};

use super::{CallerRate, SealedStore, StoreError, Table, Take, Taken, sealed::plain_name};
use crate::core::{
    admission::{MAX_CALLERS, Owner, Rate, RateReached},
    maybe_ready::MaybeReady,
    spawn::spawn,
    sync::Mutex,
};

/// How long a request waits for the store.
const DECISION: Duration = Duration::from_secs(1);
/// How often a store that cannot be asked is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Where the replicas count one rate.
pub(in crate::core::store) struct SharedCount {
    table: Table,
    store: SealedStore,
}

/// When a store is asked again, if it did not answer.
#[derive(Default)]
pub(super) struct RateAsking(Mutex<Option<Instant>>);

/// Whether the store is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// It decides.
    Decides,
    /// It did not answer before: it is asked whether it does, and this process decides.
    IsTried,
    /// It did not answer a moment ago.
    No,
}

impl Rate {
    /// How often, in one [`period`](Self::period).
    #[must_use]
    pub fn times(self) -> u32 {
        self.times
    }

    /// The time in which everything that was used comes back.
    #[must_use]
    pub fn period(self) -> Duration {
        self.period
    }

    /// Takes some of what is left. `restored_in` is the time until everything that was used so far has come back; the
    /// time that is returned includes what was taken.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use mcp_runtime::store::Rate;
    ///
    /// let rate = Rate::new(2, Duration::from_secs(60));
    /// let restored_in = rate.take(2, Duration::ZERO)?;
    /// assert_eq!(restored_in, Duration::from_secs(60));
    /// // after 10 seconds
    /// assert_eq!(rate.take(1, Duration::from_secs(50)), Err(Duration::from_secs(20)));
    /// # Ok::<_, Duration>(())
    /// ```
    ///
    /// # Errors
    /// Less is left; it suffices after the time that is returned.
    pub fn take(self, times: u32, restored_in: Duration) -> Result<Duration, Duration> {
        let restored_in = restored_in.saturating_add(self.interval().saturating_mul(times));
        match restored_in.checked_sub(self.interval().saturating_mul(self.times)) {
            None | Some(Duration::ZERO) => Ok(restored_in),
            Some(wait) => Err(wait),
        }
    }
}

impl CallerRate {
    /// Counts one time of a caller, together with the replicas.
    pub(in crate::core::store) fn take_shared(
        &self,
        shared: &SharedCount,
        caller: &Owner,
    ) -> MaybeReady<Result<(), RateReached>> {
        // known to be refused by the store, or used up here alone: a flood does not reach the store
        if let Err(wait) = self.0.limiter.check(caller) {
            return MaybeReady::Ready(Err(self.reached(wait)));
        }
        match shared.asking() {
            Asking::Decides => {
                let (rate, caller) = (self.clone(), caller.clone());
                MaybeReady::Pending(Box::pin(async move {
                    match rate.take_from_store(&caller).await {
                        Some(decided) => decided,
                        None => rate.take_here(&caller),
                    }
                }))
            }
            Asking::IsTried => {
                self.tell_store(caller);
                MaybeReady::Ready(self.take_here(caller))
            }
            Asking::No => MaybeReady::Ready(self.take_here(caller)),
        }
    }

    /// Lets the store count what this process has decided, if it is there.
    pub(in crate::core::store) fn count_at_store(&self, caller: &Owner) {
        if self.0.shared.get().is_some_and(|shared| shared.asking() != Asking::No) {
            self.tell_store(caller);
        }
    }

    /// The decision of the store; `None` if it does not decide.
    async fn take_from_store(&self, caller: &Owner) -> Option<Result<(), RateReached>> {
        let limiter = &self.0.limiter;
        let asked = Instant::now();
        match self.0.shared.get()?.take(caller, limiter.rate()).await? {
            Taken::Granted => {
                limiter.count(caller, asked);
                Some(Ok(()))
            }
            Taken::Wait(wait) => {
                limiter.refuse(caller, wait);
                Some(Err(self.reached(wait)))
            }
            Taken::Full => None,
        }
    }

    fn tell_store(&self, caller: &Owner) {
        if Handle::try_current().is_err() {
            return;
        }
        let (rate, caller) = (self.clone(), caller.clone());
        let _task = spawn(async move {
            let limiter = &rate.0.limiter;
            let Some(shared) = rate.0.shared.get() else { return };
            if let Some(Taken::Wait(wait)) = shared.take(&caller, limiter.rate()).await {
                limiter.refuse(&caller, wait);
            }
        });
    }
}

impl SealedStore {
    /// Lets all replicas count a rate together, if they share a store; every replica names it the same. Returns whether
    /// they did not before.
    pub(crate) fn share_rate(&self, rate: &CallerRate, kind: &str, name: &str) -> bool {
        if !self.is_shared() {
            return false;
        }
        // the rest of one rate says nothing about another, which a new version of the program may have
        let of_rate = rate.0.limiter.rate();
        let (times, period) = (of_rate.times(), of_rate.period().as_millis());
        let table = format!("rate/{kind}/{}/{times}-{period}", plain_name(name));
        let table = Table::new(&table, MAX_CALLERS, usize::MAX, 100);
        rate.0.shared.set(SharedCount { table, store: self.clone() }).is_ok()
    }
}

impl SharedCount {
    fn asking(&self) -> Asking {
        self.store.sealing().map_or(Asking::No, |shared| shared.rates.asking())
    }

    /// Takes from a caller's rate; `None` if the store does not answer.
    async fn take(&self, caller: &Owner, rate: Rate) -> Option<Taken> {
        let shared = self.store.sealing().ok()?;
        let take = Take { owner: caller.as_str(), rate, times: 1 };
        let taken = timeout(DECISION, shared.take(&self.table, take)).await;
        let taken = taken.unwrap_or_else(|_| Err("it did not answer in time".into()));
        shared.rates.record(taken.as_ref().err());
        taken.ok()
    }
}

impl RateAsking {
    fn asking(&self) -> Asking {
        let now = Instant::now();
        match &mut *self.0.lock() {
            None => Asking::Decides,
            Some(again) if *again <= now => {
                *again = now + RETRY;
                Asking::IsTried
            }
            Some(_) => Asking::No,
        }
    }

    /// Records whether the store has answered, and logs a change of that.
    fn record(&self, error: Option<&StoreError>) {
        let again = error.map(|_| Instant::now() + RETRY);
        let was_lost = std::mem::replace(&mut *self.0.lock(), again).is_some();
        match error {
            Some(error) if !was_lost => tracing::warn!(
                %error,
                "each replica counts rates by itself, since the shared store cannot be asked"
            ),
            None if was_lost => tracing::info!("the replicas count rates together again"),
            _ => {}
        }
    }
}
