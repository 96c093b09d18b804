//! Limits what one place writes to the log, however often clients bring it about: a line in each interval, which says how
//! many were left out since the last one.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::sync::Mutex;
use crate::schema::beginning;

/// The time to each line of a place.
pub(crate) const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The failures of one item that are logged before there is one line for each interval: they may have different causes.
const FIRST_FAILURES: u32 = 10;

/// The items whose failures are told apart; those of all others share one limit.
const MAX_ITEMS: usize = 1024;

/// The longest text of a failure in the log, in bytes: it may quote what a client has sent.
const MAX_TEXT: usize = 2000;

/// The limit of one place that writes to the log.
pub(crate) struct LogLimit {
    /// The lines that may follow each other at once.
    at_once: u32,
    state: Mutex<LogLimitState>,
}

struct LogLimitState {
    /// When all intervals of the lines so far are over.
    idle_at: Option<Instant>,
    suppressed: u64,
}

/// A line that may be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// How many lines were left out since the last one, if there are any.
    pub(crate) suppressed: Option<u64>,
}

impl Default for LogLimit {
    fn default() -> Self {
        Self::new()
    }
}

impl LogLimit {
    /// One line for each interval.
    pub(crate) const fn new() -> Self {
        Self::with_first(1)
    }

    /// So many lines at once, then one for each interval.
    const fn with_first(at_once: u32) -> Self {
        Self { at_once, state: Mutex::new(LogLimitState { idle_at: None, suppressed: 0 }) }
    }

    /// The next line, unless it is left out.
    pub(crate) fn line(&self) -> Option<LogLine> {
        let now = Instant::now();
        let mut state = self.state.lock();
        let idle_at = state.idle_at.map_or(now, |at| at.max(now));
        if idle_at - now > LOG_INTERVAL * self.at_once.saturating_sub(1) {
            state.suppressed += 1;
            return None;
        }
        state.idle_at = Some(idle_at + LOG_INTERVAL);
        let suppressed = std::mem::take(&mut state.suppressed);
        Some(LogLine { suppressed: (suppressed > 0).then_some(suppressed) })
    }
}

/// The limits of what the items of one server write to the log.
pub(crate) struct ItemLogLimits {
    by_item: Mutex<HashMap<(&'static str, String), ItemLog>>,
    others: LogLimit,
}

/// The log entries of one item.
struct ItemLog {
    failures: Arc<LogLimit>,
    /// Whether its author was told how clients get to know the cause of a failure.
    is_advised: bool,
}

impl Default for ItemLog {
    fn default() -> Self {
        Self { failures: Arc::new(LogLimit::with_first(FIRST_FAILURES)), is_advised: false }
    }
}

impl Default for ItemLogLimits {
    fn default() -> Self {
        Self { by_item: Mutex::default(), others: LogLimit::with_first(FIRST_FAILURES) }
    }
}

impl ItemLogLimits {
    /// The next line about an item, unless it is left out.
    pub(crate) fn line(&self, kind: &'static str, name: &str) -> Option<LogLine> {
        let limit = self.with_item(kind, name, |item| item.failures.clone());
        limit.as_deref().unwrap_or(&self.others).line()
    }

    /// Whether the author of an item is advised, for the first time. About items that are not told apart, no one is.
    pub(crate) fn advises(&self, kind: &'static str, name: &str) -> bool {
        let was_advised = self.with_item(kind, name, |item| std::mem::replace(&mut item.is_advised, true));
        was_advised == Some(false)
    }

    /// `None` if too many items are told apart already.
    fn with_item<R>(&self, kind: &'static str, name: &str, of: impl FnOnce(&mut ItemLog) -> R) -> Option<R> {
        let key = (kind, name.to_owned());
        let mut by_item = self.by_item.lock();
        if by_item.len() >= MAX_ITEMS {
            return by_item.get_mut(&key).map(of);
        }
        Some(of(by_item.entry(key).or_default()))
    }
}

/// The log entries of one server about its clients.
#[derive(Default)]
pub(crate) struct ServerLogLimits {
    /// Functions that failed.
    pub(crate) failures: ItemLogLimits,
    /// Messages that could not be read.
    pub(crate) unreadable: LogLimit,
    /// Subscriptions beyond their limit.
    pub(crate) subscribers: LogLimit,
}

/// A text as the log has it: cut, with a mark, if it is very long.
pub(crate) fn cut_for_log(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_TEXT {
        return text.into();
    }
    let start = beginning(text, MAX_TEXT);
    format!("{start}… ({} more bytes)", text.len() - start.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of suppressed lines of those that are written of `count`.
    fn written(limit: &LogLimit, count: usize) -> Vec<Option<u64>> {
        (0..count).filter_map(|_| limit.line()).map(|line| line.suppressed).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_writes_one_line_in_each_interval_and_says_how_many_were_left_out() {
        let limit = LogLimit::new();
        assert_eq!(written(&limit, 1000), [None]);
        tokio::time::advance(LOG_INTERVAL - Duration::from_millis(1)).await;
        assert_eq!(written(&limit, 1), []);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(written(&limit, 5), [Some(1000)]);
        tokio::time::advance(LOG_INTERVAL * 100).await;
        assert_eq!(written(&limit, 2), [Some(4)]);
        tokio::time::advance(LOG_INTERVAL * 100).await;
        assert_eq!(written(&limit, 1), [Some(1)]);
        tokio::time::advance(LOG_INTERVAL).await;
        assert_eq!(written(&limit, 1), [None]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_failures_of_each_item_are_logged_and_then_one_in_each_interval() {
        let limits = ItemLogLimits::default();
        let written = |name: &str| (0..1000).filter_map(|_| limits.line("tool", name)).count();
        assert_eq!((written("a"), written("b"), written("a")), (10, 10, 0));
        tokio::time::advance(LOG_INTERVAL).await;
        let line = limits.line("tool", "a");
        assert_eq!(line.and_then(|line| line.suppressed), Some(1990));
        assert_eq!(written("a"), 0);
        // other items are not told apart
        (0..2000).for_each(|n| _ = limits.line("resource", &n.to_string()));
        assert_eq!(limits.by_item.lock().len(), MAX_ITEMS);
        assert_eq!(written("c"), 0);
        tokio::time::advance(LOG_INTERVAL * 2).await;
        assert_eq!(written("c") + written("d"), 2);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut_for_log("short"), "short");
        let cut = cut_for_log(&"é".repeat(2000)).into_owned();
        assert!(cut.ends_with("é… (2000 more bytes)"), "{cut}");
        assert_eq!(cut.len(), 2000 + "… (2000 more bytes)".len());
        assert!(cut_for_log(&format!("a{}", "é".repeat(2000))).ends_with("é… (2002 more bytes)"));
    }
}
