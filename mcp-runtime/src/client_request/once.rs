//! Work that is done once though a function runs again, and answers that may be used a single time.

use std::time::{Duration, SystemTime};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    context::{Chain, Context},
    error::ToolError,
};

impl Context {
    /// Does `work`, unless an earlier round of this call has done it; then this is that round's result.
    ///
    /// A function that asks its client may run again from its top when the answer comes, and everything before the
    /// question with it. What must not be done or computed again goes in here. The result travels with the client
    /// until the call ends, sealed, so it must be small; failures are not kept. If the client loses it, `work` is done
    /// again: at least once, not exactly once.
    ///
    /// # Errors
    /// What `work` fails with; the key was used for something else in this call.
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// # async fn price_of(item: &str) -> Result<u32, ToolError> { Ok(10) }
    /// /// Orders an item.
    /// #[mcp_tool]
    /// async fn order(item: String, ctx: &Context) -> Result<String, ToolError> {
    ///     let price = ctx.once("price", || price_of(&item)).await?;
    ///     Ok(format!("{item} costs {price}"))
    /// }
    /// ```
    pub async fn once<T, F>(&self, key: &str, work: impl FnOnce() -> F) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, ToolError>>,
    {
        // a result that can no longer be read is that of another version of the program
        if let Some(value) = self.saved(key)?.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            return Ok(value);
        }
        let value = work().await?;
        if self.has_rounds() {
            self.save(key, serde_json::value::to_raw_value(&value)?);
        }
        Ok(value)
    }

    /// Makes sure that the answers which this call has got are used once.
    ///
    /// What travels with the client between the rounds of a call can be sent again until it expires. A function whose
    /// effect must not be repeated calls this after its questions, right before the effect: only the first of all
    /// those calls goes on.
    ///
    /// The server remembers in memory what was used, unless it was given a [`SingleUse`](crate::SingleUse) store that replicas share.
    ///
    /// # Errors
    /// The answers were used before, or came without the state that tells them apart.
    pub async fn consume_once(&self) -> Result<(), ToolError> {
        let (chain, expires) = match self.chain() {
            Chain::First => return Ok(()),
            Chain::Known(chain, expires) => (chain, SystemTime::UNIX_EPOCH + Duration::from_secs(expires)),
            Chain::Lost => {
                let text = "the answers came without `requestState`, so they cannot be used here";
                return Err(ToolError::new(text));
            }
        };
        if self.inner().settings.single_use.consume(&chain, expires).await {
            Ok(())
        } else {
            Err(ToolError::new("the answers of this call were used before"))
        }
    }
}
