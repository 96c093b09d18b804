//! Parts of the protocol that a program contains only if something in it names them: an attribute's expansion, a method
//! of a builder, a type of the API. Each is one folder, from its methods to its store, and opens itself on a server as a
//! [`Capability`](crate::server::Capability); the core does not name them.

pub(crate) mod tasks;
