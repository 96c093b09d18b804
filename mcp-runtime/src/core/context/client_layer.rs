//! The layer that sends the events of a program's subscriber to clients.

use tracing::Event;

use super::tracing_events::{forward, register_forwarder};

/// Sends the events of each call to its client; see [`client_layer`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientLayer;

/// A layer that sends the `tracing` events of a call to the client of that call, if the client requested them.
///
/// The server must be built with [`client_logging`](crate::config::TelemetryOptions::client_logging). An event is a log message at its own level
/// (`TRACE` is never sent), from its target (`logger` on the wire), with its message and fields as data. It is sent if
/// it was recorded on a thread that works for the call: in the annotated function itself, not in tasks that it spawned.
/// Clients of 2026-07-28 request events with each call, others with `logging/setLevel`; without that they get none.
///
/// **Every** event that reaches the layer is sent, whichever crate it comes from, except those of `mcp_runtime` itself,
/// whose events contain the causes of private errors. Filter it by target where dependencies record what clients must
/// not see:
///
/// ```
/// use mcp_runtime::context::client_layer;
/// use tracing_subscriber::{filter::Targets, prelude::*};
///
/// let own = Targets::new().with_target("my_server", tracing::Level::DEBUG);
/// let subscriber = tracing_subscriber::registry().with(client_layer().with_filter(own));
/// # tracing::subscriber::with_default(subscriber, || {});
/// ```
///
/// It replaces the subscriber that [`run`](crate::ServerBuilder::run) installs: `run` keeps a subscriber that the program
/// has set, so add a layer for stderr as well.
///
/// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
#[must_use]
pub fn client_layer() -> ClientLayer {
    register_forwarder();
    ClientLayer
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for ClientLayer {
    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        forward(event);
    }
}
