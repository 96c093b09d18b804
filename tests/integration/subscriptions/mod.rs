//! Subscriptions: which changes clients are notified of, in memory, over streams as over stdio, and over HTTP.

mod bounds;
mod capability;
mod check;
mod end;
mod fixture;
mod legacy;
mod list_changed;
mod tenants;
mod updated;
