//! The HTTP transport, tested with a client that can also send invalid requests.

mod batch;
#[cfg(unix)]
mod client_certificates;
mod event_streams;
pub(crate) mod fixture;
mod guard;
mod health;
mod http_sse;
pub(crate) mod legacy;
mod modern;
mod request_parts;
#[cfg(unix)]
mod rolling_restart;
mod router;
mod scopes;
mod server_card;
mod sessions;
mod shutdown;
mod skills;
