//! Parts of the protocol that a program contains only if something in it names them: an attribute's expansion, a method
//! of a builder, a type of the API. Each is one folder, from its methods to its store, and opens itself on a server as a
//! [`Capability`](crate::core::server::Capability); the core does not name them.

pub(crate) mod completion;
#[cfg(feature = "events")]
pub mod events;
mod handle;
pub mod prompts;
pub mod resources;
#[cfg(feature = "skills")]
pub mod skills;
pub(crate) mod subscriptions;
#[cfg(feature = "tasks")]
pub(crate) mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use handle::open_for_handle;
