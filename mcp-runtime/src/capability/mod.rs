//! Parts of the protocol that a program contains only if something in it names them: an attribute's expansion, a method
//! of a builder, a type of the API. Each is one folder, from its methods to its store, and opens itself on a server as a
//! [`Capability`](crate::core::server::Capability); the core does not name them.

pub(crate) mod completion;
pub mod events;
pub mod prompts;
pub mod resources;
#[cfg(feature = "skills")]
pub mod skills;
pub(crate) mod subscriptions;
pub(crate) mod tasks;

use crate::core::{
    arguments::{Opens, Probe},
    server::{Assembly, Named, ServerHandle},
};

/// The capabilities that a handle may change while the server runs: clients read them only once.
pub(crate) const OF_HANDLE: Named = Named { key: "handle", open: open_for_handle, mount: |_, _, _| {} };

pub(crate) fn open_for_handle(assembly: &mut Assembly<'_>) {
    assembly.catalog::<resources::Resources>().may_come = true;
    assembly.catalog::<prompts::Prompts>().may_come = true;
    let _opened = assembly.catalog::<subscriptions::Subscriptions>();
}

impl Probe<ServerHandle> {
    /// A function that takes the handle may use it.
    pub const OPENS: Opens = Opens(Some(open_for_handle));
}
