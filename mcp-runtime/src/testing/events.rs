//! Events that a test emits, and subscriptions to them.

use serde_json::{Map, Value};

use super::{Changes, TestServer};
use crate::capability::events::PayloadOf;

impl TestServer {
    /// Emits an event, as the program does with [`ServerHandle::emit`](crate::ServerHandle::emit) (preview); returns the
    /// wire's `eventId`. See [`events`](Self::events).
    ///
    /// # Panics
    /// The event cannot be emitted.
    pub async fn emit<E>(&self, payload: &impl PayloadOf<E>) -> String {
        match self.client.connection.server.handle().emit::<E>(payload).await {
            Ok(id) => id,
            Err(error) => panic!("the event was not emitted: {error}"),
        }
    }

    /// Subscribes to an event with these arguments, from now on (preview): opens a stream of `events/stream`, whose
    /// notifications are those of [`event`](crate::event)s.
    ///
    /// ```
    /// use mcp_runtime::{event, prelude::*, serde_json::json, testing::TestServer};
    ///
    /// #[mcp_type]
    /// struct Brew {
    ///     cups: u32,
    /// }
    ///
    /// /// Coffee is ready.
    /// #[mcp_event]
    /// fn brewed(#[mcp(payload)] brew: &Brew, min_cups: u32) -> bool {
    ///     brew.cups >= min_cups
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let server = TestServer::new(mcp_runtime::server!().add(event::of::<brewed>()))?;
    /// let mut events = server.events("brewed", json!({ "min_cups": 2 })).await;
    /// for cups in [1, 2] {
    ///     server.emit::<brewed>(&Brew { cups }).await;
    /// }
    /// assert_eq!(events.next().await["params"]["data"], json!({ "cups": 2 }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// The server refuses the request.
    pub async fn events(&self, name: &str, arguments: Value) -> Changes {
        let params = Map::from_iter([("name".to_owned(), name.into()), ("arguments".to_owned(), arguments)]);
        let opened = self.open_stream("events/stream", params).await;
        let mut changes = opened.unwrap_or_else(|reply| panic!("`events/stream` was refused: {reply}"));
        changes.acknowledged = changes.next().await["params"].take();
        changes
    }
}
