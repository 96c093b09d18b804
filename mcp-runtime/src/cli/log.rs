//! A `tracing` subscriber of a few lines, so that private errors are seen in programs that have none. `run` installs
//! it; whoever wants spans, targets or JSON installs their own first. Where the server says so, it sends the events of
//! calls to their clients as well.

use std::{
    fmt::{self, Write as _},
    io::Write as _,
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
};

use crate::context::{forward, is_wanted, register_forwarder};

struct ToStderr {
    level: LevelFilter,
    /// Whether events go to clients, too.
    forwards: bool,
}

/// Installs it, unless the program has a subscriber.
pub(super) fn install(forwards: bool) {
    if !tracing::dispatcher::has_been_set() {
        let level = ["MCP_LOG", "RUST_LOG"].into_iter().find_map(|key| level(&std::env::var(key).ok()?));
        let subscriber = ToStderr { level: level.unwrap_or(LevelFilter::WARN), forwards };
        // another thread may have been faster; its subscriber is as good
        if tracing::subscriber::set_global_default(subscriber).is_ok() && forwards {
            register_forwarder();
        }
    }
}

/// The level that a variable names; directives for single targets are left to other subscribers.
fn level(variable: &str) -> Option<LevelFilter> {
    variable.split(',').find_map(|part| part.trim().parse().ok())
}

impl Subscriber for ToStderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let forwarded = self.forwards && is_wanted(metadata);
        !metadata.is_span() && (*metadata.level() <= self.level || forwarded)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if self.forwards { self.level.max(LevelFilter::DEBUG) } else { self.level })
    }

    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() <= self.level {
            let line = line(event.metadata(), |fields| event.record(fields));
            // without stderr there is nobody to tell
            let _lost = std::io::stderr().write_all(line.as_bytes());
        }
        if self.forwards {
            forward(event);
        }
    }

    // spans are not enabled, so none of these is called with one of ours
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// One event as one line, whatever it holds; see [`for_terminal`].
fn line(metadata: &Metadata<'_>, record: impl FnOnce(&mut Fields)) -> String {
    let mut fields = Fields::default();
    record(&mut fields);
    let level = match *metadata.level() {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    for_terminal(&format!("{level}: {}{}\n", fields.message, fields.others))
}

/// Text as a terminal may show it: line breaks inside are indented, other control characters are escaped, so that what
/// a client sent can neither look like another event nor steer the terminal.
fn for_terminal(text: &str) -> String {
    let (text, end) = text.strip_suffix('\n').map_or((text, ""), |text| (text, "\n"));
    let mut shown = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\n    "),
            '\t' => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown + end
}

#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // a `String` takes everything
        let _always = if field.name() == "message" {
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
    fn a_level_is_one_name() {
        assert_eq!(level("debug"), Some(LevelFilter::DEBUG));
        assert_eq!(level("hyper=trace,Info"), Some(LevelFilter::INFO));
        assert_eq!(level("off"), Some(LevelFilter::OFF));
        assert_eq!(level("hyper=trace"), None);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(for_terminal("warning: a\nb\n"), "warning: a\n    b\n");
        assert_eq!(for_terminal("x\r\x1b[2J\x07\u{9b}é\ty\n"), "x\\r\\u{1b}[2J\\u{7}\\u{9b}é\ty\n");
    }

    #[test]
    fn what_is_below_the_level_is_not_enabled() {
        // what is enabled in the process depends on the subscribers of tests beside this one
        let hint = |forwards| ToStderr { level: LevelFilter::WARN, forwards }.max_level_hint();
        assert_eq!(hint(false), Some(LevelFilter::WARN));
        assert_eq!(hint(true), Some(LevelFilter::DEBUG), "a client may want it");
    }
}
