//! The builder's method that authenticates callers.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{Authentication, Authenticator, FailureRate, IntoAuthentication};
use crate::core::{
    admission::{MAX_CALLERS, Rate},
    config::{Limits, Options},
    crypto::KeyRing,
    observer::Observers,
    server::{Addition, ServerBuilder},
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
        self.authentications.push(authentication.into_authentication());
        self
    }
}

impl Addition {
    /// Authenticates the callers over HTTP as [`ServerBuilder::auth`] does, for a package that brings the authorization
    /// server as well, or knows who calls. `name` is that of the addition, for errors.
    ///
    /// ```
    /// use http::request::Parts;
    /// use mcp_runtime::{Principal, addition::{AddedStore, Addition}, auth::{Denied, Verifier}};
    ///
    /// /// Tokens that the server has sealed itself.
    /// struct Sealed(AddedStore);
    ///
    /// impl Verifier for Sealed {
    ///     async fn verify(&self, token: &str, _: &Parts) -> Result<Principal, Denied> {
    ///         let unknown = || Denied::invalid_token("the token is unknown");
    ///         let user = self.0.open("token", "users", token).ok_or_else(unknown)?;
    ///         Ok(Principal::new("https://example.com", String::from_utf8_lossy(&user)))
    ///     }
    /// }
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let passes = Addition::with_store("passes", |store| Addition::auth("passes", Sealed(store)));
    /// let server = mcp_runtime::server!().add(passes).build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`build`](ServerBuilder::build) fails if another addition authenticates callers too, or the builder does.
    pub fn auth(name: impl Into<String>, authentication: impl IntoAuthentication) -> Self {
        let mut authentication = authentication.into_authentication();
        authentication.addition = Some(name.into());
        Self::of(|builder| builder.authentications.push(authentication))
    }
}

/// How long it may take to find out whose a token is. A request whose verifier, or authorization server, takes longer is
/// answered `503`.
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Sets up in the options how callers are authenticated; returns the problems of that.
pub(crate) fn set_up_authentication(
    authentications: &[Authentication],
    options: &mut Options,
    store: &SealedStore,
    keys: &KeyRing,
    observers: &Observers,
) -> Vec<String> {
    /// Proofs of possession that are remembered in memory, a minute or two each.
    const MAX_PROOFS: usize = 100_000;
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
    if authentications.len() > 1 && authentications.iter().any(|one| one.addition.is_some()) {
        let by = authentications.iter().map(|one| match &one.addition {
            Some(name) => format!("the addition `{name}`"),
            None => "`.auth(..)`".to_owned(),
        });
        let by = by.collect::<Vec<_>>().join(" and by ");
        problems.push(format!("callers are authenticated by {by}\nkeep one"));
    }
    let used = SingleUse::new(store, "proofs", MAX_PROOFS, SystemTime::now());
    let used = Arc::new(used);
    let rate = match &options.limits.invalid_tokens {
        Ok(rate) => *rate,
        Err(problem) => {
            problems.push(problem.clone());
            return problems;
        }
    };
    let failed = FailureRate { rate, addresses: MAX_CALLERS, timeout: AUTHENTICATION_TIMEOUT };
    match Authenticator::new(authentications, &used, keys, failed, http.implies.as_ref(), observers) {
        Ok(authenticator) => http.authenticator = Some(Arc::new(authenticator)),
        Err(found) => problems.extend(found),
    }
    problems
}

impl Limits {
    /// Sets how many invalid tokens may come from one address, with which callers authenticate over HTTP: `"60/1m"` by
    /// default.
    ///
    /// Further guesses are refused with `429` and `Retry-After`, without being verified. Tokens that were accepted from the
    /// address before are verified as always; a new one is verified if it comes again after the time in `Retry-After`. A
    /// repeated token counts once, and a token that the authorization server has issued, such as an expired one, does not
    /// count. See
    /// [guesses](crate::guide::authorization#guesses).
    ///
    /// [`build`](crate::ServerBuilder::build) fails if it is not a rate.
    pub fn invalid_token_rate(mut self, rate: &str) -> Self {
        self.invalid_tokens = Rate::parse(rate);
        self
    }
}
