//! Limits of one call of the program: one deadline and one budget of bytes for everything that it causes, such as the pages
//! of a list, the rounds and tasks of a call, a new handshake, or waiting for another call. [`Operation::run`] returns in
//! time regardless of the server; links and lists charge the bytes that they receive.

use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep, sleep_until};

use super::{Error, connect::client_builder::ClientOptions};
use crate::core::sync::Mutex;

/// The shortest wait for the end of a pause.
const SHORTEST_SLEEP: Duration = Duration::from_millis(10);

/// The kind of an operation, which determines its default time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum OperationKind {
    /// A handshake, from the first byte to a connection that can be used.
    Connect,
    /// All pages of a list.
    List,
    /// Everything else.
    Call,
}

/// When a wait ends, and which option says so.
#[derive(Debug, Clone, Copy)]
pub(in crate::client) struct TimeLimit {
    pub(in crate::client) end: Instant,
    after: Duration,
    option: &'static str,
}

impl TimeLimit {
    /// A limit that begins now; `None` for one that is too long to be computed.
    pub(in crate::client) fn new(after: Duration, option: &'static str) -> Option<Self> {
        Some(Self { end: Instant::now().checked_add(after)?, after, option })
    }

    /// The one that ends first.
    pub(in crate::client) fn first(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if other.end < one.end { other } else { one }),
            (one, other) => one.or(other),
        }
    }

    pub(in crate::client) fn error(&self) -> Error {
        Error::timeout(self.after, self.option)
    }
}

/// Ends when the time of an operation is over.
pub(in crate::client) type OperationTimer = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The limits of one operation; clones share them.
#[derive(Debug, Clone)]
pub(in crate::client) struct Operation(Arc<OperationState>);

#[derive(Debug)]
struct OperationState {
    limit: Option<TimeLimit>,
    bytes: AtomicUsize,
    max_bytes: usize,
    questions: AtomicUsize,
    max_questions: usize,
    /// Whether a link ends the present wait in time, so that no timer is needed here.
    is_watched: AtomicBool,
    has_paused: AtomicBool,
    pauses: Mutex<Pauses>,
}

/// Times that do not count, such as that of a login.
#[derive(Debug, Default)]
struct Pauses {
    running: usize,
    since: Option<Instant>,
    total: Duration,
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
        Self::with(TimeLimit::new(after, option), options)
    }

    /// A handshake in the middle of another operation, which ends with that at the latest.
    pub(in crate::client) fn handshake(parent: Option<&Self>, options: &ClientOptions) -> Self {
        let own = TimeLimit::new(options.limits.connect_timeout, "connect_timeout");
        Self::with(TimeLimit::first(own, parent.and_then(Self::time_limit)), options)
    }

    /// One message, without limits on what the server sends.
    pub(in crate::client) fn message(limit: Option<TimeLimit>) -> Self {
        Self(Arc::new(OperationState {
            limit,
            bytes: AtomicUsize::new(0),
            max_bytes: usize::MAX,
            questions: AtomicUsize::new(0),
            max_questions: usize::MAX,
            is_watched: AtomicBool::new(false),
            has_paused: AtomicBool::new(false),
            pauses: Mutex::default(),
        }))
    }

    fn with(limit: Option<TimeLimit>, options: &ClientOptions) -> Self {
        Self(Arc::new(OperationState {
            limit,
            bytes: AtomicUsize::new(0),
            max_bytes: options.limits.call_bytes,
            questions: AtomicUsize::new(0),
            max_questions: options.limits.input_requests_per_call,
            is_watched: AtomicBool::new(false),
            has_paused: AtomicBool::new(false),
            pauses: Mutex::default(),
        }))
    }

    /// When the operation ends, if nothing pauses it from now on.
    pub(in crate::client) fn time_limit(&self) -> Option<TimeLimit> {
        let mut limit = self.0.limit?;
        limit.end = limit.end.checked_add(self.paused())?;
        Some(limit)
    }

    /// The output of `future`, which is dropped when the time is over.
    pub(in crate::client) async fn run<T, F>(&self, future: F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (mut future, mut timer) = (pin!(future), None);
        poll_fn(|cx| self.poll_in_time(future.as_mut(), &mut timer, cx)).await
    }

    /// Polls a future of this operation. The timer is made for the first wait that no link ends in time.
    pub(in crate::client) fn poll_in_time<T, F>(
        &self,
        future: Pin<&mut F>,
        timer: &mut Option<OperationTimer>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Error>>
    where
        F: Future<Output = Result<T, Error>> + ?Sized,
    {
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(output);
        }
        let Some(limit) = self.0.limit else { return Poll::Pending };
        if timer.is_none() && self.0.is_watched.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let timer = timer.get_or_insert_with(|| {
            let operation = self.clone();
            Box::pin(async move { operation.expire(limit, Duration::ZERO).await })
        });
        timer.as_mut().poll(cx).map(|()| Err(limit.error()))
    }

    /// The output of `future`, a request of this operation, unless `limit` ends before.
    pub(in crate::client) async fn watch<T>(
        operation: Option<&Self>,
        limit: Option<TimeLimit>,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        if limit.is_none() {
            return Ok(future.await);
        }
        let _watched = operation.map(Self::watched);
        tokio::select! {
            biased;
            output = future => Ok(output),
            error = Self::over(operation, limit) => Err(error),
        }
    }

    /// The error of a limit when it is over; times in which the operation is paused from now on do not count.
    pub(in crate::client) async fn over(operation: Option<&Self>, limit: Option<TimeLimit>) -> Error {
        let Some(limit) = limit else { return pending().await };
        match operation {
            Some(operation) => operation.expire(limit, operation.paused()).await,
            None => sleep_until(limit.end).await,
        }
        limit.error()
    }

    /// Says that a link ends what is waited for in time, until the guard is dropped.
    pub(in crate::client) fn watched(&self) -> impl Drop + use<> {
        struct Watched(Operation);
        impl Drop for Watched {
            fn drop(&mut self) {
                self.0.0.is_watched.store(false, Ordering::Relaxed);
            }
        }
        self.0.is_watched.store(true, Ordering::Relaxed);
        Watched(self.clone())
    }

    /// Stops the clock until the guard is dropped, for what a person does outside of the program.
    #[cfg(any(test, feature = "client-oauth"))]
    pub(in crate::client) fn pause(&self) -> impl Drop + use<> {
        struct Paused(Operation);
        impl Drop for Paused {
            fn drop(&mut self) {
                let mut pauses = self.0.0.pauses.lock();
                pauses.running -= 1;
                if pauses.running == 0
                    && let Some(since) = pauses.since.take()
                {
                    pauses.total += since.elapsed();
                }
            }
        }
        self.0.has_paused.store(true, Ordering::SeqCst);
        let mut pauses = self.0.pauses.lock();
        pauses.running += 1;
        pauses.since.get_or_insert_with(Instant::now);
        drop(pauses);
        Paused(self.clone())
    }

    /// How long the operation has been paused.
    fn paused(&self) -> Duration {
        if !self.0.has_paused.load(Ordering::SeqCst) {
            return Duration::ZERO;
        }
        let pauses = self.0.pauses.lock();
        pauses.total + pauses.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits for the end of a limit that began when the operation had been paused for so long.
    async fn expire(&self, limit: TimeLimit, paused_before: Duration) {
        loop {
            let Some(end) = limit.end.checked_add(self.paused().saturating_sub(paused_before)) else {
                return pending().await;
            };
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let is_paused = self.0.pauses.lock().running > 0;
            sleep(if is_paused { left.max(SHORTEST_SLEEP) } else { left }).await;
        }
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
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn operation(seconds: u32) -> Operation {
        Operation(Arc::new(OperationState {
            limit: TimeLimit::new(seconds * SECOND, "timeout"),
            bytes: AtomicUsize::new(0),
            max_bytes: 10,
            questions: AtomicUsize::new(0),
            max_questions: 3,
            is_watched: AtomicBool::new(false),
            has_paused: AtomicBool::new(false),
            pauses: Mutex::default(),
        }))
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
        let limit = TimeLimit::new(5 * SECOND, "request_timeout");
        Operation::watch(Some(&of_call), limit, work).await.expect("it was paused");
        assert_eq!(start.elapsed().as_secs(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_a_link_does_not_end_is_ended_here() {
        let of_call = operation(10);
        let start = Instant::now();
        let work = async {
            let watched = of_call.watched();
            sleep(3 * SECOND).await;
            drop(watched);
            pending::<Result<(), Error>>().await
        };
        assert!(of_call.run(work).await.is_err());
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[test]
    fn bytes_and_questions_are_counted_up_to_their_limits() {
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
