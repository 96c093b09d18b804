//! How often one caller may do something. Replicas that share a store count together: the store decides. While it cannot be
//! asked, each replica counts by itself, so that no request fails or waits because of the store for longer than a second.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};

use super::{
    SealedStore, StoreError,
    server_store::plain_name,
    shared::{Table, Take, Taken},
};
use crate::core::{
    admission::{LimitReached, Owner, Rate, RateLimiter, RateReached},
    blocking::CallPermit,
    error::Failure,
    gates::Gate,
    maybe_ready::MaybeReady,
    spawn::spawn,
    sync::Mutex,
};

/// How long a request waits for the store.
const DECISION: Duration = Duration::from_secs(1);
/// How often a store that cannot be asked is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A rate that each caller has; clones are the same.
#[derive(Clone)]
pub(crate) struct CallerRate(Arc<CallerRateInner>);

struct CallerRateInner {
    /// The knowledge of this process: the calls that it has granted, and the refusals of the store.
    limiter: RateLimiter,
    owners: usize,
    shared: OnceLock<SharedCount>,
}

/// Where the replicas count one rate.
struct SharedCount {
    table: Table,
    store: Arc<RateStoreInner>,
}

/// Where the rates of a server are counted.
#[derive(Clone)]
pub(crate) struct RateStore(Option<Arc<RateStoreInner>>);

struct RateStoreInner {
    store: SealedStore,
    /// When the store is asked again, if it did not answer.
    lost: Mutex<Option<Instant>>,
}

/// Whether the store is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// It decides.
    Decides,
    /// It did not answer before: it is asked whether it does, and this process decides.
    IsTried,
    /// It did not answer a moment ago.
    No,
}

impl CallerRate {
    /// A rate that this process counts; it remembers at most `owners` callers.
    pub(crate) fn new(rate: Rate, owners: usize) -> Self {
        Self(Arc::new(CallerRateInner {
            limiter: RateLimiter::new(rate, owners),
            owners,
            shared: OnceLock::new(),
        }))
    }

    /// Whether replicas count it together.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.shared.get().is_some()
    }

    /// Counts one time of a caller.
    pub(crate) fn take(&self, caller: &Owner) -> MaybeReady<Result<(), RateReached>> {
        let Some(shared) = self.0.shared.get() else { return MaybeReady::Ready(self.take_here(caller)) };
        // known to be refused by the store, or used up here alone: a flood does not reach the store
        if let Err(wait) = self.0.limiter.check(caller) {
            return MaybeReady::Ready(Err(self.reached(wait)));
        }
        match shared.store.asking() {
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

    /// Counts one time of a caller where nothing can be waited for: this process decides, and tells the store.
    ///
    /// # Errors
    /// The caller has used up the rate, as far as this process knows.
    pub(crate) fn take_at_once(&self, caller: &Owner) -> Result<(), RateReached> {
        self.take_here(caller)?;
        if self.0.shared.get().is_some_and(|shared| shared.store.asking() != Asking::No) {
            self.tell_store(caller);
        }
        Ok(())
    }

    fn take_here(&self, caller: &Owner) -> Result<(), RateReached> {
        self.0.limiter.take(caller).map_err(|wait| self.reached(wait))
    }

    fn reached(&self, wait: Duration) -> RateReached {
        RateReached { rate: self.0.limiter.rate(), wait }
    }

    /// The decision of the store; `None` if it does not decide.
    async fn take_from_store(&self, caller: &Owner) -> Option<Result<(), RateReached>> {
        let CallerRateInner { limiter, shared, .. } = &*self.0;
        let SharedCount { table, store } = shared.get()?;
        let asked = Instant::now();
        match store.take(table, caller, limiter.rate()).await? {
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

    /// Lets the store count what this process decides.
    fn tell_store(&self, caller: &Owner) {
        if Handle::try_current().is_err() {
            return;
        }
        let (rate, caller) = (self.clone(), caller.clone());
        let _task = spawn(async move {
            let CallerRateInner { limiter, shared, .. } = &*rate.0;
            let Some(SharedCount { table, store }) = shared.get() else { return };
            if let Some(Taken::Wait(wait)) = store.take(table, &caller, limiter.rate()).await {
                limiter.refuse(&caller, wait);
            }
        });
    }
}

impl fmt::Debug for CallerRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.0.limiter.rate();
        f.debug_struct("CallerRate").field("rate", &rate).field("is_shared", &self.is_shared()).finish()
    }
}

impl Gate for CallerRate {
    fn enter(&self, caller: &Owner) -> MaybeReady<Result<Option<CallPermit>, Failure>> {
        let entered = |taken: Result<(), RateReached>| {
            taken.map(|()| None).map_err(|reached| Failure::limited(LimitReached::Rate(reached)))
        };
        match self.take(caller) {
            MaybeReady::Ready(taken) => MaybeReady::Ready(entered(taken)),
            MaybeReady::Pending(taking) => {
                MaybeReady::Pending(Box::pin(async move { entered(taking.await) }))
            }
        }
    }
}

impl RateStore {
    /// The rates of a server with this store.
    pub(crate) fn new(store: &SealedStore) -> Self {
        let shared = || Arc::new(RateStoreInner { store: store.clone(), lost: Mutex::default() });
        Self(store.is_shared().then(shared))
    }

    /// Lets all replicas count a rate together, if they share a store; every replica names it the same. Returns whether
    /// they did not before.
    pub(crate) fn share(&self, rate: &CallerRate, kind: &str, name: &str) -> bool {
        let Some(store) = &self.0 else { return false };
        let CallerRateInner { limiter, owners, shared } = &*rate.0;
        // the rest of one rate says nothing about another, which a new version of the program may have
        let (times, period) = (limiter.rate().times(), limiter.rate().period().as_millis());
        let table = format!("rate/{kind}/{}/{times}-{period}", plain_name(name));
        let table = Table::new(&table, *owners, usize::MAX, 100);
        shared.set(SharedCount { table, store: store.clone() }).is_ok()
    }
}

impl fmt::Debug for RateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateStore").field("is_shared", &self.0.is_some()).finish_non_exhaustive()
    }
}

impl RateStoreInner {
    fn asking(&self) -> Asking {
        let now = Instant::now();
        match &mut *self.lost.lock() {
            None => Asking::Decides,
            Some(again) if *again <= now => {
                *again = now + RETRY;
                Asking::IsTried
            }
            Some(_) => Asking::No,
        }
    }

    /// Takes from a caller's rate; `None` if the store does not answer.
    async fn take(&self, table: &Table, caller: &Owner, rate: Rate) -> Option<Taken> {
        // an owner has one rate in a table
        let take = Take { owner: caller.as_str(), rate, times: 1 };
        let taking = timeout(DECISION, self.store.take(table, "", take));
        let taken = taking.await.unwrap_or_else(|_| Err("it did not answer in time".into()));
        self.record(taken.as_ref().err());
        taken.ok()
    }

    /// Records whether the store has answered, and logs a change of that.
    fn record(&self, error: Option<&StoreError>) {
        let mut lost = self.lost.lock();
        let was_lost = lost.is_some();
        *lost = error.map(|_| Instant::now() + RETRY);
        drop(lost);
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
