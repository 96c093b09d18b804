//! Token verification: a trait that users implement, and the reasons for refusing a token.

use std::{borrow::Cow, fmt, pin::Pin, sync::Arc, time::Duration};

use http::request::Parts;

use super::authenticator::Scheme;
use crate::core::{bound::Texts, connection::Principal, maybe_ready::MaybeReady, reason::Refusal};

/// Verifies the bearer tokens of callers: a session store, an identity provider's own library, a database of keys.
///
/// Give it to [`ServerBuilder::auth`](crate::ServerBuilder::auth). If the tokens come from an OAuth authorization server,
/// use [`Oauth::verifier`](super::Oauth::verifier) instead, so that clients find that server.
///
/// ```
/// use http::request::Parts;
/// use mcp_runtime::{Principal, auth::{Denied, Verifier}};
///
/// struct Sessions;
///
/// impl Verifier for Sessions {
///     async fn verify(&self, token: &str, _request: &Parts) -> Result<Principal, Denied> {
///         match self.user_of(token).await {
///             Ok(Some(user)) => Ok(Principal::new("https://example.com", user).with_scopes(["notes:read"])),
///             Ok(None) => Err(Denied::invalid_token("the token is unknown or has expired")),
///             Err(error) => Err(Denied::unavailable(error)),
///         }
///     }
/// }
/// # impl Sessions {
/// #     async fn user_of(&self, _: &str) -> Result<Option<String>, std::io::Error> { Ok(None) }
/// # }
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let server = mcp_runtime::server!().auth(Sessions).build()?;
/// # Ok(())
/// # }
/// ```
pub trait Verifier: Send + Sync + 'static {
    /// Returns the principal that calls with this token. `request` is the head of the request, whose body has not been read
    /// yet. The method runs for every request, so cache results of slow look-ups.
    ///
    /// A principal that has [expired](Principal::with_expiry), or whose subject is empty, is refused like one with an invalid
    /// token, and so is a token that is sent with another scheme than `Bearer`.
    ///
    /// # Errors
    /// The token is refused, or that cannot be decided now.
    fn verify(&self, token: &str, request: &Parts) -> impl Future<Output = Result<Principal, Denied>> + Send;
}

/// Why a caller is not served.
#[derive(Debug, Clone)]
pub struct Denied {
    pub(super) reason: DeniedReason,
    /// The description for the client: `error_description` on the wire.
    pub(super) description: Cow<'static, str>,
    /// The token is one that the authorization server has issued: no one has guessed it.
    pub(super) is_genuine: bool,
    /// The same would be said a moment later.
    pub(super) is_lasting: bool,
    /// The reason, for operators.
    pub(super) cause: Refusal,
    /// The caller, if it is known.
    pub(super) caller: Option<Arc<Principal>>,
    /// The scopes that the caller lacks, separated by spaces.
    pub(super) missing: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeniedReason {
    InvalidToken,
    /// With a challenge for a proof of possession.
    InvalidProof,
    /// With a nonce that the proof of possession has to contain.
    NonceNeeded(String),
    /// The scopes that are needed, separated by spaces.
    InsufficientScope(String),
    Forbidden,
    /// The cause is for the log.
    Unavailable(String),
}

impl Denied {
    pub(super) fn because(reason: DeniedReason, description: impl Into<Cow<'static, str>>) -> Self {
        let cause = match &reason {
            DeniedReason::InvalidToken => Refusal::TokenInvalid,
            DeniedReason::InvalidProof | DeniedReason::NonceNeeded(_) => Refusal::TokenProof,
            DeniedReason::InsufficientScope(_) => Refusal::Scopes,
            DeniedReason::Forbidden => Refusal::Forbidden,
            DeniedReason::Unavailable(_) => Refusal::AuthUnavailable,
        };
        let missing = match &reason {
            DeniedReason::InsufficientScope(scopes) => scopes.as_str().into(),
            _ => Box::default(),
        };
        Self {
            reason,
            description: description.into(),
            is_genuine: false,
            is_lasting: true,
            cause,
            caller: None,
            missing,
        }
    }

    /// `401` with the error `invalid_token`: the token is malformed, unknown, expired, revoked or meant for another
    /// server. The client is told the description, and may get another token.
    ///
    /// See [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750#section-3.1).
    pub fn invalid_token(description: impl Into<Cow<'static, str>>) -> Self {
        Self::because(DeniedReason::InvalidToken, description)
    }

    /// `403` with the error `insufficient_scope`: nothing is served without these scopes.
    pub fn insufficient_scope(scopes: impl Texts) -> Self {
        let names = scopes.into_texts().join(" ");
        Self::because(DeniedReason::InsufficientScope(names), "the token lacks a scope")
    }

    /// `403`: the caller is known, and may not use this server. Another token would not help.
    pub fn forbidden(description: impl Into<Cow<'static, str>>) -> Self {
        Self::because(DeniedReason::Forbidden, description)
    }

    /// `503`: it cannot be decided now whether the token is valid. The cause is logged, and not sent.
    pub fn unavailable(cause: impl fmt::Display) -> Self {
        let reason = DeniedReason::Unavailable(cause.to_string());
        Self::because(reason, "callers cannot be authenticated at the moment")
    }

    /// An invalid token, with what is invalid about it for operators.
    pub(super) fn token(cause: Refusal, description: impl Into<Cow<'static, str>>) -> Self {
        Self { cause, ..Self::invalid_token(description) }
    }

    /// The same about a caller that is known, which lacks these scopes.
    pub(super) fn of_caller(self, caller: &Arc<Principal>, missing: &[&str]) -> Self {
        Self { caller: Some(caller.clone()), missing: missing.join(" ").into(), ..self }
    }

    /// The same about a token that the authorization server has issued.
    pub(super) fn of_genuine_token(self) -> Self {
        Self { is_genuine: true, ..self }
    }

    /// The same for this moment only.
    pub(super) fn for_now(self) -> Self {
        Self { is_lasting: false, ..self }
    }

    /// How much it says about the token: of several methods, most do not know it at all.
    pub(super) fn precision(&self) -> u8 {
        match self.cause {
            _ if self.is_genuine => 4,
            Refusal::TokenSignature => 3,
            Refusal::TokenMalformed => 0,
            Refusal::TokenUnknown | Refusal::TokenInvalid | Refusal::TokenInactive => 1,
            _ => 2,
        }
    }

    pub(super) fn is_unavailable(&self) -> bool {
        matches!(self.reason, DeniedReason::Unavailable(_))
    }
}

/// A token as a request presents it.
#[derive(Clone, Copy)]
pub(super) struct PresentedToken<'a> {
    pub(super) scheme: Scheme,
    pub(super) text: &'a str,
}

impl PresentedToken<'_> {
    /// The principal of a token that is not bound to a key, for a method that checks no proofs of possession.
    pub(super) fn require_bearer(self, principal: Arc<Principal>) -> Result<Arc<Principal>, Denied> {
        match self.scheme {
            Scheme::Bearer => Ok(principal),
            Scheme::Dpop => {
                let text = "the token is not bound to a key\nsend it with the scheme Bearer";
                Err(Denied::token(Refusal::TokenBinding, text).of_genuine_token().for_now())
            }
        }
    }
}

pub(super) type VerdictFuture<'a> = Pin<Box<dyn Future<Output = Result<Arc<Principal>, Denied>> + Send + 'a>>;

/// The verdict of an authentication method on a token.
pub(super) type Verdict<'a> = MaybeReady<Result<Arc<Principal>, Denied>, VerdictFuture<'a>>;

/// A way to authenticate callers: a [`Verifier`] as an object.
pub(super) trait Method: Send + Sync {
    /// The verdict on a token that was accepted before, if it is kept.
    fn kept<'a>(&'a self, _token: PresentedToken<'a>, _request: &'a Parts) -> Option<Verdict<'a>> {
        None
    }

    /// Whether a token, by what it says of itself, is meant for this method and for no other.
    fn is_meant(&self, _token: PresentedToken<'_>) -> bool {
        false
    }

    /// How long a refusal may be kept.
    fn keeps_refusals(&self) -> Duration {
        Duration::MAX
    }

    fn verify<'a>(&'a self, token: PresentedToken<'a>, request: &'a Parts) -> Verdict<'a>;

    /// Reads again what it has read from the environment, forgets what it has kept, and returns those who are not
    /// known any more.
    ///
    /// # Errors
    /// It cannot be read; nothing has changed then.
    fn reload(&self) -> Result<Vec<Principal>, String> {
        Ok(Vec::new())
    }

    /// Whether this is one of its principals, with the same scopes and claims; `None` if it has no list of them.
    fn has(&self, _principal: &Principal) -> Option<bool> {
        None
    }

    /// Forgets what it has kept of a principal.
    fn forget(&self, _principal: &Principal) {}
}

/// The method that is a user's verifier.
pub(super) struct CustomVerifier<V>(pub(super) V);

impl<V: Verifier> Method for CustomVerifier<V> {
    fn verify<'a>(&'a self, token: PresentedToken<'a>, request: &'a Parts) -> Verdict<'a> {
        Verdict::Pending(Box::pin(async move {
            token.require_bearer(self.0.verify(token.text, request).await?.into())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_a_verifier_is_counted_by_its_reason() {
        assert_eq!(Denied::invalid_token("unknown").cause, Refusal::TokenInvalid);
        assert_eq!(Denied::because(DeniedReason::InvalidProof, "replayed").cause, Refusal::TokenProof);
    }
}
