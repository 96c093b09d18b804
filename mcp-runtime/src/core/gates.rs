//! The checks that each call of an item passes before its function starts, in this order: the limits on its callers, then
//! the wait for `max_concurrency`. An item has gates only if it has limits. A gate that decides at once allocates nothing.
//!
//! | option | gate | a call beyond it |
//! |---|---|---|
//! | `max_concurrency_per_caller` | `CallerConcurrency` in `core/admission/call_limits.rs` | fails |
//! | `rate`, of an item and of a mount | `CallerRate` in `core/store/caller_rate.rs`: at once, by the algorithm that `core/admission/rate.rs` describes, or in a store that replicas share | fails, and says when to try again |
//! | `max_concurrency` | a semaphore, below | waits, within its time limit |
//!
//! They are put together in this order by `make_gates` in `core/server/assemble.rs`, and entered by `stage` of
//! `core/dispatch/item_call.rs`. A caller is the [`Owner`] of a request: its principal, or else the address that it comes
//! from. A call that fails here is answered as one whose function has failed ([`Failure::limited`]); only the rate of a
//! *server* refuses a request, before its method is examined: `take_rate` in `route` of `core/dispatch/request.rs`, over HTTP
//! before its body is read, in `transport/http/service.rs`.
//!
//! Arguments are decoded after the gates, so that calls with wrong ones count; refusals for scopes, headers or features of the
//! client come before, and do not. Each retry of a call, and each run that a layer starts, passes the gates again.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::core::{
    admission::{CallerConcurrency, LimitReached, Owner, RateReached},
    blocking::CallPermit,
    error::Failure,
    maybe_ready::MaybeReady,
    store::CallerRate,
};

/// The gates of an item, of which there is at least one.
pub(crate) struct Gates {
    callers: Vec<Arc<CallerConcurrency>>,
    rates: Vec<CallerRate>,
    /// A permit for each call that may run at once; further ones wait for one.
    running: Option<Arc<Semaphore>>,
}

/// Which gates a call enters.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    /// All of them.
    Whole,
    /// In the request of a call that leaves it before its function starts: those where no call waits for others to end.
    Request,
    /// Outside of that request: the wait for other calls.
    Outside,
}

/// The permits that a call holds as long as its function runs, or why it is refused.
type Entered = Result<Vec<CallPermit>, Failure>;

impl Gates {
    /// `None` without gates. `calls` may run at once.
    pub(crate) fn new(
        callers: Vec<Arc<CallerConcurrency>>,
        rates: Vec<CallerRate>,
        calls: Option<usize>,
    ) -> Option<Arc<Self>> {
        let running = calls.map(|calls| Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS))));
        let has_gates = !callers.is_empty() || !rates.is_empty() || running.is_some();
        has_gates.then(|| Arc::new(Self { callers, rates, running }))
    }

    /// Lets a call in, through one gate after the other.
    pub(crate) fn enter(self: &Arc<Self>, stage: Stage, caller: &Owner) -> MaybeReady<Entered> {
        let mut permits = Vec::new();
        if matches!(stage, Stage::Outside) {
            return self.enter_last(stage, permits);
        }
        for limit in &self.callers {
            match limit.acquire(caller) {
                Ok(permit) => permits.push(CallPermit::Share(permit)),
                Err(reached) => return MaybeReady::Ready(Err(Failure::limited(reached))),
            }
        }
        for (index, rate) in self.rates.iter().enumerate() {
            match rate.take(caller) {
                MaybeReady::Ready(Ok(())) => {}
                MaybeReady::Ready(Err(reached)) => return MaybeReady::Ready(Err(refusal(reached))),
                MaybeReady::Pending(taking) => {
                    let (gates, caller) = (self.clone(), caller.clone());
                    return MaybeReady::Pending(Box::pin(async move {
                        taking.await.map_err(refusal)?;
                        for rate in gates.rates.iter().skip(index + 1) {
                            rate.take(&caller).get().await.map_err(refusal)?;
                        }
                        gates.enter_last(stage, permits).get().await
                    }));
                }
            }
        }
        self.enter_last(stage, permits)
    }

    /// Waits until fewer calls run, unless the call does so outside of its request.
    fn enter_last(&self, stage: Stage, mut permits: Vec<CallPermit>) -> MaybeReady<Entered> {
        let Some(running) = self.running.as_ref().filter(|_| !matches!(stage, Stage::Request)) else {
            return MaybeReady::Ready(Ok(permits));
        };
        if let Ok(permit) = running.clone().try_acquire_owned() {
            permits.push(CallPermit::Concurrency(permit));
            return MaybeReady::Ready(Ok(permits));
        }
        let acquiring = running.clone().acquire_owned();
        MaybeReady::Pending(Box::pin(async move {
            // the semaphore is never closed
            permits.extend(acquiring.await.ok().map(CallPermit::Concurrency));
            Ok(permits)
        }))
    }
}

fn refusal(reached: RateReached) -> Failure {
    Failure::limited(LimitReached::Rate(reached))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::admission::Rate;

    fn owner(name: &str) -> Owner {
        Owner::principal(name.into())
    }

    /// One call runs at once, a caller has two, and three in an hour.
    fn gates() -> Arc<Gates> {
        let rate = CallerRate::new(Rate::parse("3/1h").unwrap());
        Gates::new(vec![Arc::new(CallerConcurrency::new(2))], vec![rate], Some(1)).unwrap()
    }

    #[tokio::test]
    async fn a_call_passes_every_gate_and_holds_its_permits() {
        let gates = gates();
        let first = gates.enter(Stage::Whole, &owner("ada")).get().await.unwrap();
        assert_eq!(first.len(), 2);
        let MaybeReady::Pending(mut second) = gates.enter(Stage::Whole, &owner("ada")) else {
            panic!("one call runs at once");
        };
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), &mut second).await.is_err());
        let third = gates.enter(Stage::Whole, &owner("ada"));
        assert!(matches!(third, MaybeReady::Ready(Err(_))), "two of one caller may wait or run");
        drop(first);
        assert_eq!(second.await.unwrap().len(), 2);
        assert!(
            gates.enter(Stage::Whole, &owner("ada")).get().await.is_ok(),
            "the refused one was not counted"
        );
        let fourth = gates.enter(Stage::Whole, &owner("ada"));
        assert!(matches!(fourth, MaybeReady::Ready(Err(_))), "three in an hour");
        assert!(gates.enter(Stage::Whole, &owner("bob")).get().await.is_ok());
    }

    #[tokio::test]
    async fn a_call_that_leaves_its_request_waits_outside_of_it() {
        let gates = gates();
        let running = gates.enter(Stage::Whole, &owner("ada")).get().await.unwrap();
        let in_request = gates.enter(Stage::Request, &owner("ada"));
        let MaybeReady::Ready(Ok(permits)) = in_request else { panic!("its request does not wait") };
        assert!(matches!(*permits, [CallPermit::Share(_)]));
        let MaybeReady::Pending(outside) = gates.enter(Stage::Outside, &owner("ada")) else {
            panic!("one call runs at once");
        };
        drop(running);
        assert!(matches!(*outside.await.unwrap(), [CallPermit::Concurrency(_)]));
    }

    #[test]
    fn an_item_without_limits_has_no_gates() {
        assert!(Gates::new(Vec::new(), Vec::new(), None).is_none());
    }
}
