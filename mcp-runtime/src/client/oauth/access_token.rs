//! An access token as requests contain it, which no log shows.

use std::sync::Arc;

use http::{HeaderValue, header};

use super::proof_key::{DPOP, ProofKey};
use crate::{client::Error, fetch::HttpRequest};

/// An access token as it is sent.
pub(super) struct AccessToken {
    text: String,
    /// For a token that is bound to it.
    proof_key: Option<Arc<ProofKey>>,
}

impl AccessToken {
    pub(super) fn new(text: String, proof_key: Option<Arc<ProofKey>>) -> Self {
        Self { text, proof_key }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn proof_key(&self) -> Option<&ProofKey> {
        self.proof_key.as_deref()
    }

    /// Authorizes a request, as a bearer or with a proof.
    pub(super) fn authorize(&self, request: &mut HttpRequest) -> Result<(), Error> {
        let scheme = match &self.proof_key {
            None => "Bearer",
            Some(key) => {
                let proof = key.proof(&request.method, &request.url, Some(&self.text))?;
                request.headers.insert(DPOP, header_value(&proof)?);
                "DPoP"
            }
        };
        let value = header_value(&format!("{scheme} {}", self.text))?;
        request.headers.insert(header::AUTHORIZATION, value);
        Ok(())
    }
}

/// The value of a header that is not logged.
pub(super) fn header_value(text: &str) -> Result<HeaderValue, Error> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| Error::invalid("the access token cannot be sent in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}
