//! Forwards `tracing` events to the client of the call that they were recorded in, from a subscriber: the layer of the
//! feature `tracing`, or the one that `run` installs.

use std::{
    cell::Cell,
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Map, Value};
use tracing::{
    Event, Level, Metadata,
    field::{Field, Visit},
};

use super::Context;
use crate::core::protocol::LogLevel;

/// Events of this crate are not forwarded: they contain the causes of private errors.
const OWN_CRATE: &str = env!("CARGO_CRATE_NAME");

/// Whether a subscriber of the process forwards events; without one, calls are not tracked.
static HAS_FORWARDER: AtomicBool = AtomicBool::new(false);

thread_local! {
    static FORWARDING: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn register_forwarder() {
    HAS_FORWARDER.store(true, Ordering::Relaxed);
}

pub(crate) fn has_forwarder() -> bool {
    HAS_FORWARDER.load(Ordering::Relaxed)
}

/// Whether a client may get an event of this kind.
pub(crate) fn may_forward(metadata: &Metadata<'_>) -> bool {
    level(metadata).is_some()
        && [Some(metadata.target()), metadata.module_path()].iter().flatten().all(is_foreign)
}

fn is_foreign(path: &&str) -> bool {
    path.strip_prefix(OWN_CRATE).is_none_or(|rest| !rest.is_empty() && !rest.starts_with("::"))
}

/// MCP has no level for traces.
fn level(metadata: &Metadata<'_>) -> Option<LogLevel> {
    match *metadata.level() {
        Level::ERROR => Some(LogLevel::Error),
        Level::WARN => Some(LogLevel::Warning),
        Level::INFO => Some(LogLevel::Info),
        Level::DEBUG => Some(LogLevel::Debug),
        Level::TRACE => None,
    }
}

/// Sends an event to the client of the call that this thread works for, if the client requested this level.
pub(crate) fn forward(event: &Event<'_>) {
    let metadata = event.metadata();
    let Some(level) = level(metadata).filter(|_| may_forward(metadata)) else { return };
    // forwarding itself may record events, which would be forwarded in turn
    let Some(_guard) = ForwardGuard::enter() else { return };
    let Some(context) = Context::current() else { return };
    if context.requested_level().is_none_or(|minimum| level < minimum) {
        return;
    }
    let mut fields = EventFields(Map::new());
    event.record(&mut fields);
    if let Ok(data) = serde_json::to_vec(&fields.0) {
        context.send_log(level, Some(metadata.target()), &data, &Map::new());
    }
}

/// Marks the thread as forwarding until it is dropped.
struct ForwardGuard;

impl ForwardGuard {
    fn enter() -> Option<Self> {
        let was_forwarding = FORWARDING.try_with(|forwarding| forwarding.replace(true)).unwrap_or(true);
        (!was_forwarding).then_some(Self)
    }
}

impl Drop for ForwardGuard {
    fn drop(&mut self) {
        // the thread local may be destroyed already
        let _destroyed = FORWARDING.try_with(|forwarding| forwarding.set(false));
    }
}

/// An event's fields as the members of one object, `message` among them.
struct EventFields(Map<String, Value>);

impl EventFields {
    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        // the crate `log` records source paths as such fields
        if !field.name().starts_with("log.") {
            self.0.insert(field.name().to_owned(), value.into());
        }
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value);
    }

    /// Records the message without its causes, which may be private.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.insert(field, value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_this_crate_are_not_forwarded() {
        for own in ["mcp_runtime", "mcp_runtime::dispatch::reply"] {
            assert!(!is_foreign(&own), "{own}");
        }
        for foreign in ["mcp_runtime_client", "my_server", "", "my::mcp_runtime"] {
            assert!(is_foreign(&foreign), "{foreign}");
        }
    }
}
