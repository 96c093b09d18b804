//! Who may call a server over HTTP: [`Claims`] of a caller, and with the feature `auth` what
//! [`ServerBuilder::auth`](crate::ServerBuilder::auth) takes: access tokens of an OAuth authorization server
//! ([`Oauth`]), [API keys](ApiKeys), or a [verifier](Verifier) of your own.
//!
//! Callers are authenticated before the body of their request is read. A server is an OAuth *protected resource* then:
//! it publishes where tokens come from, and answers `401` and `403` with what a client needs to get the right one.
//!
//! See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).

#[cfg(feature = "auth")]
mod api_keys;
#[cfg(feature = "auth")]
mod authenticator;
#[cfg(feature = "auth")]
mod compact_jwt;
#[cfg(feature = "auth")]
mod dpop;
#[cfg(feature = "auth")]
mod introspection;
#[cfg(feature = "auth")]
mod jwks;
#[cfg(feature = "auth")]
mod oauth;
#[cfg(feature = "auth")]
mod token_cache;
#[cfg(feature = "auth")]
mod token_claims;
#[cfg(feature = "auth")]
mod verifier;

#[cfg(feature = "auth")]
pub use api_keys::ApiKeys;
#[cfg(feature = "auth")]
pub use authenticator::Authentication;
#[cfg(feature = "auth")]
pub(crate) use authenticator::{Authenticator, RefusedCaller, Verification};
#[cfg(feature = "auth")]
pub use compact_jwt::SigningAlgorithm;
#[cfg(feature = "auth")]
pub use oauth::Oauth;
#[cfg(feature = "auth")]
pub use verifier::{Denied, Verifier};

pub use crate::arguments::Claims;
