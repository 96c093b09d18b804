//! The HTTP transport, tested with a client that can also send invalid requests.

mod batch;
pub(crate) mod fixture;
mod guard;
mod head;
pub(crate) mod legacy;
mod lifetime;
mod modern;
mod router;
mod scopes;
mod sessions;
mod skills;
mod sse;
mod stream;
