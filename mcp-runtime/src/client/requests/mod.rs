//! Requests of a program to a server: the client's methods, the caches of their results, and typed calls.

pub(super) mod client_handle;
pub(super) mod known_tools;
pub(super) mod listed_items;
pub(super) mod lists;
pub(super) mod pending_request;
pub(super) mod read_cache;
pub(super) mod request_span;
pub(super) mod result_types;
pub(super) mod rounds;
pub(super) mod task_handle;
pub(super) mod typed_item;
mod uri_expansion;
#[cfg(feature = "skills")]
pub(super) mod verified_skills;
