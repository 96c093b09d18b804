//! A test of the requirements on a store that replicas share.

use std::{future::poll_fn, pin::Pin, task::Poll, time::Duration};

use tokio::time::{sleep, timeout};

use crate::core::{
    crypto::random_id,
    store::{
        Append, Appended, Condition, LogPage, Rate, Received, Shared, Stored, Subscription, Table, Take,
        Taken, Value, Write, Written,
    },
};

/// Long enough for any operation, and for a message to arrive.
const LIMIT: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_secs(3600);

/// Checks that a store behaves as [`Shared`] specifies; this takes a second or two.
///
/// It uses tables and topics of random names, and leaves nothing behind that does not expire within an hour.
///
/// ```
/// use mcp_runtime::{store::Memory, testing::check_shared};
///
/// # #[mcp_runtime::main]
/// # async fn main() -> mcp_runtime::Result<()> {
/// check_shared(&Memory::default()).await;
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// The store violates a requirement; the message says which.
pub async fn check_shared(store: &impl Shared) {
    check(store).await;
}

async fn check(store: &dyn Shared) {
    wait("open", store.open()).await;
    versions_count_and_conditions_hold(store).await;
    values_expire(store).await;
    limits_hold(store).await;
    of_concurrent_writes_one_wins(store).await;
    rates_are_held(store).await;
    rates_have_places(store).await;
    entries_have_positions(store).await;
    logs_are_bounded_and_expire(store).await;
    an_owner_has_its_share_of_the_logs(store).await;
    messages_reach_every_subscriber(store).await;
}

fn random_name(what: &str) -> String {
    format!("check/{what}-{}", random_id().expect("randomness"))
}

fn table(values: usize, bytes: usize, share_percent: u8) -> Table {
    Table::new(&random_name("table"), values, bytes, share_percent)
}

async fn wait<T>(what: &str, operation: Stored<'_, T>) -> T {
    match timeout(LIMIT, operation).await {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => panic!("`{what}` fails: {error}"),
        Err(_) => panic!("`{what}` takes longer than {LIMIT:?}"),
    }
}

/// One table, and what is put into it.
struct Checked<'a> {
    store: &'a dyn Shared,
    table: Table,
}

impl Checked<'_> {
    async fn put_as(&self, owner: &str, key: &str, bytes: &[u8], condition: Condition) -> Written {
        self.put_for(HOUR, owner, key, bytes, condition).await
    }

    async fn put_for(
        &self,
        time: Duration,
        owner: &str,
        key: &str,
        bytes: &[u8],
        condition: Condition,
    ) -> Written {
        let write = Write { bytes, owner, expires_in: time, condition };
        wait("put", self.store.put(&self.table, key, write)).await
    }

    async fn put(&self, key: &str, bytes: &[u8], condition: Condition) -> Written {
        self.put_as("ada", key, bytes, condition).await
    }

    async fn get(&self, key: &str) -> Option<Value> {
        wait("get", self.store.get(&self.table, key)).await
    }

    async fn take(&self, owner: &str, key: &str, rate: Rate, times: u32) -> Taken {
        wait("take", self.store.take(&self.table, key, Take { owner, rate, times })).await
    }

    async fn remove(&self, key: &str) {
        wait("remove", self.store.remove(&self.table, key)).await;
    }
}

async fn versions_count_and_conditions_hold(store: &dyn Shared) {
    let checked = Checked { store, table: table(100, 10_000, 100) };
    let other = Checked { store, table: table(100, 10_000, 100) };
    let value = |bytes: &[u8], version| Some(Value { bytes: bytes.to_vec(), version });
    let every_byte: Vec<u8> = (0..=255).collect();

    assert_eq!(checked.get("a").await, None, "it was not put yet");
    assert_eq!(checked.put("a", b"x", Condition::Version(1)).await, Written::Conflict, "it was not put yet");
    assert_eq!(checked.put("a", &every_byte, Condition::Absent).await, Written::Stored);
    assert_eq!(checked.get("a").await, value(&every_byte, 1), "every byte comes back, as version 1");
    assert_eq!(other.get("a").await, None, "another table has keys of its own");
    assert_eq!(checked.get("A").await, None, "keys are not folded");

    assert_eq!(checked.put("a", b"x", Condition::Absent).await, Written::Conflict, "there is a value");
    assert_eq!(checked.put("a", b"x", Condition::Version(2)).await, Written::Conflict, "it has version 1");
    assert_eq!(checked.get("a").await, value(&every_byte, 1), "a conflict changes nothing");
    assert_eq!(checked.put("a", b"", Condition::Version(1)).await, Written::Stored);
    assert_eq!(checked.get("a").await, value(b"", 2), "a replaced version grows by one; values may be empty");
    assert_eq!(checked.put("a", b"y", Condition::Version(1)).await, Written::Conflict, "version 1 is gone");
    assert_eq!(checked.put("a", b"y", Condition::Version(2)).await, Written::Stored);
    assert_eq!(checked.get("a").await, value(b"y", 3));
    assert_eq!(checked.put("a", b"z", Condition::Always).await, Written::Stored);
    assert_eq!(checked.get("a").await, value(b"z", 1), "what is put always has version 1");

    checked.remove("a").await;
    checked.remove("a").await;
    assert_eq!(checked.get("a").await, None, "it was removed");
    assert_eq!(checked.put("a", b"x", Condition::Absent).await, Written::Stored, "the key is free again");
    checked.remove("a").await;
}

async fn values_expire(store: &dyn Shared) {
    let checked = Checked { store, table: table(2, 10_000, 100) };
    let short = Duration::from_millis(300);
    assert_eq!(checked.put_for(short, "ada", "a", b"x", Condition::Absent).await, Written::Stored);
    assert_eq!(checked.put_for(short, "ada", "b", b"x", Condition::Always).await, Written::Stored);
    assert_eq!(checked.put_for(HOUR, "ada", "b", b"y", Condition::Version(1)).await, Written::Stored);
    assert_eq!(checked.put("c", b"x", Condition::Absent).await, Written::Full, "two values are kept");
    sleep(short * 2).await;
    assert_eq!(checked.get("a").await, None, "it has expired");
    assert!(checked.get("b").await.is_some(), "the last write says when a value expires");
    assert_eq!(checked.put("a", b"x", Condition::Version(1)).await, Written::Conflict, "it has expired");
    assert_eq!(
        checked.put("c", b"x", Condition::Absent).await,
        Written::Stored,
        "expired values do not count"
    );
    assert_eq!(checked.put("a", b"x", Condition::Absent).await, Written::Full);
}

async fn limits_hold(store: &dyn Shared) {
    let checked = Checked { store, table: table(4, 100, 50) };
    let put = async |owner: &str, key: &str, bytes: usize| {
        checked.put_as(owner, key, &vec![b'x'; bytes], Condition::Always).await
    };
    assert_eq!(put("ada", "a1", 10).await, Written::Stored);
    assert_eq!(put("ada", "a2", 10).await, Written::Stored);
    assert_eq!(put("ada", "a3", 10).await, Written::Full, "an owner has its share of the values");
    assert_eq!(checked.get("a3").await, None, "what does not fit is not there");
    assert_eq!(put("ada", "a2", 40).await, Written::Stored, "a value that is replaced gives its bytes back");
    assert_eq!(put("ada", "a2", 41).await, Written::Full, "an owner has its share of the bytes");
    assert_eq!(checked.get("a2").await.map(|value| value.bytes.len()), Some(40), "it is as it was");
    assert_eq!(put("bob", "b1", 10).await, Written::Stored, "another owner has a share of its own");
    assert_eq!(put("bob", "b2", 41).await, Written::Full);
    assert_eq!(put("bob", "b2", 10).await, Written::Stored);
    assert_eq!(put("eve", "e1", 1).await, Written::Full, "the table is full for everybody");
    assert_eq!(put("eve", "a1", 1).await, Written::Stored, "a value that is replaced gives its place back");
    assert_eq!(put("ada", "a3", 1).await, Written::Full, "the table is full still");
    checked.remove("a1").await;
    assert_eq!(put("ada", "a3", 1).await, Written::Stored, "a value that is removed gives its place back");
    for key in ["a1", "a2", "a3", "b1", "b2"] {
        checked.remove(key).await;
    }
    for n in 0..4 {
        assert_eq!(put("local", &n.to_string(), 25).await, Written::Stored, "`local` has everything");
    }
    assert_eq!(put("local", "4", 0).await, Written::Full);
}

async fn of_concurrent_writes_one_wins(store: &dyn Shared) {
    let checked = Checked { store, table: table(100, 10_000, 100) };
    let won = |outcomes: &[Written]| outcomes.iter().filter(|written| **written == Written::Stored).count();
    for (condition, version) in
        [(Condition::Absent, 1), (Condition::Version(1), 2), (Condition::Version(2), 3)]
    {
        let writes = (0..16_u8).map(|n| {
            let checked = &checked;
            async move { checked.put("a", &[n], condition).await }
        });
        let outcomes = join_all(writes).await;
        assert_eq!(won(&outcomes), 1, "of writes under {condition:?}, {outcomes:?}");
        let found = checked.get("a").await.expect("what has won");
        let winner = outcomes.iter().position(|written| *written == Written::Stored);
        assert_eq!((Some(usize::from(found.bytes[0])), found.version), (winner, version));
    }
    let small = Checked { store, table: table(4, 10_000, 100) };
    let writes = (0..16_u8).map(|n| {
        let small = &small;
        async move { small.put(&n.to_string(), &[n], Condition::Absent).await }
    });
    assert_eq!(won(&join_all(writes).await), 4, "no more than fit into the table");
}

async fn rates_are_held(store: &dyn Shared) {
    let checked = Checked { store, table: table(100, 10_000, 100) };
    let other = Checked { store, table: table(100, 10_000, 100) };
    let rate = Rate::new(4, HOUR);
    assert_eq!(checked.take("ada", "a", rate, 3).await, Taken::Granted);
    let near = |taken: Taken, wait: Duration| {
        let fits = matches!(taken, Taken::Wait(found) if found <= wait && found + LIMIT > wait);
        assert!(fits, "{taken:?} is not `Wait` of about {wait:?}");
    };
    near(checked.take("ada", "a", rate, 2).await, HOUR / 4);
    assert_eq!(checked.take("ada", "a", rate, 1).await, Taken::Granted, "a refusal takes nothing");
    near(checked.take("ada", "a", rate, 1).await, HOUR / 4);
    near(checked.take("ada", "a", rate, 4).await, HOUR);
    assert_eq!(checked.take("bob", "a", rate, 1).await, Taken::Granted, "each owner has the rate");
    assert_eq!(checked.take("ada", "b", rate, 1).await, Taken::Granted, "each key has it");
    assert_eq!(other.take("ada", "a", rate, 1).await, Taken::Granted, "each table has it");
    assert_eq!(checked.get("a").await, None, "keys of rates and of values are apart");
    near(checked.take("ada", "a", Rate::new(2, HOUR), 1).await, HOUR / 2);

    let often = Rate::new(5, Duration::from_millis(500));
    assert_eq!(checked.take("ada", "often", often, 5).await, Taken::Granted);
    sleep(Duration::from_millis(150)).await;
    assert_eq!(checked.take("ada", "often", often, 1).await, Taken::Granted, "one comes back after 100 ms");

    let takes = (0..16).map(|_| {
        let checked = &checked;
        async move { checked.take("ada", "at once", Rate::new(5, HOUR), 1).await }
    });
    let taken = join_all(takes).await;
    let granted = taken.iter().filter(|taken| **taken == Taken::Granted).count();
    assert_eq!(granted, 5, "of takes at once, {taken:?}");
}

async fn rates_have_places(store: &dyn Shared) {
    let checked = Checked { store, table: table(4, 0, 50) };
    let (rate, short) = (Rate::new(2, HOUR), Rate::new(1, Duration::from_millis(300)));
    for (owner, key, times) in [("ada", "a", 2), ("ada", "b", 1), ("bob", "a", 2), ("bob", "b", 2)] {
        assert_eq!(checked.take(owner, key, rate, times).await, Taken::Granted);
    }
    assert_eq!(checked.take("ada", "c", rate, 1).await, Taken::Full, "an owner has its share of the keys");
    assert_eq!(checked.take("eve", "a", rate, 1).await, Taken::Granted, "another owner gets a place");
    for (owner, key) in [("ada", "a"), ("bob", "a"), ("bob", "b")] {
        let taken = checked.take(owner, key, rate, 1).await;
        assert!(
            matches!(taken, Taken::Wait(_)),
            "{owner} {key}: what was used least is forgotten: {taken:?}"
        );
    }
    assert_eq!(checked.take("ada", "b", rate, 2).await, Taken::Granted, "it was forgotten");
    let again = checked.take("eve", "a", rate, 2).await;
    assert_eq!(again, Taken::Granted, "it has made room for what was used more");

    let checked = Checked { store, table: table(2, 0, 50) };
    assert_eq!(checked.take("ada", "a", short, 1).await, Taken::Granted);
    assert_eq!(checked.take("ada", "b", short, 1).await, Taken::Full);
    sleep(Duration::from_millis(600)).await;
    assert_eq!(checked.take("ada", "b", short, 1).await, Taken::Granted, "what has come back has no place");
}

/// The logs of one table, each of at most 5 entries and 100 bytes.
struct CheckedLogs<'a> {
    store: &'a dyn Shared,
    table: Table,
}

impl CheckedLogs<'_> {
    async fn append_for(
        &self,
        time: Duration,
        owner: &str,
        log: &str,
        position: u64,
        bytes: &[u8],
    ) -> Appended {
        let append = Append { position, bytes, owner, max_entries: 5, max_bytes: 100, expires_in: time };
        wait("append", self.store.append(&self.table, log, append)).await
    }

    async fn append(&self, owner: &str, log: &str, position: u64, bytes: &[u8]) -> Appended {
        self.append_for(HOUR, owner, log, position, bytes).await
    }

    async fn page(&self, log: &str, after: u64, limit: usize) -> Option<LogPage> {
        wait("read_after", self.store.read_after(&self.table, log, after, limit)).await
    }

    /// The entries after a position, and the first and last position of the log.
    async fn read(&self, log: &str, after: u64) -> Option<(Vec<(u64, Vec<u8>)>, u64, u64)> {
        let page = self.page(log, after, 100).await?;
        let entries = page.entries.iter().map(|entry| (entry.position, entry.bytes.to_vec())).collect();
        Some((entries, page.first, page.last))
    }

    /// The positions of the entries of a log.
    async fn positions(&self, log: &str) -> Option<Vec<u64>> {
        Some(self.page(log, 0, 100).await?.entries.iter().map(|entry| entry.position).collect())
    }
}

async fn entries_have_positions(store: &dyn Shared) {
    let [logs, other] = [(); 2].map(|()| CheckedLogs { store, table: table(100, 10_000, 100) });
    let many_bytes: Vec<u8> = (0..50).chain(206..=255).collect();
    assert_eq!(logs.page("a", 0, 100).await, None, "nothing was appended yet");
    assert_eq!(logs.append("ada", "a", 1, b"x").await, Appended::Stored);
    assert_eq!(logs.append("ada", "a", 1, b"y").await, Appended::Conflict(2), "the position has an entry");
    assert_eq!(logs.append("ada", "a", 3, b"y").await, Appended::Conflict(2), "positions are consecutive");
    assert_eq!(logs.append("ada", "a", 2, b"x").await, Appended::Stored, "entries may be equal");
    assert_eq!(logs.append("bob", "a", 3, b"").await, Appended::Stored, "or empty, or of another owner");
    let all = vec![(1, b"x".to_vec()), (2, b"x".to_vec()), (3, Vec::new())];
    assert_eq!(logs.read("a", 0).await, Some((all.clone(), 1, 3)));
    assert_eq!(logs.read("a", 1).await, Some((all[1..].to_vec(), 1, 3)));
    assert_eq!(logs.read("a", 3).await, Some((Vec::new(), 1, 3)), "there is nothing after the last one");
    assert_eq!(logs.read("a", 9).await, Some((Vec::new(), 1, 3)), "nor after one that was not given yet");
    let page = logs.page("a", 1, 1).await.expect("a log");
    assert_eq!((page.entries.len(), page.entries[0].position), (1, 2), "as many as asked for");
    assert!(logs.page("a", 1, 0).await.is_some_and(|page| page.entries.is_empty() && page.last == 3));
    assert_eq!(other.read("a", 0).await, None, "another table has logs of its own");
    // a new log may begin anywhere
    let late = 1 << 52;
    assert_eq!(logs.append("ada", "b", late, &many_bytes).await, Appended::Stored);
    assert_eq!(logs.append("ada", "b", 1, b"").await, Appended::Conflict(late + 1));
    assert_eq!(
        logs.read("b", 0).await,
        Some((vec![(late, many_bytes)], late, late)),
        "every byte comes back"
    );
    // values are something else
    let values = Checked { store, table: logs.table.clone() };
    assert_eq!(values.get("a").await, None, "a log is not a value");
    assert_eq!(values.put("a", b"x", Condition::Absent).await, Written::Stored);
    values.remove("a").await;
    assert_eq!(logs.positions("a").await, Some(vec![1, 2, 3]), "a value is not a log");

    let appends = (0..16_u8).map(|n| {
        let logs = &logs;
        async move { logs.append("ada", "c", 1, &[n]).await }
    });
    let outcomes = join_all(appends).await;
    let stored = outcomes.iter().filter(|appended| **appended == Appended::Stored).count();
    assert_eq!(stored, 1, "of concurrent appends at one position, {outcomes:?}");
    let conflicts = outcomes.iter().filter(|appended| **appended == Appended::Conflict(2)).count();
    assert_eq!((conflicts, logs.positions("c").await), (15, Some(vec![1])));
}

async fn logs_are_bounded_and_expire(store: &dyn Shared) {
    let logs = CheckedLogs { store, table: table(100, 10_000, 100) };
    for position in 1..=7 {
        assert_eq!(logs.append("ada", "a", position, b"x").await, Appended::Stored);
    }
    assert_eq!(logs.positions("a").await, Some(vec![3, 4, 5, 6, 7]), "the oldest of its entries have gone");
    let page = logs.page("a", 1, 100).await.expect("a log");
    assert_eq!((page.first, page.last), (3, 7), "which a reader learns");
    assert_eq!(logs.append("ada", "a", 8, &[0; 98]).await, Appended::Stored);
    assert_eq!(logs.positions("a").await, Some(vec![6, 7, 8]), "a log has so many bytes");
    assert_eq!(logs.append("ada", "a", 9, &[0; 101]).await, Appended::TooLarge);
    assert_eq!(logs.positions("a").await, Some(vec![6, 7, 8]), "nothing has changed");
    assert_eq!(logs.append("ada", "a", 9, &[0; 100]).await, Appended::Stored);
    assert_eq!(logs.positions("a").await, Some(vec![9]));

    let short = Duration::from_millis(300);
    assert_eq!(logs.append_for(short, "ada", "b", 1, b"x").await, Appended::Stored);
    assert_eq!(logs.append_for(short, "ada", "c", 1, b"x").await, Appended::Stored);
    assert_eq!(logs.append_for(HOUR, "ada", "c", 2, b"x").await, Appended::Stored);
    sleep(short * 2).await;
    assert_eq!(logs.positions("b").await, None, "it has expired");
    assert_eq!(logs.positions("c").await, Some(vec![1, 2]), "the last append says when a log expires");
    assert_eq!(logs.append("ada", "b", 7, b"x").await, Appended::Stored, "a new log begins anywhere");
    assert_eq!(logs.positions("b").await, Some(vec![7]));
}

async fn an_owner_has_its_share_of_the_logs(store: &dyn Shared) {
    let logs = CheckedLogs { store, table: table(4, 200, 50) };
    let append = async |owner: &str, log: &str, position: u64, bytes: usize| {
        assert_eq!(logs.append(owner, log, position, &vec![0; bytes]).await, Appended::Stored, "{log}");
    };
    let there = async |names: &[&str]| {
        for name in ["a1", "a2", "a3", "b1", "b2", "e1"] {
            assert_eq!(logs.positions(name).await.is_some(), names.contains(&name), "{name} of {names:?}");
        }
    };
    append("bob", "b1", 1, 10).await;
    append("ada", "a1", 1, 10).await;
    append("ada", "a2", 1, 10).await;
    append("ada", "a1", 2, 10).await;
    append("ada", "a3", 1, 10).await;
    there(&["a1", "a3", "b1"]).await;
    // of its bytes, 100 are an owner's
    append("ada", "a3", 2, 80).await;
    there(&["a3", "b1"]).await;
    append("ada", "a3", 3, 20).await;
    assert_eq!(logs.positions("a3").await, Some(vec![2, 3]), "then the oldest entries of its only log");
    append("ada", "a1", 3, 5).await;
    there(&["a1", "b1"]).await;
    assert_eq!(logs.append("ada", "a2", 1, &[0; 101]).await, Appended::TooLarge, "more than its share");

    append("ada", "a2", 1, 60).await;
    append("bob", "b2", 1, 80).await;
    there(&["a1", "a2", "b1", "b2"]).await;
    // too many logs and too many bytes of all together
    append("bob", "b1", 2, 1).await;
    append("eve", "e1", 1, 70).await;
    let kept = [logs.positions("a2").await.is_some(), logs.positions("b2").await.is_some()];
    assert!(logs.positions("e1").await.is_some() && kept.contains(&true), "the new one goes last");
    let mut total = 0;
    for name in ["a1", "a2", "b1", "b2", "e1"] {
        let page = logs.page(name, 0, 100).await;
        total += page.map_or(0, |page| page.entries.iter().map(|entry| entry.bytes.len()).sum::<usize>());
    }
    assert!(total <= 200, "{total} bytes of all together");

    let few = CheckedLogs { store, table: table(4, 200, 50) };
    for (owner, position) in [("ada", 1), ("bob", 1), ("ada", 2), ("bob", 2)] {
        assert_eq!(few.append(owner, owner, position, &[0; 50]).await, Appended::Stored);
    }
    assert_eq!(few.append("eve", "eve", 1, &[0; 10]).await, Appended::Stored);
    let kept = [few.positions("ada").await, few.positions("bob").await];
    let [all, newest] = [Some(vec![1, 2]), Some(vec![2])];
    assert!(
        kept == [all.clone(), newest.clone()] || kept == [newest, all],
        "of the only log of an owner, the oldest entry goes: {kept:?}"
    );

    let alone = CheckedLogs { store, table: table(2, 200, 50) };
    for (log, position) in [("a", 1), ("b", 1), ("a", 2)] {
        assert_eq!(alone.append("local", log, position, &[0; 50]).await, Appended::Stored);
    }
    assert_eq!(alone.positions("a").await, Some(vec![1, 2]), "`local` has everything");
    assert_eq!(alone.append("local", "a", 3, &[0; 90]).await, Appended::Stored);
    assert_eq!([alone.positions("a").await, alone.positions("b").await], [Some(vec![3]), Some(vec![1])]);
}

async fn messages_reach_every_subscriber(store: &dyn Shared) {
    let (topic, other) = (random_name("topic"), random_name("topic"));
    wait("publish", store.publish(&topic, b"too early")).await;
    let mut one = wait("subscribe", store.subscribe(&topic)).await;
    let mut two = wait("subscribe", store.subscribe(&topic)).await;
    let mut third = wait("subscribe", store.subscribe(&other)).await;
    for n in 0..20_u8 {
        wait("publish", store.publish(&topic, &[n, 0, 255])).await;
    }
    wait("publish", store.publish(&other, b"")).await;
    for subscription in [&mut one, &mut two] {
        for n in 0..20_u8 {
            assert_eq!(
                next(subscription).await,
                Received::Message([n, 0, 255].as_slice().into()),
                "in order"
            );
        }
    }
    assert_eq!(next(&mut third).await, Received::Message([].as_slice().into()), "only of its own topic");
    drop((one, third));
    wait("publish", store.publish(&topic, b"again")).await;
    assert_eq!(next(&mut two).await, Received::Message(b"again".as_slice().into()), "others have left");
}

async fn next(subscription: &mut Subscription) -> Received {
    match timeout(LIMIT, subscription.next()).await {
        Ok(Some(received)) => received,
        Ok(None) => panic!("the subscription has ended"),
        Err(_) => panic!("a message did not arrive within {LIMIT:?}"),
    }
}

/// Runs futures at once.
async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<Pin<Box<_>>> = futures.map(Box::pin).collect();
    let mut outcomes: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut waits = false;
        for (future, outcome) in running.iter_mut().zip(&mut outcomes) {
            if outcome.is_none() {
                match future.as_mut().poll(cx) {
                    Poll::Ready(value) => *outcome = Some(value),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    outcomes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::store::Memory;

    /// What a store does otherwise than it should.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fault {
        IgnoresConditions,
        KeepsValues,
        HasMoreRoom,
        HasMorePlacesForRates,
        GrantsRates,
        KeepsLogs,
        LosesMessages,
    }

    struct Faulty(Memory, Fault);

    impl Faulty {
        fn has(&self, fault: Fault) -> bool {
            self.1 == fault
        }

        /// A table of twice the size.
        fn larger(&self, table: &Table) -> Table {
            Table::new(table.name(), 2 * table.max_values(), 2 * table.max_bytes(), 100)
        }
    }

    impl Shared for Faulty {
        fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
            self.0.get(table, key)
        }

        fn put<'a>(&'a self, table: &'a Table, key: &'a str, mut write: Write<'a>) -> Stored<'a, Written> {
            if self.has(Fault::IgnoresConditions) {
                write.condition = Condition::Always;
            }
            if self.has(Fault::KeepsValues) {
                write.expires_in = HOUR;
            }
            if !self.has(Fault::HasMoreRoom) {
                return self.0.put(table, key, write);
            }
            Box::pin(async move { self.0.put(&self.larger(table), key, write).await })
        }

        fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
            self.0.remove(table, key)
        }

        fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
            if self.has(Fault::GrantsRates) {
                return Box::pin(async { Ok(Taken::Granted) });
            }
            if !self.has(Fault::HasMorePlacesForRates) {
                return self.0.take(table, key, take);
            }
            Box::pin(async move { self.0.take(&self.larger(table), key, take).await })
        }

        fn append<'a>(
            &'a self,
            table: &'a Table,
            log: &'a str,
            mut append: Append<'a>,
        ) -> Stored<'a, Appended> {
            if self.has(Fault::KeepsLogs) {
                append.expires_in = HOUR;
            }
            self.0.append(table, log, append)
        }

        fn read_after<'a>(
            &'a self,
            table: &'a Table,
            log: &'a str,
            position: u64,
            limit: usize,
        ) -> Stored<'a, Option<LogPage>> {
            self.0.read_after(table, log, position, limit)
        }

        fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
            if self.has(Fault::LosesMessages) && message.first() == Some(&7) {
                return Box::pin(async { Ok(()) });
            }
            self.0.publish(topic, message)
        }

        fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
            self.0.subscribe(topic)
        }
    }

    #[tokio::test]
    async fn a_store_with_any_of_these_faults_is_refused() {
        let checks = [
            Fault::IgnoresConditions,
            Fault::KeepsValues,
            Fault::HasMoreRoom,
            Fault::HasMorePlacesForRates,
            Fault::GrantsRates,
            Fault::KeepsLogs,
            Fault::LosesMessages,
        ]
        .map(|fault| {
            let store = Faulty(Memory::default(), fault);
            (fault, tokio::spawn(async move { check_shared(&store).await }))
        });
        for (fault, check) in checks {
            assert!(check.await.is_err_and(|error| error.is_panic()), "{fault:?} is accepted");
        }
    }
}
