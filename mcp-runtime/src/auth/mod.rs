//! Callers of a server over HTTP: the [`Claims`] of a caller and, with the feature `auth`, the authentication of callers.
//!
#![cfg_attr(
    feature = "auth",
    doc = "[`ServerBuilder::auth`](super::ServerBuilder::auth) takes access tokens of an OAuth authorization server \
           ([`Oauth`]), [API keys](ApiKeys), or a [verifier](Verifier) of your own."
)]
//!
//! Callers are authenticated before the body of their request is read. A server is an OAuth *protected resource* then:
//! it publishes where tokens come from, and answers `401` and `403` with what a client needs to get the right one.
//!
//! See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).

#[cfg_attr(not(feature = "auth"), path = "alone.rs")]
mod callers;

pub(crate) use callers::Authenticator;
#[cfg(feature = "auth")]
pub use callers::{ApiKeys, Denied, Oauth, SigningAlgorithm, Verifier};
#[cfg(feature = "auth")]
pub(crate) use callers::{Authentication, RefusedCaller, set_up_authentication};

pub use crate::core::arguments::Claims;
