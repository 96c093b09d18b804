//! Keys of callers that change while a server runs.

use super::{Error, Result, ServerHandle};

impl ServerHandle {
    /// Reads the [API keys](crate::auth::ApiKeys) again that are from a file or the environment, and forgets which tokens
    /// were valid, so that each is verified again. The streams of callers whose keys were removed or got other scopes
    /// end, and their subscriptions to events by webhook.
    ///
    /// # Errors
    /// The keys cannot be read, or the server has been dropped. They are unchanged then.
    pub fn reload_auth(&self) -> Result<()> {
        let shared = self.0.upgrade().ok_or_else(|| Error::from("the server has been dropped"))?;
        let Some(authenticator) = &shared.parts.options.http.authenticator else { return Ok(()) };
        for principal in authenticator.reload().map_err(Error::from)? {
            shared.end_of_principal(&principal);
        }
        Ok(())
    }
}
