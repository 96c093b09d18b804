//! How a connection comes about and stays: options, targets, the revision, and what clones of a client share.

mod catalog;
pub(super) mod client_builder;
pub(super) mod client_limits;
pub(super) mod negotiation;
mod session;
pub(super) mod shared_client;
pub(super) mod target;
