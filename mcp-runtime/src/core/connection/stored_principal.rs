//! A principal as a store keeps it, with work that continues in its name.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Principal;
use crate::core::{config::LONGEST, unix_time::unix_millis};

/// A principal, as it was authenticated.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StoredPrincipal {
    issuer: String,
    subject: String,
    client_id: Option<String>,
    scopes: Vec<String>,
    claims: Option<Map<String, Value>>,
    actor: Option<Value>,
    confirmation_key: Option<String>,
    /// Milliseconds since 1970.
    expires: Option<u64>,
}

impl StoredPrincipal {
    pub(crate) fn new(principal: &Principal) -> Self {
        Self {
            issuer: principal.issuer().to_owned(),
            subject: principal.subject().to_owned(),
            client_id: principal.client_id().map(str::to_owned),
            scopes: principal.scopes().to_vec(),
            claims: principal.claims().cloned(),
            actor: principal.actor().cloned(),
            confirmation_key: principal.confirmation_key().map(str::to_owned),
            expires: principal.expires().map(unix_millis),
        }
    }

    /// Its issuer and subject.
    #[cfg(feature = "events-webhook")]
    pub(crate) fn identity(&self) -> (&str, &str) {
        (&self.issuer, &self.subject)
    }

    /// The principal as it was authenticated.
    pub(crate) fn principal(&self) -> Principal {
        let mut principal = Principal::new(&self.issuer, &self.subject).with_scopes(self.scopes.clone());
        if let Some(id) = &self.client_id {
            principal = principal.with_client_id(id);
        }
        if let Some(claims) = &self.claims {
            principal = principal.with_claims(claims.clone());
        }
        if let Some(actor) = &self.actor {
            principal = principal.with_actor(actor.clone());
        }
        if let Some(key) = &self.confirmation_key {
            principal = principal.with_confirmation_key(key);
        }
        match self.expires {
            Some(expires) => {
                principal.with_expiry(UNIX_EPOCH + Duration::from_millis(expires).min(LONGEST * 100))
            }
            None => principal,
        }
    }
}
