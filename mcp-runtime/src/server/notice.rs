//! The builder's methods for telling clients of changes: who publishes them, and how much may wait for whom.

use super::{ServerBuilder, ServerHandle};

/// Telling clients of changes.
impl ServerBuilder {
    /// Gives the server's handle to `take`, once the server is built: for whoever changes it, or tells clients of
    /// changes, from outside of its functions.
    ///
    /// With [`run`](Self::run) no async runtime is running at that moment: keep the handle, send it through a
    /// channel, or start a thread.
    ///
    /// ```
    /// use std::{thread, time::Duration};
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!()
    ///     .with_handle(|handle| {
    ///         thread::spawn(move || {
    ///             // wait for a change of the file here
    ///             handle.resource_updated("file:///etc/motd");
    ///         });
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_handle(mut self, take: impl FnOnce(ServerHandle) + Send + 'static) -> Self {
        self.handed.push(Box::new(take));
        self
    }

    /// Sets how many subscribers a server has at once, over all transports; 5000 by default, and half of
    /// them at most for one caller. More are refused: over HTTP with `503`.
    ///
    /// Every open `subscriptions/listen` is one, and every connection, or session with an open stream, of a client of
    /// the handshake era that is told of changes. Over HTTP other bounds, which are lower by default, are met first:
    /// `max_connections` and `max_streams`. Whoever raises those may have to raise this.
    pub fn max_subscribers(mut self, subscribers: usize) -> Self {
        self.options.subscriptions.subscribers = subscribers;
        self
    }

    /// Sets how many resources one subscriber may subscribe to; 1024 by default.
    pub fn max_subscriptions(mut self, resources: usize) -> Self {
        self.options.subscriptions.uris = resources;
        self
    }

    /// Sets how many different changes may wait for a subscriber that reads slowly; 1024 by default.
    ///
    /// A change that waits already does not wait twice, so this is reached only by a subscriber to more resources
    /// than that. A `subscriptions/listen` stream that loses a change ends with its result; a client of the handshake
    /// era is not told of the change.
    pub fn max_pending_changes(mut self, changes: usize) -> Self {
        self.options.subscriptions.pending = changes.max(1);
        self
    }
}
