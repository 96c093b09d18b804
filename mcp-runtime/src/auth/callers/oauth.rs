//! Access tokens of an OAuth authorization server: its options, and the method that verifies its tokens.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::request::Parts;
use url::Url;

use super::{
    authenticator::Scheme,
    compact_jwt::{CompactJwt, SigningAlgorithm, TokenFault, VerifyingKey},
    dpop::{Nonces, ProofChecker},
    introspection::Introspector,
    jwks::{IssuerEndpoint, KeySource, KeyTimes},
    token_cache::{TokenCache, TokenDigest},
    token_claims::{Binding, ClaimNames, ClaimSource, ExpectedClaims, TokenClaims},
    verifier::{CustomVerifier, Denied, Method, PresentedToken, Verdict, Verifier},
};
use crate::{
    core::{
        bound::Texts,
        connection::{ImpliesFn, Principal},
        crypto::KeyRing,
        observer::Observers,
        reason::Refusal,
        resolver::Resolver,
        store::SingleUse,
    },
    fetch::{Fetcher, Reach},
};

/// The largest difference of clocks that is allowed for.
const MAX_SKEW: Duration = Duration::from_secs(60);
/// Tokens whose verdict is kept.
const CACHED_TOKENS: usize = 10_000;
/// How long an answer of the authorization server is believed, unless the options say otherwise.
const BELIEVED: Duration = Duration::from_secs(30);
/// The maximum time for which a verdict is kept, however long its token is valid.
const MAX_CACHED: Duration = Duration::from_secs(24 * 60 * 60);

/// Accepts the access tokens of one OAuth authorization server; pass it to
/// [`ServerBuilder::auth`](crate::ServerBuilder::auth).
/// Tokens are JWTs, verified with the keys that the authorization server publishes: signature, issuer, audience and
/// times. [`introspection`](Self::introspection) is for opaque tokens. Clients find the authorization server by the
/// metadata that the server publishes at `/.well-known/oauth-protected-resource`.
///
/// ```
/// use mcp_runtime::auth::Oauth;
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let server = mcp_runtime::server!()
///     .auth(
///         Oauth::issuer("https://id.example.com")
///             .resource("https://mcp.example.com/mcp")
///             .scopes(["notes:read", "notes:write"]),
///     )
///     .build()?;
/// # Ok(())
/// # }
/// ```
///
/// See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization) and
/// [RFC 9728](https://www.rfc-editor.org/rfc/rfc9728).
#[derive(Clone)]
#[must_use = "give it to `ServerBuilder::auth`"]
pub struct Oauth {
    pub(super) issuer: String,
    pub(super) resource: Option<String>,
    audiences: Vec<String>,
    pub(super) scopes: Vec<String>,
    /// Scopes that are not published to clients.
    pub(super) unlisted_scopes: Vec<String>,
    pub(super) required_scopes: Vec<String>,
    algorithms: Vec<SigningAlgorithm>,
    jwks_uri: Option<String>,
    times: KeyTimes,
    skew: Duration,
    access_token_type: bool,
    /// The client id and the secret of this server.
    introspection: Option<(String, String)>,
    introspection_url: Option<String>,
    introspection_cached: Option<Duration>,
    audience_by_endpoint: bool,
    claim_names: ClaimNames,
    pub(super) scope_prefix: String,
    verifier: Option<Arc<dyn Method>>,
    any_address: bool,
    pub(super) dpop: Dpop,
    nonce_lifetime: Option<Duration>,
    accept: Option<AcceptFn>,
    implies: Option<ImpliesFn>,
}

type AcceptFn = Arc<dyn Fn(&Principal) -> bool + Send + Sync>;

/// Whether tokens may be bound to keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dpop {
    Refused,
    Accepted,
    Required,
}

impl fmt::Debug for Oauth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oauth")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl Oauth {
    /// The tokens of this issuer: the URL that identifies the authorization server, spelled exactly as in its metadata
    /// and its tokens. Its metadata is discovered by
    /// [RFC 8414](https://www.rfc-editor.org/rfc/rfc8414#section-3) and OpenID Connect Discovery when the first token
    /// arrives.
    ///
    /// It is an `https:` URL of a public address, or one of this machine.
    pub fn issuer(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            resource: None,
            audiences: Vec::new(),
            scopes: Vec::new(),
            unlisted_scopes: Vec::new(),
            required_scopes: Vec::new(),
            algorithms: SigningAlgorithm::ALL.to_vec(),
            jwks_uri: None,
            times: KeyTimes {
                max_age: Duration::from_secs(10 * 60),
                max_outage: Duration::from_secs(24 * 60 * 60),
                cooldown: Duration::from_secs(30),
            },
            skew: Duration::from_secs(30),
            access_token_type: false,
            introspection: None,
            introspection_url: None,
            introspection_cached: None,
            audience_by_endpoint: false,
            claim_names: ClaimNames::default(),
            scope_prefix: String::new(),
            verifier: None,
            any_address: false,
            dpop: Dpop::Refused,
            nonce_lifetime: None,
            accept: None,
            implies: None,
        }
    }

    /// Sets the URL at which clients reach the endpoint: `resource` on the wire. Tokens must be issued for it, by their
    /// claim `aud`.
    /// It has no default, since the `Host` of a request proves nothing.
    pub fn resource(mut self, url: impl Into<String>) -> Self {
        self.resource = Some(url.into());
        self
    }

    /// Sets the scopes that the authorization server can grant: `scopes_supported` on the wire, without `offline_access`,
    /// which clients request on their own.
    ///
    /// An item that requires one of them is listed for everyone, and a call without it is `403` with the error
    /// `insufficient_scope`, so that the client can request it. An item that requires another scope is an error from
    /// [`build`](crate::ServerBuilder::build), unless it is one of the [`unlisted_scopes`](Self::unlisted_scopes).
    pub fn scopes(mut self, scopes: impl Texts) -> Self {
        self.scopes = scopes.into_texts();
        self
    }

    /// Sets further scopes that tokens may have but that are not published to clients, such as those of administrators: an
    /// item that requires one is hidden from callers without it.
    pub fn unlisted_scopes(mut self, scopes: impl Texts) -> Self {
        self.unlisted_scopes = scopes.into_texts();
        self
    }

    /// Lets granted scopes include required ones.
    pub(super) fn implied_scopes(mut self, implies: Option<ImpliesFn>) -> Self {
        self.implies = implies;
        self
    }

    /// Whether tokens have no other scopes than those that are set.
    pub(super) fn names_all_scopes(&self) -> bool {
        self.verifier.is_none() && !self.scopes.is_empty()
    }

    /// Sets scopes that every request needs. Clients without a token are told to request these first; without this option,
    /// they request all [`scopes`](Self::scopes). A scope that includes them by
    /// [`HttpOptions::implied_scopes`](crate::config::HttpOptions::implied_scopes) suffices.
    pub fn required_scopes(mut self, scopes: impl Texts) -> Self {
        self.required_scopes = scopes.into_texts();
        self
    }

    /// Accepts tokens for this audience as well, for authorization servers that do not support
    /// [resource indicators](https://www.rfc-editor.org/rfc/rfc8707) and use another name for the server.
    ///
    /// It must name this server alone: a token for another service must not be accepted.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Sets the allowed signature algorithms; by default all of them.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = SigningAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Sets the URL of the keys, for authorization servers without metadata.
    pub fn jwks_uri(mut self, url: impl Into<String>) -> Self {
        self.jwks_uri = Some(url.into());
        self
    }

    /// Sets the time after which the keys are fetched again; 10 minutes by default. A token with an unknown key causes a
    /// fetch at once.
    pub fn key_max_age(mut self, age: Duration) -> Self {
        self.times.max_age = age;
        self
    }

    /// Sets how long keys are used while they cannot be fetched again; 24 hours by default. After that requests are
    /// answered `503`.
    pub fn key_max_outage(mut self, time: Duration) -> Self {
        self.times.max_outage = time;
        self
    }

    /// Sets the pause between two fetches of the keys; 30 s by default. A token with an unknown key is refused during it.
    pub fn key_cooldown(mut self, pause: Duration) -> Self {
        self.times.cooldown = pause;
        self
    }

    /// Sets how far the clocks of the two servers may differ; 30 s by default, 60 s at most.
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.skew = skew.min(MAX_SKEW);
        self
    }

    /// Accepts only JWTs whose header `typ` declares an access token: `at+jwt`.
    /// Many authorization servers do not write it. Without this option, `JWT` is accepted as well, and a header without `typ`.
    ///
    /// See [RFC 9068](https://www.rfc-editor.org/rfc/rfc9068#section-4).
    pub fn require_access_token_type(mut self) -> Self {
        self.access_token_type = true;
        self
    }

    /// Asks the authorization server about every token, instead of verifying it as a JWT; this server identifies itself
    /// there by a client id and a secret. A response is used for 30 s, see
    /// [`introspection_cache`](Self::introspection_cache).
    /// A response must say that the token is active, and name this resource in `aud`, unless
    /// [the endpoint serves only this resource](Self::audience_by_endpoint). The caller is `sub`, or the `client_id` of a machine:
    /// if there is neither `sub` nor `username`. `exp` and `iss` may be absent.
    ///
    /// See [RFC 7662](https://www.rfc-editor.org/rfc/rfc7662).
    pub fn introspection(mut self, client_id: impl Into<String>, secret: impl Into<String>) -> Self {
        self.introspection = Some((client_id.into(), secret.into()));
        self
    }

    /// Sets the URL of the introspection endpoint, for authorization servers without metadata.
    pub fn introspection_endpoint(mut self, url: impl Into<String>) -> Self {
        self.introspection_url = Some(url.into());
        self
    }

    /// Accepts responses of the authorization server without `aud`: this server's credentials at the introspection
    /// endpoint are those of this resource, and the endpoint calls a token active only if it is for this resource.
    /// Many endpoints do not check this: with those, a token that was issued for another service would be accepted here.
    pub fn audience_by_endpoint(mut self) -> Self {
        self.audience_by_endpoint = true;
        self
    }

    /// Sets the claim that names the caller, in place of `sub`: such as `username`, `oid` or `email`. It must be unique, never be
    /// given to another user, and users must not choose it freely.
    ///
    /// A machine, whose token has no such claim and no subject but its own, is the caller `client:` and its client id. Names
    /// that begin with `/` are [JSON pointers](https://www.rfc-editor.org/rfc/rfc6901), here and in the next two.
    pub fn subject_claim(mut self, claim: impl Into<String>) -> Self {
        self.claim_names.subject = Some(claim.into());
        self
    }

    /// Sets the claims that grant scopes, in place of `scope` or `scp`: all of them together, each a list or words in a
    /// string. Such as `["scp", "roles"]`, `["permissions"]`, or `["scope", "/realm_access/roles"]`.
    pub fn scope_claims(mut self, claims: impl Texts) -> Self {
        self.claim_names.scopes = claims.into_texts();
        self
    }

    /// Sets the claim that must contain one of the [audiences](Self::audience), in place of `aud`: such as `client_id`, for
    /// authorization servers that do not write `aud`. A token that has an `aud` must have the right one there, too.
    pub fn audience_claim(mut self, claim: impl Into<String>) -> Self {
        self.claim_names.audience = Some(claim.into());
        self
    }

    /// Sets the prefix of scopes in requests of clients, if tokens contain the names without it: such as
    /// `api://0b1c.../`.
    pub fn scope_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.scope_prefix = prefix.into();
        self
    }

    /// Sets how long a response of the authorization server is used; 30 s by default. A token that is revoked there is
    /// still accepted here for this time.
    pub fn introspection_cache(mut self, time: Duration) -> Self {
        self.introspection_cached = Some(time);
        self
    }

    /// Verifies tokens with this verifier, while clients still find the authorization server. It is asked for every
    /// request; the principals that it returns must have been meant for this resource.
    pub fn verifier(mut self, verifier: impl Verifier) -> Self {
        self.verifier = Some(Arc::new(CustomVerifier(verifier)));
        self
    }

    /// Accepts a principal only if this rule returns `true`, which runs for every request: to check a list of blocked
    /// users, or the tenants of this server. Others get `403`.
    pub fn accept_if(mut self, accept: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Self {
        self.accept = Some(Arc::new(accept));
        self
    }

    /// Fetches keys from addresses of private networks too, and by `http:`; for tests, and for networks to which no one
    /// else can write.
    pub fn allow_private_network(mut self) -> Self {
        self.any_address = true;
        self
    }

    /// Accepts tokens that are bound to a key, if the client proves with each request that it holds that key. Without
    /// this, such tokens are refused.
    ///
    /// Proofs that were used are kept in memory, or in the [store](crate::ServerBuilder::shared) that replicas share.
    ///
    /// See [RFC 9449](https://www.rfc-editor.org/rfc/rfc9449).
    pub fn dpop(mut self) -> Self {
        self.dpop = Dpop::Accepted;
        self
    }

    /// Accepts only tokens that are bound to a key; see [`dpop`](Self::dpop).
    pub fn require_dpop(mut self) -> Self {
        self.dpop = Dpop::Required;
        self
    }

    /// Requires proofs to contain a nonce of this server that is not older than this, such as five minutes, so that a proof
    /// cannot be made in advance. A client without a nonce is told to use one (`use_dpop_nonce`) and retries, once in that
    /// time.
    /// The server stores no nonces: a nonce is the sealed time. Replicas need the same [keys](crate::config::Stores::keys).
    ///
    /// See [RFC 9449](https://www.rfc-editor.org/rfc/rfc9449#section-9).
    pub fn dpop_nonces(mut self, lifetime: Duration) -> Self {
        self.nonce_lifetime = Some(lifetime.max(Duration::from_secs(1)));
        self
    }

    /// The first problem with the options of introspection.
    fn check_introspection(&self) -> Option<String> {
        let set = [
            (self.introspection_url.is_some(), "introspection_endpoint"),
            (self.introspection_cached.is_some(), "introspection_cache"),
            (self.audience_by_endpoint, "audience_by_endpoint"),
        ];
        let (_, option) = set.iter().find(|(is_set, _)| *is_set && self.introspection.is_none())?;
        Some(format!(
            "`.{option}(..)` is for tokens that the authorization server is asked about, and none is\n\
             add `.introspection(\"client id\", \"secret\")`: the credentials of this server there"
        ))
    }

    /// The method that verifies tokens.
    ///
    /// # Errors
    /// Everything that is wrong with the options.
    pub(super) fn into_method(
        self,
        used: &Arc<SingleUse>,
        keys: &KeyRing,
        observers: &Observers,
    ) -> Result<OauthMethod, Vec<String>> {
        let mut problems = Vec::new();
        let reach = match (self.any_address, self.issuer.parse::<Url>()) {
            (true, _) => Reach::Any,
            (false, Ok(url)) => Reach::of(&url),
            (false, Err(_)) => Reach::Public,
        };
        let fetcher = Fetcher::new(reach, Resolver::system().into_function());
        problems.extend(self.check_introspection());
        let urls = [Some(&self.issuer), self.jwks_uri.as_ref(), self.introspection_url.as_ref()];
        for url in urls.into_iter().flatten() {
            if !url.parse::<Url>().is_ok_and(|url| url.has_host()) {
                let bare = url.trim_start_matches('/');
                problems
                    .push(format!("`{url}` is not a URL with a scheme and a host\nwrite `https://{bare}`"));
            } else if let Err(error) = fetcher.check_url(url) {
                problems.push(format!("{error}\nsuch addresses are for `.allow_private_network()`"));
            }
        }
        if self.algorithms.is_empty() {
            problems.push("`.algorithms(..)` allows none\nname at least one".into());
        }
        if self.nonce_lifetime.is_some() && self.dpop == Dpop::Refused {
            problems.push(
                "`.dpop_nonces(..)` is for proofs of possession, which are not accepted\nadd `.dpop()` or `.require_dpop()`"
                    .into(),
            );
        }
        let resource = self.resource.as_deref().unwrap_or_default();
        let resource = match parse_resource(resource) {
            Ok(url) => url,
            Err(problem) => {
                problems.push(problem);
                return Err(problems);
            }
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut audiences = self.audiences;
        audiences.extend(self.resource);
        if resource.path() == "/" {
            // with and without the slash it is the same URL, and clients write both
            let bare = resource.as_str().trim_end_matches('/');
            audiences.extend([bare.to_owned(), format!("{bare}/")]);
        }
        let endpoint =
            Arc::new(IssuerEndpoint { issuer: self.issuer.clone(), fetcher, observers: observers.clone() });
        let tokens = match (self.verifier, self.introspection) {
            (Some(verifier), _) => TokenKind::Custom(verifier),
            (None, Some(credentials)) => TokenKind::Opaque {
                introspector: Introspector::new(endpoint, self.introspection_url, credentials),
                cached: self.introspection_cached.unwrap_or(BELIEVED),
            },
            (None, None) => TokenKind::Jwt {
                keys: KeySource::new(endpoint, self.jwks_uri, self.times),
                algorithms: self.algorithms,
                types: if self.access_token_type { &["at+jwt"] } else { &["at+jwt", "jwt", ""] },
            },
        };
        let nonces = self.nonce_lifetime.map(|lifetime| Nonces::new(keys, lifetime));
        let proofs = ProofChecker { resource, used: used.clone(), skew: self.skew, nonces };
        Ok(OauthMethod {
            tokens,
            expected: ExpectedClaims {
                issuer: self.issuer,
                audiences,
                skew: self.skew,
                names: self.claim_names,
                audience_by_endpoint: self.audience_by_endpoint,
            },
            cache: TokenCache::new(CACHED_TOKENS).map_err(|problem| vec![problem])?,
            required_scopes: self.required_scopes,
            proofs,
            dpop: self.dpop,
            accept: self.accept,
            implies: self.implies,
        })
    }
}

/// Checks the URL of a resource.
///
/// # Errors
/// A message that says what to write instead.
pub(super) fn parse_resource(resource: &str) -> Result<Url, String> {
    if resource.is_empty() {
        return Err("`Oauth` does not say which resource it protects\n\
             add `.resource(\"https://mcp.example.com/mcp\")`: the URL under which clients reach the endpoint"
            .into());
    }
    let url = resource.parse::<Url>().ok().filter(|url| {
        matches!(url.scheme(), "https" | "http")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
    });
    url.ok_or_else(|| {
        format!("`{resource}` is not the URL of a resource\nwrite one such as `https://mcp.example.com/mcp`")
    })
}

/// How tokens are verified.
enum TokenKind {
    Jwt { keys: Arc<KeySource>, algorithms: Vec<SigningAlgorithm>, types: &'static [&'static str] },
    Opaque { introspector: Introspector, cached: Duration },
    Custom(Arc<dyn Method>),
}

/// Verifies the tokens of one authorization server.
pub(super) struct OauthMethod {
    tokens: TokenKind,
    expected: ExpectedClaims,
    cache: TokenCache,
    required_scopes: Vec<String>,
    proofs: ProofChecker,
    dpop: Dpop,
    accept: Option<AcceptFn>,
    implies: Option<ImpliesFn>,
}

impl OauthMethod {
    /// The principal of a JWT that one of these keys has signed.
    fn verify_jwt(&self, jwt: &CompactJwt<'_>, keys: &[Arc<VerifyingKey>]) -> Result<Principal, Denied> {
        let mut claims = Err((Refusal::TokenUnknownKey, "the key of the token is not known"));
        for key in keys {
            claims = jwt.verify(key);
            if !matches!(claims, Err((Refusal::TokenSignature, _))) {
                break;
            }
        }
        let claims = claims.map_err(|(reason, text)| Denied::token(reason, text))?;
        let claims = serde_json::from_slice(&claims).map_err(|_| {
            Denied::token(Refusal::TokenMalformed, "the claims of the token are not readable")
        })?;
        self.check_claims(TokenClaims(claims), ClaimSource::Token)
    }

    fn check_claims(&self, claims: TokenClaims, source: ClaimSource) -> Result<Principal, Denied> {
        if claims.binding() == Binding::Other {
            let text = "the token is bound to something that this server cannot check";
            return Err(Denied::token(Refusal::TokenBinding, text).of_genuine_token());
        }
        claims.into_principal(&self.expected, SystemTime::now(), source).map_err(Denied::of_genuine_token)
    }

    /// Keeps the verdict on a token.
    fn keep(
        &self,
        token: TokenDigest,
        principal: Principal,
        generation: u64,
        at_most: Duration,
    ) -> Arc<Principal> {
        let principal = Arc::new(principal);
        self.cache.put(token, &principal, generation, SystemTime::now(), at_most);
        principal
    }

    /// Runs the checks that each request needs after its token is known to be valid.
    fn admit<'a>(
        &'a self,
        principal: Arc<Principal>,
        token: PresentedToken<'a>,
        request: &Parts,
    ) -> Verdict<'a> {
        if let Err(denied) = self.check_principal(&principal) {
            return Verdict::Ready(Err(denied));
        }
        match self.check_binding(&principal, token, request) {
            Err(denied) => Verdict::Ready(Err(denied)),
            Ok(None) => Verdict::Ready(Ok(principal)),
            Ok(Some(proof)) => Verdict::Pending(Box::pin(async move {
                self.proofs.use_up(proof, SystemTime::now()).await?;
                Ok(principal)
            })),
        }
    }

    fn check_principal(&self, principal: &Arc<Principal>) -> Result<(), Denied> {
        let includes = |granted: &String, required: &String| {
            granted == required || self.implies.as_ref().is_some_and(|implies| implies(granted, required))
        };
        let lacks =
            |required: &&String| !principal.scopes().iter().any(|granted| includes(granted, required));
        let missing: Vec<&str> = self.required_scopes.iter().filter(lacks).map(String::as_str).collect();
        if !missing.is_empty() {
            let denied = Denied::insufficient_scope(&self.required_scopes);
            return Err(denied.of_caller(principal, &missing));
        }
        match &self.accept {
            Some(accept) if !accept(principal) => {
                Err(Denied::forbidden("this caller is not admitted").of_caller(principal, &[]))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a token which is bound to a key comes with a proof, and only such a token with that scheme.
    fn check_binding(
        &self,
        principal: &Principal,
        token: PresentedToken<'_>,
        request: &Parts,
    ) -> Result<Option<super::dpop::CheckedProof>, Denied> {
        // the same token may be sent with the other scheme
        let genuine =
            |text: &'static str| Err(Denied::token(Refusal::TokenBinding, text).of_genuine_token().for_now());
        match (principal.confirmation_key(), token.scheme, self.dpop) {
            // a verifier of the user's checks what it binds
            (Some(_), Scheme::Bearer, Dpop::Refused) if matches!(self.tokens, TokenKind::Custom(_)) => {
                Ok(None)
            }
            (Some(_), Scheme::Dpop, Dpop::Accepted | Dpop::Required) => {
                self.proofs.check(token.text, principal, request, SystemTime::now()).map(Some)
            }
            (Some(_), Scheme::Bearer, Dpop::Accepted | Dpop::Required) => {
                genuine("the token is bound to a key\nsend it with the scheme DPoP and a proof")
            }
            (Some(_), _, Dpop::Refused) => {
                genuine("the token is bound to a key, which this server does not check")
            }
            (None, Scheme::Bearer, Dpop::Refused | Dpop::Accepted) => Ok(None),
            (None, Scheme::Dpop, _) => genuine("the token is not bound to a key"),
            (None, Scheme::Bearer, Dpop::Required) => {
                genuine("the token is not bound to a key, which this server requires")
            }
        }
    }

    /// The verdict once the principal is known.
    async fn finish(
        &self,
        principal: Arc<Principal>,
        token: PresentedToken<'_>,
        request: &Parts,
    ) -> Result<Arc<Principal>, Denied> {
        self.admit(principal, token, request).get().await
    }
}

impl Method for OauthMethod {
    fn kept<'a>(&'a self, token: PresentedToken<'a>, request: &'a Parts) -> Option<Verdict<'a>> {
        let generation = match &self.tokens {
            TokenKind::Custom(_) => return None,
            TokenKind::Opaque { .. } => 0,
            TokenKind::Jwt { keys, .. } => keys.generation()?,
        };
        let digest = self.cache.digest(token.text);
        let principal = self.cache.get(&digest, generation, SystemTime::now())?;
        Some(self.admit(principal, token, request))
    }

    fn is_meant(&self, token: PresentedToken<'_>) -> bool {
        matches!(self.tokens, TokenKind::Jwt { .. })
            && CompactJwt::names_issuer(token.text, &self.expected.issuer)
    }

    fn keeps_refusals(&self) -> Duration {
        match &self.tokens {
            TokenKind::Opaque { cached, .. } => *cached,
            TokenKind::Jwt { .. } | TokenKind::Custom(_) => Duration::MAX,
        }
    }

    fn verify<'a>(&'a self, token: PresentedToken<'a>, request: &'a Parts) -> Verdict<'a> {
        let denied = |(reason, text): TokenFault| Verdict::Ready(Err(Denied::token(reason, text)));
        match &self.tokens {
            TokenKind::Custom(method) => {
                match method.verify(token, request) {
                    Verdict::Ready(Ok(principal)) => self.admit(principal, token, request),
                    Verdict::Ready(Err(denied)) => Verdict::Ready(Err(denied)),
                    Verdict::Pending(verdict) => Verdict::Pending(Box::pin(async move {
                        self.finish(verdict.await?, token, request).await
                    })),
                }
            }
            TokenKind::Opaque { introspector, cached } => {
                let digest = self.cache.digest(token.text);
                Verdict::Pending(Box::pin(async move {
                    let claims = introspector.ask(token.text).await?;
                    let principal = self.check_claims(claims, ClaimSource::Answer)?;
                    let principal = self.keep(digest, principal, 0, *cached);
                    self.finish(principal, token, request).await
                }))
            }
            TokenKind::Jwt { keys, algorithms, types } => {
                let (digest, generation) = (self.cache.digest(token.text), keys.generation());
                let jwt = match CompactJwt::parse(token.text, algorithms) {
                    Ok(jwt) if jwt.is_of_type(types) => jwt,
                    Ok(_) => return denied((Refusal::TokenType, "the token is not an access token")),
                    Err(fault) => return denied(fault),
                };
                let now = Instant::now();
                if let Some(generation) = generation
                    && let Ok(known) = keys.known(jwt.header.kid.as_deref(), jwt.algorithm, now)
                {
                    match self.verify_jwt(&jwt, &known) {
                        Ok(principal) => {
                            let principal = self.keep(digest, principal, generation, MAX_CACHED);
                            return self.admit(principal, token, request);
                        }
                        // another key may have got the name
                        Err(denied) if denied.cause == Refusal::TokenSignature && keys.may_fetch(now) => {}
                        Err(denied) => return Verdict::Ready(Err(denied)),
                    }
                }
                Verdict::Pending(Box::pin(async move {
                    let found = keys.find_again(jwt.header.kid.as_deref(), jwt.algorithm).await?;
                    let principal = self.verify_jwt(&jwt, &found)?;
                    let principal = match keys.generation() {
                        Some(generation) => self.keep(digest, principal, generation, MAX_CACHED),
                        None => Arc::new(principal),
                    };
                    self.finish(principal, token, request).await
                }))
            }
        }
    }

    fn reload(&self) -> Result<Vec<Principal>, String> {
        self.cache.clear();
        match &self.tokens {
            TokenKind::Custom(method) => method.reload(),
            TokenKind::Jwt { .. } | TokenKind::Opaque { .. } => Ok(Vec::new()),
        }
    }

    fn has(&self, principal: &Principal) -> Option<bool> {
        match &self.tokens {
            TokenKind::Custom(method) => method.has(principal),
            TokenKind::Jwt { .. } | TokenKind::Opaque { .. } => None,
        }
    }

    fn forget(&self, _principal: &Principal) {
        self.cache.clear();
    }
}
