//! Limits of one call of the program: one deadline and one budget of bytes for everything that it causes, such as the pages
//! of a list, the rounds and tasks of a call, a new handshake, or waiting for another call. [`Operation::run`] returns in
//! time regardless of the server; links and lists charge the bytes that they receive.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    sync::Notify,
    task::AbortHandle,
    time::{Instant, sleep_until},
};

use super::{Error, connect::client_builder::ClientOptions};
use crate::core::sync::Mutex;

/// The shortest wait for the end of a limit, which a pause moves on and on.
const SHORTEST_SLEEP: Duration = Duration::from_millis(10);

/// Wakes the waits of a client when their time is over. One timer serves all of them: most waits end long before, and each
/// would have to enter its own with the runtime.
#[derive(Default)]
pub(in crate::client) struct Alarm(Arc<Waits>);

#[derive(Default)]
struct Waits {
    table: Mutex<WaitTable>,
    /// Is notified when the timer must end earlier.
    earlier: Notify,
}

#[derive(Default)]
struct WaitTable {
    /// By the numbers of the waits; `None` for one that is over, and for a free number.
    wakers: Vec<Option<(Instant, Waker)>>,
    free: Vec<usize>,
    /// When the timer ends: with the first wait, or before, if that has ended.
    end: Option<Instant>,
    /// The task that has the timer; it ends with the client.
    timer: Option<AbortHandle>,
}

/// A wait for an instant, until it is dropped.
struct Wait<'a> {
    waits: &'a Waits,
    number: usize,
}

impl Alarm {
    fn begin(&self, end: Instant, cx: &Context<'_>) -> Wait<'_> {
        let mut table = self.0.table.lock();
        let number = table.free.pop().unwrap_or(table.wakers.len());
        if number == table.wakers.len() {
            table.wakers.push(None);
        }
        table.wakers[number] = Some((end, cx.waker().clone()));
        if table.timer.as_ref().is_none_or(AbortHandle::is_finished) {
            // the first wait, or the runtime of the last timer has ended
            let waits = self.0.clone();
            table.timer = Some(tokio::spawn(async move { waits.ring().await }).abort_handle());
        }
        if table.end.is_none_or(|first| end < first) {
            table.end = Some(end);
            drop(table);
            self.0.earlier.notify_one();
        }
        Wait { waits: &self.0, number }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(timer) = self.0.table.lock().timer.take() {
            timer.abort();
        }
    }
}

impl Waits {
    async fn ring(&self) {
        loop {
            let Some(end) = self.table.lock().end else {
                self.earlier.notified().await;
                continue;
            };
            tokio::select! {
                () = sleep_until(end) => {}
                () = self.earlier.notified() => continue,
            }
            let (mut table, now) = (self.table.lock(), Instant::now());
            let over = |wait: &mut Option<(Instant, Waker)>| wait.take_if(|(end, _)| *end <= now);
            let over: Vec<_> = table.wakers.iter_mut().filter_map(over).collect();
            table.end = table.wakers.iter().flatten().map(|(end, _)| *end).min();
            drop(table);
            over.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }
}

impl Wait<'_> {
    fn is_over(&self, cx: &Context<'_>) -> bool {
        let mut table = self.waits.table.lock();
        let Some((_, waker)) = &mut table.wakers[self.number] else { return true };
        if !waker.will_wake(cx.waker()) {
            let old = mem::replace(waker, cx.waker().clone());
            // not under the lock: it may own what waits
            drop(table);
            drop(old);
        }
        false
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut table = self.waits.table.lock();
        let waker = table.wakers[self.number].take();
        table.free.push(self.number);
        drop(table);
        drop(waker);
    }
}

/// The kind of an operation, which determines its default time limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum OperationKind {
    /// A handshake, from the first byte to a connection that can be used.
    Connect,
    /// All pages of a list.
    List,
    /// Everything else.
    Call,
}

/// When a wait ends, and which option says so; `None` for a fixed limit.
#[derive(Clone, Copy)]
pub(in crate::client) struct TimeLimit {
    end: Instant,
    after: Duration,
    option: Option<&'static str>,
}

impl TimeLimit {
    /// A limit that begins now; `None` for one that is too long to be computed.
    pub(in crate::client) fn new(after: Duration, option: Option<&'static str>) -> Option<Self> {
        Some(Self { end: Instant::now().checked_add(after)?, after, option })
    }

    /// The same, of a request that was paused for that long since it began to wait; `None` if it was not paused.
    pub(in crate::client) fn after_pause(self, paused: Duration) -> Option<Self> {
        if paused.is_zero() { None } else { self.later(paused.max(SHORTEST_SLEEP)) }
    }

    /// The same, which ends later by that much.
    fn later(self, by: Duration) -> Option<Self> {
        if by.is_zero() {
            return Some(self);
        }
        Some(Self { end: self.end.checked_add(by)?, ..self })
    }

    /// The one that ends first.
    fn first(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if other.end < one.end { other } else { one }),
            (one, other) => one.or(other),
        }
    }
}

/// The limits of one operation; clones share them.
#[derive(Clone)]
pub(in crate::client) struct Operation(Arc<OperationState>);

struct OperationState {
    alarm: Arc<Alarm>,
    limit: Option<TimeLimit>,
    bytes: AtomicUsize,
    max_bytes: usize,
    questions: AtomicUsize,
    max_questions: usize,
    /// Whether a part of it is watched, which ends in time: no other timer is needed.
    is_watched: AtomicBool,
    pauses: PauseClock,
}

/// Measures times that do not count, such as that of a login.
#[derive(Default)]
pub(in crate::client) struct PauseClock {
    /// Whether there was ever a pause.
    was_paused: AtomicBool,
    pauses: Mutex<Pauses>,
}

#[derive(Default)]
struct Pauses {
    /// Since when, and how many pauses.
    running: Option<(Instant, usize)>,
    total: Duration,
}

/// A pause, until it is dropped.
pub(in crate::client) struct Pause<'a>(&'a PauseClock);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let mut pauses = self.0.pauses.lock();
        let Some((since, pausing)) = pauses.running else { return };
        pauses.running = Some((since, pausing - 1)).filter(|(_, pausing)| *pausing > 0);
        if pauses.running.is_none() {
            pauses.total += since.elapsed();
        }
    }
}

impl PauseClock {
    /// Begins a pause.
    pub(in crate::client) fn pause(&self) -> Pause<'_> {
        self.was_paused.store(true, Ordering::Release);
        self.pauses.lock().running.get_or_insert_with(|| (Instant::now(), 0)).1 += 1;
        Pause(self)
    }

    /// How long all pauses have lasted so far.
    pub(in crate::client) fn paused(&self) -> Duration {
        if !self.was_paused.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let pauses = self.pauses.lock();
        pauses.total + pauses.running.map_or(Duration::ZERO, |(since, _)| since.elapsed())
    }
}

impl Operation {
    /// An operation that begins now; `timeout` is the program's own limit for it.
    pub(in crate::client) fn new(
        kind: OperationKind,
        timeout: Option<Duration>,
        options: &ClientOptions,
    ) -> Self {
        let limits = &options.limits;
        let (own, option) = match kind {
            OperationKind::Connect => (limits.connect_timeout, "connect_timeout"),
            OperationKind::List => (limits.list_timeout, "list_timeout"),
            OperationKind::Call => (options.timeout, "timeout"),
        };
        let (after, option) = match timeout {
            Some(timeout) => (timeout, "timeout"),
            None if own < options.timeout => (own, option),
            None => (options.timeout, "timeout"),
        };
        Self::within(options, TimeLimit::new(after, Some(option)))
    }

    /// A handshake in the middle of another operation, which ends with that at the latest.
    pub(in crate::client) fn handshake(parent: Option<&Self>, options: &ClientOptions) -> Self {
        let own = TimeLimit::new(options.limits.connect_timeout, Some("connect_timeout"));
        Self::within(options, TimeLimit::first(own, parent.and_then(Self::time_limit)))
    }

    /// An operation with this limit, such as a message in the background.
    pub(in crate::client) fn within(options: &ClientOptions, limit: Option<TimeLimit>) -> Self {
        Self(Arc::new(OperationState {
            alarm: options.alarm.clone(),
            limit,
            bytes: AtomicUsize::new(0),
            max_bytes: options.limits.call_bytes,
            questions: AtomicUsize::new(0),
            max_questions: options.limits.input_requests_per_call,
            is_watched: AtomicBool::new(false),
            pauses: PauseClock::default(),
        }))
    }

    /// When the operation ends, if nothing pauses it from now on.
    fn time_limit(&self) -> Option<TimeLimit> {
        self.0.limit?.later(self.paused())
    }

    /// The output of `future`, which is dropped when the time is over.
    pub(in crate::client) async fn run<T>(
        &self,
        future: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.watch(None, future).await?
    }

    /// The output of `future`, which is dropped when the time of the operation is over, or that of `part`, a limit of its
    /// own. Times in which the operation is paused do not count.
    pub(in crate::client) async fn watch<T>(
        &self,
        part: Option<TimeLimit>,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let before = self.paused();
        let whole = self.0.limit.and_then(|limit| limit.later(before));
        let Some(limit) = TimeLimit::first(whole, part) else { return Ok(future.await) };
        let _watched = part.is_some().then(|| self.watched());
        let (mut future, mut end, mut wait) = (pin!(future), limit.end, None::<Wait<'_>>);
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            match &wait {
                // a part that is watched ends in time
                None if part.is_none() && self.0.is_watched.load(Ordering::Relaxed) => return Poll::Pending,
                None => {}
                Some(wait) if !wait.is_over(cx) => return Poll::Pending,
                Some(_) => match limit.later(self.paused().saturating_sub(before)) {
                    Some(moved) if moved.end > end => end = moved.end.max(end + SHORTEST_SLEEP),
                    _ => {
                        let timeout = Error::Timeout { after: limit.after, option: limit.option };
                        return Poll::Ready(Err(timeout));
                    }
                },
            }
            wait = Some(self.0.alarm.begin(end, cx));
            Poll::Pending
        })
        .await
    }

    /// Says that a part of the operation is watched, until the guard is dropped.
    fn watched(&self) -> impl Drop {
        struct Watched<'a>(&'a AtomicBool);
        impl Drop for Watched<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Relaxed);
            }
        }
        self.0.is_watched.store(true, Ordering::Relaxed);
        Watched(&self.0.is_watched)
    }

    /// Stops the clock until the guard is dropped, for what a person does outside of the program.
    #[cfg(any(test, feature = "client-oauth"))]
    pub(in crate::client) fn pause(&self) -> Pause<'_> {
        self.0.pauses.pause()
    }

    /// How long the operation has been paused.
    fn paused(&self) -> Duration {
        self.0.pauses.paused()
    }

    /// Counts bytes that the server has sent for this operation.
    ///
    /// # Errors
    /// They exceed the budget.
    pub(in crate::client) fn charge(&self, bytes: usize) -> Result<(), Error> {
        let limit = self.0.max_bytes;
        let before = self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > limit {
            return Err(Error::too_large(limit, Some("call_bytes")));
        }
        Ok(())
    }

    /// Counts questions of the server that the program is to answer.
    ///
    /// # Errors
    /// They are too many.
    pub(in crate::client) fn charge_questions(&self, questions: usize) -> Result<(), Error> {
        let limit = self.0.max_questions;
        let before = self.0.questions.fetch_add(questions, Ordering::Relaxed);
        if before.saturating_add(questions) > limit {
            let what = format!("the server asks for more than {limit} inputs in one call");
            return Err(Error::TooMany { what, option: "input_requests_per_call" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;
    use crate::client::ClientLimits;

    const SECOND: Duration = Duration::from_secs(1);

    fn operation(seconds: u32) -> Operation {
        let limits = ClientLimits::new().call_bytes(10).input_requests_per_call(3);
        let options = ClientOptions { limits, ..ClientOptions::default() };
        Operation::within(&options, TimeLimit::new(seconds * SECOND, Some("timeout")))
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_pauses_does_not_count() {
        let (start, of_call) = (Instant::now(), operation(10));
        let paused = of_call.clone();
        let work = async {
            sleep(4 * SECOND).await;
            let (one, other) = (paused.pause(), paused.pause());
            sleep(60 * SECOND).await;
            drop(one);
            sleep(40 * SECOND).await;
            drop(other);
            // a request that began in between has the rest
            let limit = paused.time_limit();
            assert_eq!(limit.map(|limit| limit.end - Instant::now()), Some(6 * SECOND));
            pending::<Result<(), Error>>().await
        };
        let result = of_call.run(work).await;
        assert!(
            matches!(result, Err(Error::Timeout { after, option: Some("timeout") }) if after == 10 * SECOND)
        );
        assert_eq!(start.elapsed().as_secs(), 110);
        // the limit of a request as well
        let (start, of_call) = (Instant::now(), operation(1000));
        let work = async {
            let _paused = of_call.pause();
            sleep(100 * SECOND).await;
        };
        let limit = TimeLimit::new(5 * SECOND, Some("request_timeout"));
        of_call.watch(limit, work).await.expect("it was paused");
        assert_eq!(start.elapsed().as_secs(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_between_parts_that_are_watched_ends_in_time() {
        let (start, of_call) = (Instant::now(), operation(10));
        let part = TimeLimit::new(5 * SECOND, None);
        let work = async {
            of_call.watch(part, sleep(3 * SECOND)).await?;
            pending::<Result<(), Error>>().await
        };
        assert!(of_call.run(work).await.is_err());
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test]
    async fn bytes_and_questions_are_counted_up_to_their_limits() {
        let of_call = operation(1);
        assert!(of_call.charge(4).is_ok() && of_call.charge(6).is_ok());
        assert!(matches!(of_call.charge(1), Err(Error::TooLarge { limit: 10, option: Some("call_bytes") })));
        assert!(of_call.charge_questions(3).is_ok());
        assert!(matches!(
            of_call.charge_questions(1),
            Err(Error::TooMany { option: "input_requests_per_call", .. })
        ));
    }
}
