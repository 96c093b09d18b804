//! How callers are authenticated.

mod api_keys;
mod authenticator;
mod builder;
mod compact_jwt;
mod dpop;
mod guesses;
mod introspection;
mod jwks;
mod oauth;
mod token_cache;
mod token_claims;
mod verifier;

pub use api_keys::ApiKeys;
pub(crate) use authenticator::{Authentication, Authenticator, RefusedCaller};
use authenticator::{FailureRate, IntoAuthentication};
pub(crate) use builder::set_up_authentication;
pub use compact_jwt::SigningAlgorithm;
pub use oauth::Oauth;
pub use verifier::{Denied, Verifier};
