//! Opaque tokens: the authorization server is asked who bears one.
//!
//! See [RFC 7662](https://www.rfc-editor.org/rfc/rfc7662).

use std::{sync::Arc, time::Instant};

use serde_json::{Map, Value};
use tokio::sync::{OnceCell, Semaphore};

use super::{jwks::IssuerEndpoint, token_claims::TokenClaims, verifier::Denied};
use crate::core::reason::Refusal;

/// Questions that are asked at once; more are answered `503`.
const MAX_QUESTIONS: usize = 64;

/// Asks an authorization server about tokens.
pub(super) struct Introspector {
    endpoint: Arc<IssuerEndpoint>,
    /// Unset: the value in the metadata.
    url: Option<String>,
    discovered: OnceCell<String>,
    client_id: String,
    secret: String,
    questions: Semaphore,
}

impl Introspector {
    pub(super) fn new(
        endpoint: Arc<IssuerEndpoint>,
        url: Option<String>,
        (client_id, secret): (String, String),
    ) -> Self {
        let (discovered, questions) = (OnceCell::new(), Semaphore::new(MAX_QUESTIONS));
        Self { endpoint, url, discovered, client_id, secret, questions }
    }

    async fn url(&self) -> Result<&str, Denied> {
        if let Some(url) = &self.url {
            return Ok(url);
        }
        let discover = async {
            let metadata = self.endpoint.metadata().await?;
            metadata.introspection_endpoint.ok_or_else(|| {
                "the metadata of the authorization server names no `introspection_endpoint`".to_owned()
            })
        };
        self.discovered.get_or_try_init(|| discover).await.map(String::as_str).map_err(Denied::unavailable)
    }

    /// Asks the authorization server about a token.
    ///
    /// # Errors
    /// The token is not active, or the server cannot be asked: a failed request never counts as a positive answer.
    pub(super) async fn ask(&self, token: &str) -> Result<TokenClaims, Denied> {
        let _question = self
            .questions
            .try_acquire()
            .map_err(|_| Denied::unavailable("too many tokens are being introspected"))?;
        let url = self.url().await?;
        let fields = [("token", token), ("token_type_hint", "access_token")];
        let credentials = (self.client_id.as_str(), self.secret.as_str());
        let started = Instant::now();
        let answer = self.endpoint.fetcher.post_form::<Map<String, Value>>(url, &fields, credentials).await;
        let answer = answer.map_err(|error| Denied::unavailable(format!("introspection: {error}")));
        let verdict = answer.and_then(|claims| match claims.get("active") {
            Some(Value::Bool(true)) => Ok(TokenClaims(claims)),
            Some(Value::Bool(false)) => Err(Denied::token(Refusal::TokenInactive, "the token is not active")),
            _ => Err(Denied::unavailable(
                "the introspection response does not say whether the token is active",
            )),
        });
        let outcome = match &verdict {
            Ok(_) => "active",
            Err(denied) if denied.is_unavailable() => "error",
            Err(_) => "inactive",
        };
        self.endpoint.observe("introspection", outcome, started);
        verdict
    }
}
