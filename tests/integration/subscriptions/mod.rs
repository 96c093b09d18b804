//! Subscriptions: what clients are told of, and who is, in memory, on streams as on stdio, and over HTTP.

mod bounds;
mod capability;
mod check;
pub(crate) mod client;
mod end;
mod legacy;
mod list;
mod updated;
