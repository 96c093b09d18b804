//! The builder's method that authenticates callers; only a program that calls it contains the code of this folder.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{Authentication, Authenticator, FailureRate, IntoAuthentication};
use crate::core::{
    admission::MAX_CALLERS,
    config::Options,
    crypto::KeyRing,
    observer::Observers,
    server::ServerBuilder,
    store::{SealedStore, SingleUse},
};

impl ServerBuilder {
    /// Authenticates the callers of the HTTP transport: with the access tokens of an OAuth authorization server
    /// ([`Oauth`](crate::auth::Oauth)), with [`ApiKeys`](crate::auth::ApiKeys), or with your
    /// own [`Verifier`](crate::auth::Verifier). Other requests are answered `401`.
    /// May be called several times; a token is accepted if one of them accepts it. The host of a server on stdio is trusted
    /// and not authenticated.
    ///
    /// ```
    /// use mcp_runtime::{Principal, auth::ApiKeys};
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// # let secret = "0123456789abcdef";
    /// let ada = Principal::new("https://example.com", "ada").with_scopes(["notes:read"]);
    /// let server = mcp_runtime::server!().auth(ApiKeys::new([(secret, ada)])).build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).
    #[doc(alias("oauth", "api_keys", "authentication", "bearer", "verifier"))]
    pub fn auth(mut self, authentication: impl IntoAuthentication) -> Self {
        let options = &mut self.options.of_capabilities;
        let mut added = options.get::<Authentications>().cloned().unwrap_or_default();
        added.0.push(Arc::new(authentication.into_authentication()));
        options.insert(added);
        self.set_up_authentication = Some(set_up);
        self
    }
}

/// How long it may take to find out whose a token is. A request whose verifier, or authorization server, takes longer is
/// answered `503`.
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(10);

/// The ways to authenticate callers that the builder was given.
#[derive(Clone, Default)]
struct Authentications(Vec<Arc<Authentication>>);

/// Sets them up in the options; returns their problems.
fn set_up(options: &mut Options, store: &SealedStore, keys: &KeyRing, observers: &Observers) -> Vec<String> {
    /// Proofs of possession that are remembered in memory, a minute or two each.
    const MAX_PROOFS: usize = 100_000;
    let added = options.of_capabilities.get::<Authentications>().cloned().unwrap_or_default();
    let mut problems = Vec::new();
    let http = &mut options.http;
    if http.caller.is_some() {
        problems.push(
                "callers are identified twice: by `.auth(..)`, and by `.http(|http| http.caller(..))` or `caller_from`\nkeep one".into(),
            );
    }
    if http.trusts_all {
        problems.push("`trust_all_callers` contradicts `.auth(..)`\nremove one".into());
    }
    let used = SingleUse::new(store, "proofs", MAX_PROOFS, options.limits.share_percent, SystemTime::now());
    let used = Arc::new(used);
    let rate = match &options.limits.invalid_tokens {
        Ok(rate) => *rate,
        Err(problem) => {
            problems.push(problem.clone());
            return problems;
        }
    };
    let failed = FailureRate { rate, addresses: MAX_CALLERS, timeout: AUTHENTICATION_TIMEOUT };
    match Authenticator::new(&added.0, &used, keys, failed, http.implies.as_ref(), observers) {
        Ok(authenticator) => http.authenticator = Some(Arc::new(authenticator)),
        Err(found) => problems.extend(found),
    }
    problems
}
