//! `tracing` events on their way to the client of the call that they were recorded in. A subscriber hands them over:
//! the layer of the feature `tracing`, or the one that `run` installs.

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
use crate::protocol::LogLevel;

/// What this crate itself says stays here: causes of private errors are in it.
const OURS: &str = env!("CARGO_CRATE_NAME");

/// Whether some subscriber of the process forwards events; calls are not tracked for nothing.
static FORWARDS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn register_forwarder() {
    FORWARDS.store(true, Ordering::Relaxed);
}

pub(crate) fn any_forwarder() -> bool {
    FORWARDS.load(Ordering::Relaxed)
}

/// Whether some client may ever want an event of this kind.
pub(crate) fn is_wanted(metadata: &Metadata<'_>) -> bool {
    level(metadata).is_some()
        && [Some(metadata.target()), metadata.module_path()].iter().flatten().all(is_foreign)
}

fn is_foreign(path: &&str) -> bool {
    path.strip_prefix(OURS).is_none_or(|rest| !rest.is_empty() && !rest.starts_with("::"))
}

/// There is no level for traces.
fn level(metadata: &Metadata<'_>) -> Option<LogLevel> {
    match *metadata.level() {
        Level::ERROR => Some(LogLevel::Error),
        Level::WARN => Some(LogLevel::Warning),
        Level::INFO => Some(LogLevel::Info),
        Level::DEBUG => Some(LogLevel::Debug),
        Level::TRACE => None,
    }
}

/// Sends an event to the client of the call that this thread works for, if that has asked for such events.
pub(crate) fn forward(event: &Event<'_>) {
    let metadata = event.metadata();
    let Some(level) = level(metadata).filter(|_| is_wanted(metadata)) else { return };
    // what is recorded while an event is written would have no end
    let Some(_alone) = Alone::enter() else { return };
    let Some(context) = Context::current() else { return };
    if context.asked_level().is_none_or(|least| level < least) {
        return;
    }
    let mut fields = Fields(Map::new());
    event.record(&mut fields);
    if let Ok(data) = serde_json::to_vec(&fields.0) {
        context.send_log(level, Some(metadata.target()), &data, &Map::new());
    }
}

/// The right to forward, which a thread has once at a time.
struct Alone;

impl Alone {
    fn enter() -> Option<Self> {
        let was_busy = BUSY.try_with(|busy| busy.replace(true)).unwrap_or(true);
        (!was_busy).then_some(Self)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // gone only at the end of the thread
        let _gone = BUSY.try_with(|busy| busy.set(false));
    }
}

/// An event's fields as the members of one object, `message` among them.
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        // these describe records of the crate `log`, and say where its source files are
        if !field.name().starts_with("log.") {
            self.0.insert(field.name().to_owned(), value.into());
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    /// Without its causes, of which its author may not have thought.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, value.to_string());
    }
}

/// Sends the events of each call to its client; see [`client_layer`].
#[cfg(feature = "tracing")]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientLayer;

/// A layer that sends the `tracing` events of a call to the client of that call, if the client has asked for them.
///
/// The server must be built with [`.logging()`](crate::ServerBuilder::logging). An event is a log message at its own level
/// (`TRACE` is never sent), from its target (the wire's `logger`), with its message and fields as data. It is sent if
/// it was recorded on a thread that works for the call: in the annotated function itself, not in tasks that it spawned.
/// Clients of 2026-07-28 ask with the request, others with `logging/setLevel`; one that has not asked gets no events.
///
/// **Every** event that reaches the layer is sent, whichever crate it comes from, except those of `mcp_runtime` itself,
/// whose records hold the causes of private errors. Filter it by target where dependencies record what clients must
/// not see:
///
/// ```
/// use mcp_runtime::client_layer;
/// use tracing_subscriber::{filter::Targets, prelude::*};
///
/// let own = Targets::new().with_target("my_server", tracing::Level::DEBUG);
/// let subscriber = tracing_subscriber::registry().with(client_layer().with_filter(own));
/// # tracing::subscriber::with_default(subscriber, || {});
/// ```
///
/// It does not need the subscriber that [`run`](crate::ServerBuilder::run) installs, and takes its place: `run` leaves
/// a subscriber that the program has set as it is, so add a layer for stderr as well.
///
/// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
#[cfg(feature = "tracing")]
#[must_use]
pub fn client_layer() -> ClientLayer {
    register_forwarder();
    ClientLayer
}

#[cfg(feature = "tracing")]
impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for ClientLayer {
    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        forward(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_crate_is_ours() {
        for ours in ["mcp_runtime", "mcp_runtime::dispatch::reply"] {
            assert!(!is_foreign(&ours), "{ours}");
        }
        for foreign in ["mcp_runtime_client", "my_server", "", "my::mcp_runtime"] {
            assert!(is_foreign(&foreign), "{foreign}");
        }
    }
}
