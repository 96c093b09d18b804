//! The checks that each call of an item passes before its function starts, in this order: the limits on its callers, then
//! the wait for `max_concurrency`. An item has gates only if it has limits. A gate that decides at once allocates nothing.
//!
//! | option | gate | a call beyond it |
//! |---|---|---|
//! | `max_concurrency_per_caller` | `CallerConcurrency`, below | fails |
//! | `rate`, of an item and of a mount | `CallerRate` in `core/store/caller_rate.rs`: at once, by the algorithm that `core/admission/rate.rs` describes, or in a store that replicas share | fails, and says when to try again |
//! | `max_concurrency` | `Concurrency`, below | waits, within its time limit |
//!
//! They are put together in this order by `make_gates` in `core/server/assemble.rs`, and entered by `stage` of
//! `core/dispatch/item_call.rs`. A caller is the [`Owner`] of a request: its principal, or else the address that it comes
//! from. A call that fails here is answered as one whose function has failed ([`Failure::limited`]); only the rate of a
//! *server* refuses a request, before its method is examined: `take_rate` in `route` of `core/dispatch/request.rs`, over HTTP
//! before its body is read, in `transport/http/service.rs`.
//!
//! Arguments are decoded after the gates, so that calls with wrong ones count; refusals for scopes, headers or features of the
//! client come before, and do not. Each retry of a call, and each run that a layer starts, passes the gates again.

use std::{fmt, sync::Arc};

use tokio::sync::Semaphore;

use crate::core::{
    admission::{CallerConcurrency, Owner},
    blocking::CallPermit,
    error::Failure,
    maybe_ready::MaybeReady,
};

/// A limit on the calls of an item.
pub(crate) trait Gate: fmt::Debug + Send + Sync {
    /// Lets a call of this caller in, or refuses it. The call holds the permit as long as its function runs.
    fn enter(&self, caller: &Owner) -> MaybeReady<Result<Option<CallPermit>, Failure>>;

    /// Whether calls wait here for others to end. A call that leaves its request before its function starts waits outside
    /// of its request.
    fn is_queue(&self) -> bool {
        false
    }
}

/// The gates of an item, of which there is at least one.
#[derive(Debug)]
pub(crate) struct Gates {
    gates: Box<[Box<dyn Gate>]>,
    /// Where those begin that are queues.
    queues: usize,
}

/// Which gates a call enters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stage {
    /// All of them.
    Whole,
    /// In the request of a call that leaves it before its function starts.
    Request,
    /// Outside of that request.
    Outside,
}

impl Gates {
    /// `None` without gates. Queues come last.
    pub(crate) fn new(mut gates: Vec<Box<dyn Gate>>) -> Option<Arc<Self>> {
        let queues: Vec<_> = gates.extract_if(.., |gate| gate.is_queue()).collect();
        let first_queue = gates.len();
        gates.extend(queues);
        (!gates.is_empty()).then(|| Arc::new(Self { gates: gates.into(), queues: first_queue }))
    }

    fn of_stage(&self, stage: Stage) -> (usize, usize) {
        match stage {
            Stage::Whole => (0, self.gates.len()),
            Stage::Request => (0, self.queues),
            Stage::Outside => (self.queues, self.gates.len()),
        }
    }

    fn between(&self, first: usize, end: usize) -> &[Box<dyn Gate>] {
        self.gates.get(first..end).unwrap_or_default()
    }

    /// Lets a call in, through one gate after the other.
    pub(crate) fn enter(
        self: &Arc<Self>,
        stage: Stage,
        caller: &Owner,
    ) -> MaybeReady<Result<Vec<CallPermit>, Failure>> {
        let (first, end) = self.of_stage(stage);
        let mut permits = Vec::new();
        for (index, gate) in (first..).zip(self.between(first, end)) {
            match gate.enter(caller) {
                MaybeReady::Ready(Ok(permit)) => permits.extend(permit),
                MaybeReady::Ready(Err(failure)) => return MaybeReady::Ready(Err(failure)),
                MaybeReady::Pending(entering) => {
                    let (gates, caller) = (self.clone(), caller.clone());
                    return MaybeReady::Pending(Box::pin(async move {
                        permits.extend(entering.await?);
                        for gate in gates.between(index + 1, end) {
                            permits.extend(gate.enter(&caller).get().await?);
                        }
                        Ok(permits)
                    }));
                }
            }
        }
        MaybeReady::Ready(Ok(permits))
    }
}

/// How many calls one caller may run at once.
impl Gate for Arc<CallerConcurrency> {
    fn enter(&self, caller: &Owner) -> MaybeReady<Result<Option<CallPermit>, Failure>> {
        let acquired = self.acquire(caller);
        MaybeReady::Ready(acquired.map(|permit| Some(CallPermit::Share(permit))).map_err(Failure::limited))
    }
}

/// How many calls may run at once; further ones wait.
#[derive(Debug)]
pub(crate) struct Concurrency(Arc<Semaphore>);

impl Concurrency {
    pub(crate) fn new(calls: usize) -> Self {
        Self(Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS))))
    }
}

impl Gate for Concurrency {
    fn enter(&self, _: &Owner) -> MaybeReady<Result<Option<CallPermit>, Failure>> {
        match self.0.clone().try_acquire_owned() {
            Ok(permit) => MaybeReady::Ready(Ok(Some(CallPermit::Concurrency(permit)))),
            Err(_) => {
                let acquiring = self.0.clone().acquire_owned();
                // the semaphore is never closed
                MaybeReady::Pending(Box::pin(async { Ok(acquiring.await.ok().map(CallPermit::Concurrency)) }))
            }
        }
    }

    fn is_queue(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses a caller that is not `ada`, and keeps no one waiting who is.
    #[derive(Debug)]
    struct OnlyAda {
        asks: bool,
    }

    impl Gate for OnlyAda {
        fn enter(&self, caller: &Owner) -> MaybeReady<Result<Option<CallPermit>, Failure>> {
            let is_ada = **caller.as_str() == *"ada";
            let entered = if is_ada { Ok(None) } else { Err(Failure::private("not Ada")) };
            if self.asks {
                MaybeReady::Pending(Box::pin(async { entered }))
            } else {
                MaybeReady::Ready(entered)
            }
        }
    }

    fn owner(name: &str) -> Owner {
        Owner::principal(name.into())
    }

    fn gates(asks: bool) -> Arc<Gates> {
        let calls: Arc<CallerConcurrency> = Arc::new(CallerConcurrency::new(2));
        Gates::new(vec![Box::new(Concurrency::new(1)), Box::new(calls), Box::new(OnlyAda { asks })]).unwrap()
    }

    #[tokio::test]
    async fn a_call_passes_every_gate_and_holds_its_permits() {
        for asks in [false, true] {
            let gates = gates(asks);
            let entered = gates.enter(Stage::Whole, &owner("ada"));
            assert_eq!(matches!(entered, MaybeReady::Pending(_)), asks);
            let first = entered.get().await.unwrap();
            assert_eq!(first.len(), 2);
            let MaybeReady::Pending(mut second) = gates.enter(Stage::Whole, &owner("ada")) else {
                panic!("one call runs at once");
            };
            assert!(tokio::time::timeout(std::time::Duration::from_millis(1), &mut second).await.is_err());
            let third = gates.enter(Stage::Whole, &owner("ada")).get().await;
            assert!(third.is_err(), "two of one caller may wait or run");
            drop(first);
            assert_eq!(second.await.unwrap().len(), 2);
            assert!(gates.enter(Stage::Whole, &owner("bob")).get().await.is_err());
        }
    }

    #[tokio::test]
    async fn a_call_that_leaves_its_request_waits_outside_of_it() {
        let gates = gates(false);
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
        assert!(Gates::new(Vec::new()).is_none());
    }
}
