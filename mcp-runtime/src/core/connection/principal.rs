//! Callers: the subject that an issuer vouches for, and the details of its authentication.

use std::{fmt, sync::Arc, time::SystemTime};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::core::bound::Texts;

/// An authenticated caller: a `subject` for which an `issuer` vouches, the scopes granted to it, and what else is known
/// of its authentication.
///
/// Functions take it as `&Principal`, or as `Option<&Principal>` if they serve anonymous callers as well. Sessions,
/// tasks, `requestState` and cursors belong to the principal that started them: to this issuer and subject, whatever
/// its scopes, client and claims are.
///
/// ```
/// use mcp_runtime::{Principal, prelude::*, testing::TestServer};
/// use serde_json::json;
///
/// /// Who is calling?
/// #[mcp_tool]
/// fn whoami(caller: &Principal) -> String {
///     caller.subject().to_owned()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mcp_runtime::Result<()> {
/// let ada = Principal::new("https://id.example.com", "ada").with_scopes(["notes:read"]);
/// let server = TestServer::new(mcp_runtime::server!().tool::<whoami>())?.caller(ada);
/// server.call("whoami", json!({})).await.expect_text("ada");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    client_id: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// Shared, since they may be large.
    claims: Option<Arc<Map<String, Value>>>,
    actor: Option<Arc<Value>>,
    confirmation_key: Option<String>,
    pub(crate) expires: Option<SystemTime>,
    /// Of its issuer and subject, which do not change: limits need it for each request.
    digest: Arc<str>,
}

impl Principal {
    /// A principal without scopes. The subject is unique within the issuer.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        let (issuer, subject) = (issuer.into(), subject.into());
        let length = (issuer.len() as u64).to_le_bytes();
        let digest =
            Sha256::new().chain_update(length).chain_update(&issuer).chain_update(&subject).finalize();
        Self {
            digest: URL_SAFE_NO_PAD.encode(digest).into(),
            issuer,
            subject,
            client_id: None,
            scopes: Vec::new(),
            claims: None,
            actor: None,
            confirmation_key: None,
            expires: None,
        }
    }

    /// Sets the granted scopes; items that require others are hidden from the principal, and calls of them are refused.
    #[must_use]
    pub fn with_scopes(mut self, scopes: impl Texts) -> Self {
        self.scopes = scopes.into_texts();
        self
    }

    /// Sets the OAuth client that calls for the subject: the claim `client_id` of
    /// [RFC 9068](https://www.rfc-editor.org/rfc/rfc9068#section-2.2).
    #[must_use]
    pub fn with_client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// Sets everything that the issuer says about the subject. Functions read it as [`Claims`](crate::auth::Claims).
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        self.claims = Some(Arc::new(claims));
        self
    }

    /// Sets who acts for the subject, and for whom that one acts in turn: the claim `act` of
    /// [RFC 8693](https://www.rfc-editor.org/rfc/rfc8693#section-4.1).
    #[must_use]
    pub fn with_actor(mut self, actor: Value) -> Self {
        self.actor = Some(Arc::new(actor));
        self
    }

    /// Sets the thumbprint of the key that the principal has proved to hold: the member `jkt` of the claim `cnf`
    /// ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449#section-6.1)), or `x5t#S256`
    /// ([RFC 8705](https://www.rfc-editor.org/rfc/rfc8705#section-3.1)).
    #[must_use]
    pub fn with_confirmation_key(mut self, thumbprint: impl Into<String>) -> Self {
        self.confirmation_key = Some(thumbprint.into());
        self
    }

    /// Sets when the principal's authentication expires, such as the `exp` of a token: its streams end then, and from then
    /// on requests are those of an anonymous caller.
    #[must_use]
    pub fn with_expiry(mut self, expires: SystemTime) -> Self {
        self.expires = Some(expires);
        self
    }

    /// The issuer that vouches for the subject.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The subject, unique within the issuer.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The OAuth client that calls for the subject, if it is known.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.client_id.as_deref()
    }

    /// The granted scopes.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The issuer's claims about the subject, by name.
    #[must_use]
    pub fn claims(&self) -> Option<&Map<String, Value>> {
        self.claims.as_deref()
    }

    /// The party that acts for the subject; JSON with `sub`, and with `iss` or a nested `act` where the issuer says so.
    #[must_use]
    pub fn actor(&self) -> Option<&Value> {
        self.actor.as_deref()
    }

    /// The thumbprint of the key that the principal has proved to hold, in base64url.
    #[must_use]
    pub fn confirmation_key(&self) -> Option<&str> {
        self.confirmation_key.as_deref()
    }

    /// When the principal's authentication expires, if it does.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// Whether both are the same subject of the same issuer, whatever their scopes and expiry are.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.subject == other.subject
    }

    /// Whether its authentication has expired.
    pub(crate) fn has_expired(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= SystemTime::now())
    }
}

/// Without claims, which may be personal.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("issuer", &self.issuer)
            .field("subject", &self.subject)
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// A digest that identifies a caller; `None` without an authenticated caller.
pub(crate) fn principal_digest(caller: Option<&Principal>) -> Option<Arc<str>> {
    caller.map(|caller| caller.digest.clone())
}
