//! The handle of a server, which may change its resources and prompts while it runs, and so opens these capabilities:
//! clients read only once which a server has.

use super::{prompts::Prompts, resources::Resources, subscriptions::Subscriptions};
use crate::core::{
    arguments::{Opens, Probe},
    server::{Assembly, Named, Server, ServerBuilder, ServerHandle},
};

const OF_HANDLE: Named = Named { key: "handle", open: open_for_handle, mount: |_, _, _| {} };

/// Opens what a handle may change.
pub(crate) fn open_for_handle(assembly: &mut Assembly<'_>) {
    assembly.catalog::<Resources>().may_come = true;
    assembly.catalog::<Prompts>().may_come = true;
    let _opened = assembly.catalog::<Subscriptions>();
}

impl Probe<ServerHandle> {
    /// A function that takes the handle may use it.
    pub const OPENS: Opens = Opens(Some(open_for_handle));
}

impl ServerBuilder {
    /// Passes the server's handle to `take` once the server is built, for code outside of its functions that changes the
    /// server or publishes changes.
    /// With [`run`](Self::run), no async runtime is running at that time: store the handle, send it through a channel, or
    /// start a thread.
    ///
    /// ```
    /// use std::{thread, time::Duration};
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!()
    ///     .with_handle(|handle| {
    ///         thread::spawn(move || {
    ///             // wait here until the file changes
    ///             handle.resource_updated("file:///etc/motd");
    ///         });
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("handle", "on_start"))]
    // rustc shows the next line to those who leave the function out
    pub fn with_handle<F>(mut self, take: F /* or `.build()?.handle()` */) -> Self
    where
        F: FnOnce(ServerHandle) + Send + 'static,
    {
        self.open_on_build(OF_HANDLE);
        self.give_handle_to(take);
        self
    }
}

impl Server {
    /// A handle that adds and removes items while the server runs, and publishes changes.
    ///
    /// Get it before you serve: a server without a handle does not declare `listChanged`, and clients read that once.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.handle_of(open_for_handle)
    }
}
