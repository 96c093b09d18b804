//! The handle of a server, which may change its resources and prompts while it runs, and so opens these capabilities:
//! clients read only once which a server has.

use super::{completion::Completions, prompts::Prompts, resources::Resources, subscriptions::Subscriptions};
use crate::core::{
    arguments::{Opens, Probe},
    server::{AddedItems, Addition, Assembly, Named, Server, ServerBuilder, ServerHandle},
};

const OF_HANDLE: Named = Named { key: "handle", open: open_for_handle, mount: |_, _, _| {} };

const OF_CHANGES: Named = Named { key: "changes", open: open_for_changes, mount: |_, _, _| {} };

/// Opens what an addition may change.
fn open_for_changes(assembly: &mut Assembly<'_>) {
    assembly.catalog::<Resources>().may_come = true;
    assembly.catalog::<Prompts>().may_come = true;
    let _opened = assembly.catalog::<Completions>();
}

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

impl Addition {
    /// Adds items that change while the server runs, such as those of another server. `name` is shown where one of them
    /// clashes with an item of another owner.
    ///
    /// `run` is called when the server opens, with the place for the items, and its future ends with the server. Tools,
    /// prompts, resources and completion are declared from the start. The items come after those of the program and of
    /// additions before, also in time: a name is the first one's that can have it.
    ///
    /// ```
    /// use mcp_runtime::{addition::Addition, tool::{ToolCall, ToolDef}};
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let plugins = Addition::changing("plugins", |items| async move {
    ///     let tool = |name: &str| ToolDef::builder(name).handler(|_: ToolCall| async { "done" });
    ///     // .. whenever the folder of plugins changes
    ///     if let Err(error) = items.try_add(tool("resize")) {
    ///         eprintln!("a plugin is left out: {error}");
    ///     }
    ///     items.arrived();
    /// });
    /// let server = mcp_runtime::server!().add(plugins).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn changing<F, Fut>(name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(AddedItems) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let name = name.into();
        Self::of(|builder| {
            builder.open_on_build(OF_CHANGES);
            builder.push_place(name, Box::new(|items| Box::pin(run(items))));
        })
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
