//! The stored entry of a server: its tokens, the authorization server that issued them, and the client as that knows it.

use serde::{Deserialize, Serialize};

use super::now;
use crate::fetch::Reach;

/// The stored entry of a server.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct KeptTokens {
    pub(super) access_token: Option<String>,
    pub(super) refresh_token: Option<String>,
    /// When it is to be renewed, in seconds since 1970.
    pub(super) renew_at: Option<u64>,
    pub(super) scopes: Vec<String>,
    /// The authorization server that issued all of this.
    pub(super) issuer: String,
    /// Where that server may be.
    pub(super) reach: Reach,
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    pub(super) client: Option<KeptClient>,
    /// The key that the tokens are bound to.
    pub(super) proof_key: Option<String>,
    /// Whether the access token is bound to it.
    pub(super) is_bound: bool,
    /// Whether the store was asked.
    #[serde(skip)]
    pub(super) is_loaded: bool,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct KeptClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// How it authenticates itself at the token endpoint.
    pub(super) method: String,
    /// The redirect that the client was registered with, until the registration has led to a token.
    #[serde(default)]
    pub(super) untried_redirect: Option<String>,
}

impl KeptClient {
    pub(super) fn new(id: &str, secret: Option<&str>, method: &str) -> Self {
        let secret = secret.map(str::to_owned);
        Self { id: id.to_owned(), secret, method: method.to_owned(), untried_redirect: None }
    }

    /// Whether it may be used with this redirect; some authorization servers compare all of it.
    pub(super) fn accepts(&self, redirect_uri: &str) -> bool {
        self.untried_redirect.as_deref().is_none_or(|registered| registered == redirect_uri)
    }
}

impl KeptTokens {
    /// None, of a store that was asked.
    pub(super) fn none() -> Self {
        Self { is_loaded: true, ..Self::default() }
    }

    pub(super) fn valid_token(&self) -> Option<&str> {
        let token = self.access_token.as_deref()?;
        self.renew_at.is_none_or(|end| now() < end).then_some(token)
    }
}
