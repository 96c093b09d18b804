//! The HTTP transport, tested with a client that can also send invalid requests.

mod added_routes;
mod batch;
mod event_streams;
pub(crate) mod fixture;
mod guard;
mod health;
mod http_sse;
pub(crate) mod legacy;
mod modern;
mod request_parts;
mod router;
mod scopes;
mod server_card;
mod shutdown;
mod tower_layers;
