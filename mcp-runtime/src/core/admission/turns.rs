//! Units of a quota that owners wait for in turn. The work of an owner has parts, such as the endpoints to which it sends:
//! what waits for one part gets its turn in order, the parts of an owner in turn, and owners in turn. An owner has half of
//! the units, and a part as much of that as is said; an eighth is kept for those that have none, so that slow parts,
//! however many there are, do not hold up a fast one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::sync::oneshot;

use super::{Owner, Quota};
use crate::core::sync::Mutex;

/// Turns, each of which takes the same number of units.
pub(crate) struct Turns {
    quota: Quota,
    part_percent: u8,
    units: usize,
    state: Mutex<TurnState>,
}

/// Each that joins a line gets the next number, so that one that waited longer has a smaller one.
#[derive(Default)]
struct TurnState {
    used: usize,
    owners: HashMap<Owner, OwnerTurns>,
    /// Owners for which something waits.
    next: BTreeMap<u64, Owner>,
    last: u64,
}

#[derive(Default)]
struct OwnerTurns {
    used: usize,
    parts: HashMap<Arc<str>, PartTurns>,
    /// Parts for which something waits.
    next: BTreeMap<u64, Arc<str>>,
    /// Its number, if it is in line.
    number: u64,
}

#[derive(Default)]
struct PartTurns {
    used: usize,
    waiting: BTreeMap<u64, oneshot::Sender<Turn>>,
    /// Its number, if it is in line.
    number: u64,
}

/// A turn that was taken. Its units are released on drop.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    owner: Owner,
    part: Arc<str>,
    units: usize,
}

/// One that waits for a turn, and leaves the line on drop.
struct Waiting<'a> {
    turns: &'a Turns,
    owner: &'a Owner,
    part: &'a str,
    number: u64,
    has_turn: bool,
}

impl Turns {
    /// Turns of one unit each, at most `limit` of which are taken at once. A part may have this percentage of what its owner
    /// may have.
    pub(crate) fn new(limit: usize, part_percent: u8) -> Arc<Self> {
        Self::of_units(limit, part_percent, 1)
    }

    /// Turns of so many units, of which `limit` are in use at once. If a part may not have as many, each of its turns takes
    /// what it may have.
    pub(crate) fn of_units(limit: usize, part_percent: u8, units: usize) -> Arc<Self> {
        Arc::new(Self { quota: Quota::half(limit), part_percent, units, state: Mutex::default() })
    }

    /// Waits for a turn of this part of an owner's work.
    pub(crate) async fn wait(self: &Arc<Self>, owner: &Owner, part: &str) -> Turn {
        loop {
            let (gives, given) = oneshot::channel();
            let mut waiting = self.join(owner, part, gives);
            self.give();
            // one that waits is given its turn, or the queue has been dropped with the server
            if let Ok(turn) = given.await {
                waiting.has_turn = true;
                return turn;
            }
        }
    }

    fn join<'a>(&'a self, owner: &'a Owner, part: &'a str, gives: oneshot::Sender<Turn>) -> Waiting<'a> {
        let mut state = self.state.lock();
        let TurnState { owners, next, last, .. } = &mut *state;
        *last += 1;
        let number = *last;
        let of_owner = owners.entry(owner.clone()).or_default();
        let name: Arc<str> = part.into();
        let of_part = of_owner.parts.entry(name.clone()).or_default();
        if of_part.waiting.is_empty() {
            of_part.number = number;
            if of_owner.next.is_empty() {
                of_owner.number = number;
                next.insert(number, owner.clone());
            }
            of_owner.next.insert(number, name);
        }
        of_part.waiting.insert(number, gives);
        Waiting { turns: self, owner, part, number, has_turn: false }
    }

    /// Gives turns to those who wait, as far as there is room.
    fn give(self: &Arc<Self>) {
        let mut given = Vec::new();
        {
            let mut state = self.state.lock();
            while let Some((owner, part, units, gives)) = self.take_next(&mut state) {
                given.push((gives, Turn { turns: self.clone(), owner, part, units }));
            }
        }
        // one that does not wait any more gives its turn back, for which the lock must be free
        given.into_iter().for_each(|(gives, turn)| drop(gives.send(turn)));
    }

    /// The one who is next and has room, and its units, which count from now on.
    fn take_next(&self, state: &mut TurnState) -> Option<(Owner, Arc<str>, usize, oneshot::Sender<Turn>)> {
        let TurnState { used, owners, next, last } = state;
        if *used >= self.quota.limit {
            return None;
        }
        let (of_owner, of_part, units) = next.iter().find_map(|(number, owner)| {
            let of_owner = owners.get(owner)?;
            let quota = self.quota.of_part(owner, self.part_percent);
            let units = self.units.min(quota.share_of(&Owner::anonymous())).max(1);
            let has_room = self.quota.has_room(owner, *used, of_owner.used, units);
            let of_part = if has_room { of_owner.next_with_room(quota, units)? } else { return None };
            Some((*number, of_part, units))
        })?;
        let owner = next.remove(&of_owner)?;
        let of_owner = owners.get_mut(&owner)?;
        let name = of_owner.next.remove(&of_part)?;
        let of_part = of_owner.parts.get_mut(&name)?;
        let (_, gives) = of_part.waiting.pop_first()?;
        *used += units;
        of_owner.used += units;
        of_part.used += units;
        *last += 1;
        if !of_part.waiting.is_empty() {
            of_part.number = *last;
            of_owner.next.insert(*last, name.clone());
        }
        if !of_owner.next.is_empty() {
            of_owner.number = *last;
            next.insert(*last, owner.clone());
        }
        Some((owner, name, units, gives))
    }

    /// Takes units back that a turn has used.
    fn release(self: &Arc<Self>, owner: &Owner, part: &str, units: usize) {
        {
            let mut state = self.state.lock();
            state.used -= units;
            if let Some(OwnerTurns { used, parts, .. }) = state.owners.get_mut(owner)
                && let Some(of_part) = parts.get_mut(part)
            {
                *used -= units;
                of_part.used -= units;
            }
            state.tidy(owner, part);
        }
        self.give();
    }
}

impl TurnState {
    /// Takes a part and its owner out of the lines if nothing waits for them, and forgets those that have no units either.
    fn tidy(&mut self, owner: &Owner, part: &str) {
        let Some(of_owner) = self.owners.get_mut(owner) else { return };
        if let Some(of_part) = of_owner.parts.get(part)
            && of_part.waiting.is_empty()
        {
            of_owner.next.remove(&of_part.number);
            if of_part.used == 0 {
                of_owner.parts.remove(part);
            }
        }
        if of_owner.next.is_empty() {
            self.next.remove(&of_owner.number);
            if of_owner.used == 0 {
                self.owners.remove(owner);
            }
        }
    }
}

impl OwnerTurns {
    /// The number of the first part in line that has room.
    fn next_with_room(&self, quota: Quota, units: usize) -> Option<u64> {
        let mut line = self.next.iter();
        let has_room = |name| {
            let part = self.parts.get(name)?;
            quota.has_room(&Owner::anonymous(), self.used, part.used, units).then_some(())
        };
        line.find(|(_, name)| has_room(&***name).is_some()).map(|(number, _)| *number)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.has_turn {
            return;
        }
        let mut state = self.turns.state.lock();
        let of_owner = state.owners.get_mut(self.owner);
        if let Some(of_part) = of_owner.and_then(|of_owner| of_owner.parts.get_mut(self.part)) {
            of_part.waiting.remove(&self.number);
        }
        state.tidy(self.owner, self.part);
    }
}

impl Turn {
    /// Keeps only so many of its units.
    pub(crate) fn shrink(&mut self, units: usize) {
        let released = self.units.saturating_sub(units);
        self.units -= released;
        self.turns.release(&self.owner, &self.part, released);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.release(&self.owner, &self.part, self.units);
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
        let turns = Turns::new(512, 50);
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
        let turns = Turns::new(512, 50);
        let hung: Vec<_> = (0..1000).map(|_| waits(&turns, "ada", "slow")).collect();
        settle().await;
        assert_eq!(done(&hung), 128);
        let fast: Vec<_> = (0..10).map(|_| waits(&turns, "ada", "fast")).collect();
        settle().await;
        assert_eq!(done(&fast), 10);
    }

    #[tokio::test]
    async fn those_who_wait_get_turns_in_order_and_none_is_lost_with_one_who_does_not_wait_any_more() {
        let turns = Turns::new(8, 50);
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
        assert!(state.used == 0 && state.owners.is_empty() && state.next.is_empty());
    }

    #[tokio::test]
    async fn one_that_gives_up_leaves_nothing_though_its_owner_has_no_room() {
        let turns = Turns::new(8, 50);
        // all four of hers
        let held = ["a", "a", "b", "b"].map(|part| waits(&turns, "ada", part));
        settle().await;
        assert_eq!(done(&held), 4);
        let (ada, mut cx) = (owner("ada"), std::task::Context::from_waker(std::task::Waker::noop()));
        for part in 0..1000 {
            // at a part that has no room, and at those that nothing else waits for
            for part in ["a", &format!("part-{part}")] {
                let mut waiting = Box::pin(turns.wait(&ada, part));
                assert!(waiting.as_mut().poll(&mut cx).is_pending());
            }
        }
        {
            let state = turns.state.lock();
            let parts = &state.owners[&ada].parts;
            assert!(parts.len() == 2 && parts.values().all(|part| part.waiting.is_empty()));
            assert!(state.next.is_empty() && state.owners[&ada].next.is_empty());
        }
        for task in held {
            drop(task.await.unwrap());
        }
        assert!(turns.state.lock().owners.is_empty());
    }

    #[tokio::test]
    async fn a_turn_that_was_given_to_one_who_has_gone_meanwhile_is_given_to_the_next() {
        let turns = Turns::new(8, 50);
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

    #[cfg(feature = "events-webhook")]
    #[tokio::test]
    async fn turns_of_several_units_leave_to_others_what_they_give_back() {
        // eight units are hers, and four of these for one endpoint
        let turns = Turns::of_units(16, 50, 4);
        let tasks: Vec<_> = (0..3).map(|_| waits(&turns, "ada", "a")).collect();
        settle().await;
        assert_eq!(done(&tasks), 1);
        let mut tasks = tasks.into_iter();
        let mut first = tasks.next().unwrap().await.unwrap();
        first.shrink(1);
        settle().await;
        assert_eq!(tasks.as_slice().iter().filter(|task| task.is_finished()).count(), 0, "three are left");
        first.shrink(0);
        settle().await;
        assert_eq!(tasks.as_slice().iter().filter(|task| task.is_finished()).count(), 1);
        drop(first);
        for task in tasks {
            drop(task.await.unwrap());
        }
        assert!(turns.state.lock().owners.is_empty() && turns.state.lock().used == 0);
        // more than there are
        let small = Turns::of_units(4, 50, 100);
        drop(waits(&small, "ada", "a").await.unwrap());
        assert_eq!(small.state.lock().used, 0);
    }
}
