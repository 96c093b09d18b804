//! A small `tracing` subscriber, so that private errors appear on stderr in programs that have installed none. It supports
//! neither spans nor targets. If the server is built so, it also sends the events of calls to their clients.

use std::{
    fmt::{self, Write as _},
    io::Write as _,
    sync::atomic::{AtomicBool, Ordering},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
};

use crate::core::{
    context::{forward, may_forward, register_forwarder},
    visible_text::in_lines,
};

struct StderrSubscriber {
    level: LevelFilter,
    /// Whether events are also sent to clients.
    forwards: &'static AtomicBool,
}

/// Installs the subscriber, unless the program has one. Returns how to let it send events to clients, once the options are
/// known.
pub(super) fn install() -> Option<impl FnOnce()> {
    static FORWARDS: AtomicBool = AtomicBool::new(false);
    if tracing::dispatcher::has_been_set() {
        return None;
    }
    let level = ["MCP_LOG", "RUST_LOG"].into_iter().find_map(|key| parse_level(&std::env::var(key).ok()?));
    let subscriber = StderrSubscriber { level: level.unwrap_or(LevelFilter::WARN), forwards: &FORWARDS };
    // another thread may have installed one concurrently
    tracing::subscriber::set_global_default(subscriber).ok()?;
    Some(|| {
        FORWARDS.store(true, Ordering::Relaxed);
        register_forwarder();
        tracing::callsite::rebuild_interest_cache();
    })
}

/// The level that a variable names; directives for single targets are left to other subscribers.
fn parse_level(variable: &str) -> Option<LevelFilter> {
    variable.split(',').find_map(|part| part.trim().parse().ok())
}

impl Subscriber for StderrSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let forwarded = self.forwards.load(Ordering::Relaxed) && may_forward(metadata);
        !metadata.is_span() && (*metadata.level() <= self.level || forwarded)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if self.forwards.load(Ordering::Relaxed) {
            self.level.max(LevelFilter::DEBUG)
        } else {
            self.level
        })
    }

    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() <= self.level {
            let line = format_event(event.metadata(), |fields| event.record(fields));
            // a failed write cannot be reported anywhere
            let _result = std::io::stderr().write_all(line.as_bytes());
        }
        if self.forwards.load(Ordering::Relaxed) {
            forward(event);
        }
    }

    // spans are not enabled, so these are called only for the spans of other subscribers
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// One event as one line, and further ones that are indented, so that a client's text can neither imitate another event nor
/// control the terminal.
fn format_event(metadata: &Metadata<'_>, record: impl FnOnce(&mut LineFields)) -> String {
    let mut fields = LineFields::default();
    record(&mut fields);
    let level = match *metadata.level() {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    format!("{}\n", in_lines(&format!("{level}: {}{}", fields.message, fields.others)))
}

#[derive(Default)]
struct LineFields {
    message: String,
    others: String,
}

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // writing to a `String` does not fail
        let _result = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.others, " {}={value:?}", field.name())
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_without_a_target_is_parsed() {
        assert_eq!(parse_level("debug"), Some(LevelFilter::DEBUG));
        assert_eq!(parse_level("hyper=trace,Info"), Some(LevelFilter::INFO));
        assert_eq!(parse_level("off"), Some(LevelFilter::OFF));
        assert_eq!(parse_level("hyper=trace"), None);
    }

    #[test]
    fn forwarding_enables_events_below_the_level_of_stderr() {
        // which events are enabled in the process depends on the subscribers of concurrent tests
        static OFF: AtomicBool = AtomicBool::new(false);
        static ON: AtomicBool = AtomicBool::new(true);
        let hint = |forwards| StderrSubscriber { level: LevelFilter::WARN, forwards }.max_level_hint();
        assert_eq!(hint(&OFF), Some(LevelFilter::WARN));
        assert_eq!(hint(&ON), Some(LevelFilter::DEBUG), "a client may request it");
    }
}
