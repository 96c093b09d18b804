//! Work that is done once although a function runs again when its call is retried, and responses that may be used once.

use std::time::{Duration, SystemTime};

use serde::{Serialize, de::DeserializeOwned};

use crate::core::{
    context::{ClientRequestError, Context, Delivery, RawJson},
    error::ToolError,
    store::ConsumedCall,
};

/// Which call this is a retry of.
enum CallIdentity {
    /// It is not a retry.
    Initial,
    Known {
        /// Random, and the same in all retries.
        call_id: String,
        started: SystemTime,
        /// Until then it can be retried.
        expires: SystemTime,
    },
    /// The client sent responses without `requestState`.
    Unknown,
}

impl Context {
    /// Does `work`, unless an earlier run of this call has done it; then this is the result of that run.
    ///
    /// A function that sends a client request may run again from its beginning when the response arrives. Work
    /// that must not be repeated belongs in here. The client carries the result in the sealed `requestState` until
    /// the call ends, so it must be small; failures are not kept. If the client loses it, `work` is done again: at
    /// least once, not exactly once. In a task that another replica may [run again](crate::guide::tasks), the shared store
    /// keeps the result.
    ///
    /// # Errors
    /// The error of `work`, or that the key was used for another purpose in this call.
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
        // a result that cannot be decoded is from another version of the program
        if let Some(value) = self.claim_saved(key)?.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            return Ok(value);
        }
        let value = work().await?;
        if let Some(task) = self.client_requests().task() {
            if task.may_run_again() {
                task.save(key, serde_json::value::to_raw_value(&value)?).await;
            }
            return Ok(value);
        }
        let may_be_retried = matches!(self.client_requests().lock().delivery, Delivery::InputRequired);
        if may_be_retried {
            let saved = serde_json::value::to_raw_value(&value)?;
            self.client_requests().lock().saved.insert(key.to_owned(), saved);
        }
        Ok(value)
    }

    /// Ensures that the responses to this call's client requests are used once.
    ///
    /// A client can retry a call with the same `requestState` until that expires. A function whose effect must not be
    /// repeated calls this after its client requests, right before the effect: it succeeds only in the first of these
    /// retries.
    ///
    /// Which responses were used is kept in memory, unless the server has a [store](crate::ServerBuilder::shared) that
    /// replicas share, which decides it for all of them; while that cannot be reached, every call is refused. In memory nothing is known of earlier processes: a call that the client was first
    /// asked about before this one started is refused.
    ///
    /// In a task that another replica may [run again](crate::guide::tasks), it succeeds once in all runs together: a run after
    /// one that has consumed the responses is refused, since their effect may have happened.
    ///
    /// # Errors
    /// The responses were used before, or may have been, or the client has used up its share of the store; or they came without `requestState`, which identifies them.
    pub async fn consume_once(&self) -> Result<(), ToolError> {
        let is_first_retry = match self.call_identity() {
            CallIdentity::Initial => true,
            CallIdentity::Known { call_id, started, expires } => {
                let owner = self.inner().request.owner();
                let call = ConsumedCall { id: &call_id, owner: &owner, started, expires };
                self.inner().settings.single_use.consume(call).await
            }
            CallIdentity::Unknown => {
                let text = "the answers came without `requestState`, so they cannot be used here";
                return Err(ToolError::new(text));
            }
        };
        // each run of a task is the same call
        let task = self.client_requests().task().filter(|task| task.may_run_again());
        let is_first = match task {
            Some(task) if is_first_retry => task.consume().await,
            _ => is_first_retry,
        };
        if !is_first {
            return Err(ToolError::new(
                "the answers of this call were used before, or it cannot be told whether they were",
            ));
        }
        self.client_requests().lock().consumed = true;
        Ok(())
    }

    /// The result that an earlier run of this call has saved under a key.
    fn claim_saved(&self, key: &str) -> Result<Option<RawJson>, ClientRequestError> {
        let mut state = self.client_requests().lock();
        state.claim_key(key)?;
        let earlier = state.retry.as_ref().and_then(|retry| retry.state.as_ref());
        if let Some(saved) = earlier.and_then(|earlier| earlier.saved.get(key)) {
            return Ok(Some(saved.clone()));
        }
        drop(state);
        Ok(self.client_requests().task().and_then(|task| task.saved(key)))
    }

    fn call_identity(&self) -> CallIdentity {
        match &self.client_requests().lock().retry {
            None => CallIdentity::Initial,
            Some(retry) => match &retry.state {
                Some(state) => CallIdentity::Known {
                    call_id: state.call_id.clone(),
                    started: SystemTime::UNIX_EPOCH + Duration::from_millis(state.started),
                    expires: SystemTime::UNIX_EPOCH + Duration::from_secs(state.expires),
                },
                None if retry.is_identified() => CallIdentity::Initial,
                None => CallIdentity::Unknown,
            },
        }
    }
}
