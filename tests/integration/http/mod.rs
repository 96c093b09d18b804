//! The HTTP transport, spoken to by a client that can also say what no client should.

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
