//! The order of sending: messages to one endpoint in their order, endpoints of a principal in turn, and principals in turn.
//! A principal has half of the concurrent sends, and an endpoint half of that; an eighth is kept for those that send
//! nothing, so that slow endpoints, however many there are, do not hold up a fast one.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::sync::oneshot;

use crate::core::{
    admission::{Owner, Quota},
    sync::Mutex,
};

/// Turns to send a message.
#[derive(Debug)]
pub(super) struct Turns {
    state: Mutex<TurnState>,
}

#[derive(Debug)]
struct TurnState {
    quota: Quota,
    running: usize,
    owners: HashMap<Owner, OwnerTurns>,
    /// Owners with an endpoint in `next`; who is first has waited longest.
    next: VecDeque<Owner>,
}

#[derive(Debug, Default)]
struct OwnerTurns {
    running: usize,
    endpoints: HashMap<Arc<str>, EndpointTurns>,
    /// Endpoints for which something waits, the one first that has waited longest.
    next: VecDeque<Arc<str>>,
    is_in_line: bool,
}

#[derive(Debug, Default)]
struct EndpointTurns {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
    is_in_line: bool,
}

/// A message that is being sent.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    owner: Owner,
    endpoint: Arc<str>,
}

impl Turns {
    /// Turns, at most `limit` of which are taken at once.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let state = TurnState {
            quota: Quota::half(limit),
            running: 0,
            owners: HashMap::new(),
            next: VecDeque::new(),
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Waits until a message of this owner may be sent to this endpoint.
    pub(super) async fn wait(self: &Arc<Self>, owner: &Owner, endpoint: &str) -> Turn {
        loop {
            let (gives, given) = oneshot::channel();
            {
                let mut state = self.state.lock();
                let TurnState { owners, next, .. } = &mut *state;
                let of_owner = owners.entry(owner.clone()).or_default();
                let name: Arc<str> = endpoint.into();
                let of_endpoint = of_owner.endpoints.entry(name.clone()).or_default();
                of_endpoint.waiting.push_back(gives);
                if !std::mem::replace(&mut of_endpoint.is_in_line, true) {
                    of_owner.next.push_back(name);
                }
                if !std::mem::replace(&mut of_owner.is_in_line, true) {
                    next.push_back(owner.clone());
                }
            }
            self.give();
            // a queued message is given its turn, or the queue has been dropped with the server
            if let Ok(turn) = given.await {
                return turn;
            }
        }
    }

    /// Gives turns to those who wait, as far as there is room.
    fn give(self: &Arc<Self>) {
        let mut given = Vec::new();
        {
            let mut state = self.state.lock();
            while let Some((owner, endpoint, gives)) = state.take_next() {
                given.push((gives, Turn { turns: self.clone(), owner, endpoint }));
            }
        }
        // one that does not wait any more gives its turn back, for which the lock must be free
        given.into_iter().for_each(|(gives, turn)| drop(gives.send(turn)));
    }
}

impl TurnState {
    /// The one who is next and has room.
    fn take_next(&mut self) -> Option<(Owner, Arc<str>, oneshot::Sender<Turn>)> {
        for _ in 0..self.next.len() {
            let owner = self.next.pop_front()?;
            let Some(of_owner) = self.owners.get_mut(&owner) else { continue };
            let taken = match self.quota.has_room(&owner, self.running, of_owner.running) {
                true => of_owner.take_next(self.quota.of_part(&owner)),
                false => None,
            };
            if of_owner.next.is_empty() {
                of_owner.is_in_line = false;
                if of_owner.running == 0 {
                    self.owners.remove(&owner);
                }
            } else {
                self.next.push_back(owner.clone());
            }
            if let Some((endpoint, gives)) = taken {
                self.running += 1;
                return Some((owner, endpoint, gives));
            }
        }
        None
    }
}

impl OwnerTurns {
    /// The endpoint that is next and has room; its turn counts.
    fn take_next(&mut self, quota: Quota) -> Option<(Arc<str>, oneshot::Sender<Turn>)> {
        for _ in 0..self.next.len() {
            let name = self.next.pop_front()?;
            let Some(endpoint) = self.endpoints.get_mut(&name) else { continue };
            // some do not wait any more
            while endpoint.waiting.front().is_some_and(oneshot::Sender::is_closed) {
                endpoint.waiting.pop_front();
            }
            let has_room = quota.has_room(&Owner::anonymous(), self.running, endpoint.running);
            let taken = if has_room { endpoint.waiting.pop_front() } else { None };
            endpoint.running += usize::from(taken.is_some());
            if endpoint.waiting.is_empty() {
                endpoint.is_in_line = false;
                if endpoint.running == 0 {
                    self.endpoints.remove(&name);
                }
            } else {
                self.next.push_back(name.clone());
            }
            if let Some(gives) = taken {
                self.running += 1;
                return Some((name, gives));
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut state = self.turns.state.lock();
            state.running -= 1;
            if let Some(of_owner) = state.owners.get_mut(&self.owner) {
                of_owner.running -= 1;
                if let Some(endpoint) = of_owner.endpoints.get_mut(&self.endpoint) {
                    endpoint.running -= 1;
                    if endpoint.running == 0 && !endpoint.is_in_line {
                        of_owner.endpoints.remove(&self.endpoint);
                    }
                }
                if of_owner.running == 0 && !of_owner.is_in_line {
                    state.owners.remove(&self.owner);
                }
            }
        }
        self.turns.give();
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::principal(name.into())
    }

    /// Waits for a turn in a task.
    fn waits(turns: &Arc<Turns>, name: &str, endpoint: &str) -> JoinHandle<Turn> {
        let (turns, owner, endpoint) = (turns.clone(), owner(name), endpoint.to_owned());
        tokio::spawn(async move { turns.wait(&owner, &endpoint).await })
    }

    /// Lets every task run that can.
    async fn settle() {
        for _ in 0..100 {
            yield_now().await;
        }
    }

    fn done(tasks: &[JoinHandle<Turn>]) -> usize {
        tasks.iter().filter(|task| task.is_finished()).count()
    }

    #[tokio::test]
    async fn slow_endpoints_of_a_principal_leave_turns_for_its_other_endpoints_and_other_principals() {
        let turns = Turns::new(512);
        // four messages of each of 64 subscriptions, all of which hang
        let mut hung = Vec::new();
        for endpoint in 0..64 {
            hung.extend((0..4).map(|_| waits(&turns, "ada", &format!("slow-{endpoint}"))));
        }
        settle().await;
        assert!(done(&hung) < 256, "not all of her turns are taken: {}", done(&hung));
        let fast = [waits(&turns, "ada", "fast"), waits(&turns, "bob", "fast")];
        settle().await;
        assert_eq!(done(&fast), 2);
        // all at one endpoint, which has half of her turns
        let turns = Turns::new(512);
        let hung: Vec<_> = (0..1000).map(|_| waits(&turns, "ada", "slow")).collect();
        settle().await;
        assert_eq!(done(&hung), 128);
        let fast: Vec<_> = (0..10).map(|_| waits(&turns, "ada", "fast")).collect();
        settle().await;
        assert_eq!(done(&fast), 10);
    }

    #[tokio::test]
    async fn those_who_wait_get_turns_in_order_and_none_is_lost_with_one_who_does_not_wait_any_more() {
        let turns = Turns::new(8);
        // two of eight are hers at one endpoint
        let first: Vec<_> = (0..2).map(|_| waits(&turns, "ada", "a")).collect();
        settle().await;
        assert_eq!(done(&first), 2);
        let mut waiting: Vec<_> = (0..6).map(|_| waits(&turns, "ada", "a")).collect();
        settle().await;
        assert_eq!(done(&waiting), 0);
        waiting.remove(0).abort();
        settle().await;
        for task in first {
            drop(task.await.unwrap());
        }
        settle().await;
        let finished: Vec<_> = waiting.iter().map(JoinHandle::is_finished).collect();
        assert_eq!(finished, [true, true, false, false, false]);
        for task in waiting {
            drop(task.await.unwrap());
        }
        let state = turns.state.lock();
        assert!(state.running == 0 && state.owners.is_empty() && state.next.is_empty(), "{state:?}");
    }

    #[tokio::test]
    async fn a_turn_that_was_given_to_one_who_has_gone_meanwhile_is_given_to_the_next() {
        let turns = Turns::new(8);
        let first: Vec<_> = (0..2).map(|_| waits(&turns, "ada", "a")).collect();
        settle().await;
        let (ada, mut gone) = (owner("ada"), Vec::new());
        for _ in 0..2 {
            let mut waiting = Box::pin(turns.wait(&ada, "a"));
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
            gone.push(waiting);
        }
        let last = waits(&turns, "ada", "a");
        settle().await;
        for task in first {
            drop(task.await.unwrap());
        }
        // both have been given a turn that they have not taken
        drop(gone);
        drop(last.await.unwrap());
        assert!(turns.state.lock().owners.is_empty());
    }
}
