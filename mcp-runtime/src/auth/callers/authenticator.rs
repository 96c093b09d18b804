//! Authenticates the callers of one server: finds the token in a request's head, asks each method about it, and says what
//! a client has to do that is refused.
//!
//! See [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750) and [RFC 9728](https://www.rfc-editor.org/rfc/rfc9728).

use std::{
    borrow::Cow,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use http::{HeaderMap, header, request::Parts};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    api_keys::ApiKeys,
    compact_jwt::SigningAlgorithm,
    guesses::{Attempt, Entrance, Guesses},
    oauth::{Dpop, Oauth, parse_resource},
    verifier::{
        CustomVerifier, Denied, DeniedReason, Method, PresentedToken, Verdict, VerdictFuture, Verifier,
    },
};
use crate::core::{
    admission::{Owner, Rate},
    connection::{ImpliesFn, Principal},
    crypto::KeyRing,
    log_limit::{LogLimit, LogLine},
    maybe_ready::MaybeReady,
    observer::Observers,
    reason::Refusal,
    store::SingleUse,
};

/// The longest token that is examined.
const MAX_TOKEN: usize = 16 << 10;

/// A way to authenticate callers, as [`ServerBuilder::auth`](crate::ServerBuilder::auth) takes it: [`Oauth`],
/// [`ApiKeys`], or any [`Verifier`].
pub struct Authentication {
    kind: AuthenticationKind,
    /// The addition that has brought it.
    pub(super) addition: Option<String>,
}

enum AuthenticationKind {
    Oauth(Box<Oauth>),
    ApiKeys(ApiKeys),
    Custom(Arc<dyn Method>),
}

/// Types that [`ServerBuilder::auth`](crate::ServerBuilder::auth) takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not authenticate callers",
    label = "not `Oauth`, `ApiKeys` or a `Verifier`",
    note = "give `Oauth` or `ApiKeys`, or implement `mcp_runtime::auth::Verifier` for a type of yours and give a value of it"
)]
pub trait IntoAuthentication {
    #[doc(hidden)]
    fn into_authentication(self) -> Authentication;
}

#[diagnostic::do_not_recommend]
impl IntoAuthentication for Oauth {
    fn into_authentication(self) -> Authentication {
        Authentication { kind: AuthenticationKind::Oauth(Box::new(self)), addition: None }
    }
}

#[diagnostic::do_not_recommend]
impl IntoAuthentication for ApiKeys {
    fn into_authentication(self) -> Authentication {
        Authentication { kind: AuthenticationKind::ApiKeys(self), addition: None }
    }
}

#[diagnostic::do_not_recommend]
impl<V: Verifier> IntoAuthentication for V {
    fn into_authentication(self) -> Authentication {
        Authentication { kind: AuthenticationKind::Custom(Arc::new(CustomVerifier(self))), addition: None }
    }
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            AuthenticationKind::Oauth(oauth) => oauth.fmt(f),
            AuthenticationKind::ApiKeys(keys) => keys.fmt(f),
            AuthenticationKind::Custom(_) => f.write_str("Verifier"),
        }
    }
}

/// How many invalid tokens an address may send, and how many addresses are remembered.
#[derive(Clone, Copy)]
pub(crate) struct FailureRate {
    pub(crate) rate: Rate,
    pub(crate) addresses: usize,
    /// How long it may take to find out whose a token is.
    pub(crate) timeout: Duration,
}

/// How a token is presented: the scheme of the header `Authorization`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Bearer,
    Dpop,
}

/// Authenticates the callers of one server.
pub(crate) struct Authenticator {
    /// Each is asked until one knows the caller.
    methods: Vec<Arc<dyn Method>>,
    metadata: Option<ResourceDocument>,
    /// The scopes that callers can acquire.
    scopes: Vec<String>,
    /// These and those that clients are not told of, if callers can have no others: if all tokens come from authorization
    /// servers whose scopes are known.
    all_scopes: Option<Vec<String>>,
    /// The scopes that every caller needs.
    required_scopes: Vec<String>,
    dpop: Dpop,
    guesses: Guesses,
    log_limit: LogLimit,
    /// How long it may take to find out whose a token is.
    timeout: Duration,
    /// The prefix that scopes have at the authorization server, but not in its tokens.
    scope_prefix: String,
}

/// The metadata of the protected resource, and where it is served.
pub(crate) struct ResourceDocument {
    /// The resource for which clients request tokens.
    resource: String,
    /// Its URL, for challenges.
    url: String,
    pub(crate) paths: Vec<String>,
    pub(crate) json: Vec<u8>,
}

/// The response to a request that is refused.
pub(crate) struct RefusedCaller {
    pub(crate) message: Cow<'static, str>,
    /// The reason, for operators, and with it the status.
    pub(crate) refusal: Refusal,
    /// The scopes that it lacks, separated by spaces.
    pub(crate) scopes: Box<str>,
    /// The caller, if it is known.
    pub(crate) caller: Option<Arc<Principal>>,
    /// The values of `WWW-Authenticate`.
    pub(crate) challenges: Vec<String>,
    /// The value of `DPoP-Nonce`, which its next proof of possession must contain.
    pub(crate) nonce: Option<Box<str>>,
    /// The time after which it may try again.
    pub(crate) retry_after: Option<Duration>,
}

impl RefusedCaller {
    fn new(message: impl Into<Cow<'static, str>>, refusal: Refusal) -> Self {
        Self {
            message: message.into(),
            refusal,
            scopes: Box::default(),
            caller: None,
            challenges: Vec::new(),
            nonce: None,
            retry_after: None,
        }
    }
}

type VerifiedCaller = Result<Arc<Principal>, RefusedCaller>;

/// The sender of a request, as far as it is known without waiting.
pub(crate) type Verification<'a> =
    MaybeReady<VerifiedCaller, Pin<Box<dyn Future<Output = VerifiedCaller> + Send + 'a>>>;

impl Authenticator {
    /// # Errors
    /// Everything that is wrong with the methods.
    pub(crate) fn new(
        authentications: &[Authentication],
        single_use: &Arc<SingleUse>,
        keys: &KeyRing,
        failed: FailureRate,
        implies: Option<&ImpliesFn>,
        observers: &Observers,
    ) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut servers: Vec<&Oauth> = Vec::new();
        let mut methods: Vec<Arc<dyn Method>> = Vec::new();
        for authentication in authentications {
            match &authentication.kind {
                AuthenticationKind::Custom(method) => methods.push(method.clone()),
                AuthenticationKind::ApiKeys(keys) => {
                    problems.extend(keys.problem().map(str::to_owned));
                    methods.push(Arc::new(keys.clone()));
                }
                AuthenticationKind::Oauth(oauth) => {
                    let method = Oauth::clone(oauth).implied_scopes(implies.cloned());
                    match method.into_method(single_use, keys, observers) {
                        Ok(method) => {
                            methods.push(Arc::new(method));
                            servers.push(oauth);
                        }
                        Err(found) => problems.extend(found),
                    }
                }
            }
        }
        if let [first, others @ ..] = &*servers
            && others.iter().any(|other| other.resource != first.resource)
        {
            problems.push(
                "two `Oauth` protect different resources\na server is one resource: give both the same"
                    .into(),
            );
        }
        let kept = methods.iter().map(|method| method.keeps_refusals()).min().unwrap_or_default();
        let guesses = Guesses::new(failed.rate, failed.addresses, kept);
        let guesses = match guesses {
            Ok(guesses) if problems.is_empty() => guesses,
            Ok(_) => return Err(problems),
            Err(problem) => {
                problems.push(problem);
                return Err(problems);
            }
        };
        let union = |scopes: fn(&Oauth) -> &Vec<String>| {
            let mut all: Vec<String> = servers.iter().flat_map(|server| scopes(server).clone()).collect();
            let mut seen = std::collections::HashSet::new();
            all.retain(|scope| seen.insert(scope.clone()));
            all
        };
        let scopes = union(|server| &server.scopes);
        let are_all_known =
            methods.len() == servers.len() && servers.iter().all(|server| server.names_all_scopes());
        let all_scopes =
            are_all_known.then(|| [scopes.clone(), union(|server| &server.unlisted_scopes)].concat());
        let dpop = servers.first().map_or(Dpop::Refused, |server| server.dpop);
        let scope_prefix = servers.first().map_or_else(String::new, |server| server.scope_prefix.clone());
        Ok(Self {
            methods,
            metadata: ResourceDocument::of(&servers, &published(&scope_prefix, &scopes), dpop),
            required_scopes: union(|server| &server.required_scopes),
            scopes,
            all_scopes,
            dpop,
            guesses,
            log_limit: LogLimit::new(),
            timeout: failed.timeout,
            scope_prefix,
        })
    }

    /// The scopes that callers can have, if they can have no others.
    pub(crate) fn all_scopes(&self) -> Option<&[String]> {
        self.all_scopes.as_deref()
    }

    /// The scopes that every caller needs.
    pub(crate) fn required_scopes(&self) -> &[String] {
        &self.required_scopes
    }

    /// The scopes that callers can acquire.
    pub(crate) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Whether each token must be bound to a key, which signs every request.
    pub(crate) fn requires_proofs(&self) -> bool {
        self.dpop == Dpop::Required
    }

    /// The metadata of the protected resource, if tokens come from an authorization server.
    pub(crate) fn metadata(&self) -> Option<&ResourceDocument> {
        self.metadata.as_ref()
    }

    /// Begins to find out who sent a request, from its head; `address` is that of its client, where that is known.
    pub(crate) fn start<'a>(&'a self, request: &'a Parts, address: Option<&Owner>) -> Verification<'a> {
        let token = match find_token(request) {
            Ok(token) => token,
            Err(missing) => return Verification::Ready(Err(self.refuse_without_token(missing))),
        };
        let kept = self.methods.iter().find_map(|method| contained_option(|| method.kept(token, request)));
        match kept {
            Some(Verdict::Ready(verdict)) => return Verification::Ready(self.conclude(verdict)),
            Some(Verdict::Pending(verdict)) => {
                return Verification::Pending(Box::pin(
                    async move { self.conclude(self.poll(verdict).await) },
                ));
            }
            None => {}
        }
        let attempt = match address.map(|address| self.guesses.enter(address, token.text)) {
            None => None,
            Some(Entrance::Verify(attempt)) => Some(attempt),
            Some(Entrance::Refused(denied)) => return Verification::Ready(Err(self.refuse(denied))),
            Some(Entrance::Limited(wait)) => return Verification::Ready(Err(refuse_guess(wait))),
            Some(Entrance::Wait(attempt, turns)) => {
                return Verification::Pending(Box::pin(async move {
                    let attempt = self.guesses.wait(attempt, turns).await.map_err(refuse_guess)?;
                    let verdict = self.verify(token, request).await;
                    self.end(Some(&attempt), verdict)
                }));
            }
        };
        if let [method] = &*self.methods {
            match contained(|| method.verify(token, request)) {
                Verdict::Ready(verdict) => Verification::Ready(self.end(attempt.as_ref(), verdict)),
                Verdict::Pending(verdict) => Verification::Pending(Box::pin(async move {
                    self.end(attempt.as_ref(), self.poll(verdict).await)
                })),
            }
        } else {
            Verification::Pending(Box::pin(async move {
                self.end(attempt.as_ref(), self.verify(token, request).await)
            }))
        }
    }

    /// Asks each method until one knows the caller.
    async fn verify(&self, token: PresentedToken<'_>, request: &Parts) -> Result<Arc<Principal>, Denied> {
        let (mut refused, mut unavailable): (Option<Denied>, Option<Denied>) = (None, None);
        let mut best = None;
        for method in &self.methods {
            let verdict = match contained(|| method.verify(token, request)) {
                Verdict::Ready(verdict) => verdict,
                Verdict::Pending(verdict) => self.poll(verdict).await,
            };
            match verdict {
                // the token is known to this method only
                Err(denied) if matches!(denied.reason, DeniedReason::InvalidToken) => {
                    let is_lasting =
                        refused.as_ref().is_none_or(|first| first.is_lasting) && denied.is_lasting;
                    // the client gets the refusal of the method that the token was meant for
                    let precision = (method.is_meant(token), denied.precision());
                    if best.is_none_or(|best| precision > best) {
                        best = Some(precision);
                        refused = Some(denied);
                    }
                    if let Some(refused) = &mut refused {
                        refused.is_lasting = is_lasting;
                    }
                }
                // the others may be able to decide
                Err(denied) if denied.is_unavailable() => unavailable = Some(denied),
                decided => return decided,
            }
        }
        // a token that one of them has issued is of no other
        if let Some(unavailable) =
            unavailable.filter(|_| !refused.as_ref().is_some_and(|refused| refused.is_genuine))
        {
            return Err(unavailable);
        }
        Err(refused.unwrap_or_else(|| Denied::token(Refusal::TokenUnknown, "the token is unknown")))
    }

    /// The verdict of a method, which has a limited time for it.
    async fn poll(&self, verdict: VerdictFuture<'_>) -> Result<Arc<Principal>, Denied> {
        let late = |_| Denied::unavailable(format!("a token was not verified within {:?}", self.timeout));
        timeout(self.timeout, poll_contained(verdict)).await.map_err(late)?
    }

    /// Records what has become of a token, and makes the answer of it.
    fn end(&self, attempt: Option<&Attempt>, verdict: Result<Arc<Principal>, Denied>) -> VerifiedCaller {
        if let Some(attempt) = attempt {
            self.guesses.conclude(attempt, verdict.as_deref());
        }
        self.conclude(verdict)
    }

    fn conclude(&self, verdict: Result<Arc<Principal>, Denied>) -> VerifiedCaller {
        match verdict {
            Ok(principal) if principal.has_expired() => {
                Err(self.refuse(Denied::token(Refusal::TokenExpired, "the token has expired")))
            }
            Ok(principal) if principal.subject().is_empty() => {
                Err(self.refuse(Denied::invalid_token("the token has an empty subject")))
            }
            Ok(principal) => Ok(principal),
            Err(denied) => Err(self.refuse(denied)),
        }
    }

    #[cold]
    fn refuse(&self, denied: Denied) -> RefusedCaller {
        let Denied { reason, description, cause, caller, missing, .. } = denied;
        let mut nonce = None;
        let error = |code: &'static str| Some((code, &*description));
        let challenges = match &reason {
            DeniedReason::InvalidToken => self.challenges(error("invalid_token"), &self.first_scopes()),
            DeniedReason::InvalidProof => self.challenges(error("invalid_dpop_proof"), ""),
            DeniedReason::NonceNeeded(new) => {
                nonce = Some(new.as_str().into());
                vec![self.challenge(Scheme::Dpop, error("use_dpop_nonce"), "")]
            }
            DeniedReason::InsufficientScope(scopes) => {
                vec![self.challenge(self.scheme(), error("insufficient_scope"), scopes)]
            }
            DeniedReason::Forbidden => Vec::new(),
            DeniedReason::Unavailable(cause) => {
                if let Some(LogLine { suppressed }) = self.log_limit.line() {
                    tracing::error!(suppressed, %cause, "callers cannot be authenticated");
                }
                Vec::new()
            }
        };
        tracing::debug!(
            status = cause.status().as_u16(),
            reason = cause.reason().as_str(),
            "refused a caller"
        );
        RefusedCaller { scopes: missing, caller, challenges, nonce, ..RefusedCaller::new(description, cause) }
    }

    #[cold]
    fn refuse_without_token(&self, missing: MissingToken) -> RefusedCaller {
        let scopes = self.first_scopes();
        match missing {
            // a request without credentials is told nothing but how to get some
            MissingToken::Absent => RefusedCaller {
                challenges: self.challenges(None, &scopes),
                ..RefusedCaller::new("an access token is required", Refusal::TokenMissing)
            },
            MissingToken::Ambiguous(description) => RefusedCaller {
                challenges: self.challenges(Some(("invalid_request", description)), ""),
                ..RefusedCaller::new(description, Refusal::TokenMisplaced)
            },
            MissingToken::Malformed(description) => {
                self.refuse(Denied::token(Refusal::TokenMalformed, description))
            }
        }
    }

    /// The value of `WWW-Authenticate` for a caller that needs these scopes, separated by spaces.
    pub(crate) fn scope_challenge(&self, scopes: &str) -> String {
        let description = "the token lacks a scope that this needs";
        let mut scopes = scopes.to_owned();
        for required in &self.required_scopes {
            if !scopes.split(' ').any(|scope| scope == required) {
                scopes = format!("{required} {scopes}");
            }
        }
        self.challenge(self.scheme(), Some(("insufficient_scope", description)), &scopes)
    }

    /// The scopes that a client should request first, separated by spaces: the required ones, or else all scopes.
    fn first_scopes(&self) -> String {
        if self.required_scopes.is_empty() { self.scopes.join(" ") } else { self.required_scopes.join(" ") }
    }

    fn scheme(&self) -> Scheme {
        if self.dpop == Dpop::Required { Scheme::Dpop } else { Scheme::Bearer }
    }

    /// A challenge for each scheme that is accepted.
    fn challenges(&self, error: Option<(&str, &str)>, scopes: &str) -> Vec<String> {
        let schemes: &[Scheme] = match self.dpop {
            Dpop::Refused => &[Scheme::Bearer],
            Dpop::Accepted => &[Scheme::Bearer, Scheme::Dpop],
            Dpop::Required => &[Scheme::Dpop],
        };
        schemes.iter().map(|scheme| self.challenge(*scheme, error, scopes)).collect()
    }

    fn challenge(&self, scheme: Scheme, error: Option<(&str, &str)>, scopes: &str) -> String {
        let mut parameters: Vec<(&str, Cow<'_, str>)> = Vec::new();
        match &self.metadata {
            Some(metadata) => parameters.push(("resource_metadata", (&*metadata.url).into())),
            None => parameters.push(("realm", "mcp".into())),
        }
        if let Some((code, description)) = error {
            parameters.push(("error", code.into()));
            parameters.push(("error_description", description.into()));
        }
        let scopes: Vec<String> = scopes.split_whitespace().map(str::to_owned).collect();
        let scopes = published(&self.scope_prefix, &scopes);
        if !scopes.is_empty() {
            parameters.push(("scope", scopes.join(" ").into()));
        }
        let name = match scheme {
            Scheme::Bearer => "Bearer",
            Scheme::Dpop => {
                parameters.push(("algs", algorithm_names().join(" ").into()));
                "DPoP"
            }
        };
        let parameters: Vec<String> =
            parameters.into_iter().map(|(name, value)| format!("{name}=\"{}\"", quotable(&value))).collect();
        format!("{name} {}", parameters.join(", "))
    }

    /// Reads again what the methods have read from files or the environment, and forgets what they have kept; returns who
    /// is not known any more.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn reload(&self) -> Result<Vec<Principal>, String> {
        let mut gone = Vec::new();
        for method in &self.methods {
            gone.extend(method.reload()?);
        }
        self.guesses.clear();
        Ok(gone)
    }

    /// Whether a principal that was authenticated before is in none of the lists of API keys any more, with the same scopes
    /// and claims.
    pub(crate) fn has_removed(&self, principal: &Principal) -> bool {
        let known: Vec<_> = self.methods.iter().map(|method| method.has(principal)).collect();
        let is_listed = known.contains(&Some(true));
        // one of another issuer may be that of a method without a list
        let may_be_of_other = known.contains(&None) && principal.issuer() != super::api_keys::ISSUER;
        !is_listed && !may_be_of_other
    }

    /// Forgets what was kept of a principal's tokens, so that they are verified again.
    pub(crate) fn forget(&self, principal: &Principal) {
        self.methods.iter().for_each(|method| method.forget(principal));
    }
}

/// The refusal for a client whose address has presented too many invalid tokens.
#[cold]
fn refuse_guess(wait: Duration) -> RefusedCaller {
    let text = "too many invalid tokens were sent from this address\ntry again later";
    RefusedCaller { retry_after: Some(wait), ..RefusedCaller::new(text, Refusal::TokenGuesses) }
}

/// The names of scopes as the authorization server has them, for its clients. Whether a client gets a refresh token is
/// between the two: [`offline_access`](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#refresh-tokens)
/// is not a scope of the resource.
fn published(prefix: &str, scopes: &[String]) -> Vec<String> {
    let of_resource = scopes.iter().filter(|scope| *scope != "offline_access");
    of_resource.map(|scope| format!("{prefix}{scope}")).collect()
}

fn algorithm_names() -> Vec<&'static str> {
    SigningAlgorithm::ALL.iter().map(|algorithm| algorithm.as_str()).collect()
}

/// A text without what may not be in a quoted parameter (RFC 6750, section 3).
fn quotable(text: &str) -> String {
    let replace = |c: char| match c {
        '"' | '\\' => '\'',
        c if c == ' ' || c.is_ascii_graphic() => c,
        _ => ' ',
    };
    text.chars().map(replace).collect()
}

/// Why a request has no token that could be verified.
#[derive(Clone, Copy)]
enum MissingToken {
    Absent,
    /// The token is sent twice, or where it must not be.
    Ambiguous(&'static str),
    Malformed(&'static str),
}

/// The token of a request: one header `Authorization`, and nothing else.
fn find_token(request: &Parts) -> Result<PresentedToken<'_>, MissingToken> {
    let names = |pair: &str| pair == "access_token" || pair.starts_with("access_token=");
    if request.uri.query().is_some_and(|query| query.split('&').any(names)) {
        // it would be in logs and histories
        return Err(MissingToken::Ambiguous(
            "the token is in the query\nsend it in the header `Authorization`",
        ));
    }
    let value = single_authorization(&request.headers)?;
    let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
    let (scheme, text) = value.split_at_checked(end).unwrap_or((value, &[]));
    let scheme = match scheme {
        scheme if scheme.eq_ignore_ascii_case(b"bearer") => Scheme::Bearer,
        scheme if scheme.eq_ignore_ascii_case(b"dpop") => Scheme::Dpop,
        // credentials of another kind are none
        _ => return Err(MissingToken::Absent),
    };
    let text = text.trim_ascii();
    if text.len() > MAX_TOKEN {
        return Err(MissingToken::Malformed("the token is too long"));
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let bare = text.get(..text.len() - padding).unwrap_or_default();
    match std::str::from_utf8(text) {
        Ok(text) if !bare.is_empty() && is_token(bare) => Ok(PresentedToken { scheme, text }),
        _ => Err(MissingToken::Malformed("the token is malformed")),
    }
}

/// Whether these are the characters of a token (RFC 6750, section 2.1). Tokens have a thousand of them: without
/// branches, the compiler looks at many at once.
fn is_token(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |allowed, byte| {
        let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        // from `-` to `9` are `-`, `.`, `/` and the digits
        let is_digit = byte.wrapping_sub(b'-') <= b'9' - b'-';
        allowed & (is_letter | is_digit | (*byte == b'+') | (*byte == b'_') | (*byte == b'~'))
    })
}

fn single_authorization(headers: &HeaderMap) -> Result<&[u8], MissingToken> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(MissingToken::Absent)?;
    if values.next().is_some() {
        return Err(MissingToken::Ambiguous("there are several headers `Authorization`"));
    }
    Ok(value.as_bytes())
}

/// The verdict for a method that panicked, which is not served.
fn panicked() -> Denied {
    Denied::unavailable("the verifier panicked")
}

/// Runs a method; one that panics has no verdict.
fn contained<'a>(verify: impl FnOnce() -> Verdict<'a>) -> Verdict<'a> {
    catch_unwind(AssertUnwindSafe(verify)).unwrap_or_else(|_| Verdict::Ready(Err(panicked())))
}

/// The same for what is kept; nothing is, if that panics.
fn contained_option<'a>(find: impl FnOnce() -> Option<Verdict<'a>>) -> Option<Verdict<'a>> {
    catch_unwind(AssertUnwindSafe(find)).unwrap_or_else(|_| Some(Verdict::Ready(Err(panicked()))))
}

async fn poll_contained(mut verdict: VerdictFuture<'_>) -> Result<Arc<Principal>, Denied> {
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| verdict.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}

impl ResourceDocument {
    /// The resource for which clients request tokens: the URL of the endpoint.
    pub(crate) fn resource(&self) -> &str {
        &self.resource
    }

    fn of(servers: &[&Oauth], scopes: &[String], dpop: Dpop) -> Option<Self> {
        const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
        let resource = servers.first()?.resource.as_deref()?;
        let url = parse_resource(resource).ok()?;
        let issuers: Vec<&str> = servers.iter().map(|server| server.issuer.as_str()).collect();
        let mut document = Map::new();
        document.insert("resource".into(), resource.into());
        document.insert("authorization_servers".into(), json!(issuers));
        if !scopes.is_empty() {
            document.insert("scopes_supported".into(), json!(scopes));
        }
        document.insert("bearer_methods_supported".into(), json!(["header"]));
        if dpop != Dpop::Refused {
            document.insert("dpop_signing_alg_values_supported".into(), json!(algorithm_names()));
            document.insert("dpop_bound_access_tokens_required".into(), json!(dpop == Dpop::Required));
        }
        // only the slash after the host is removed (RFC 9728, section 3.1)
        let path = if url.path() == "/" { "" } else { url.path() };
        // some clients remove every slash at the end, and those that do not find it beside the path look at the root
        let mut paths: Vec<_> =
            [path, path.trim_end_matches('/'), ""].map(|path| format!("{WELL_KNOWN}{path}")).into();
        paths.dedup();
        let url = format!("{}{WELL_KNOWN}{path}", url.origin().ascii_serialization());
        Some(Self {
            resource: resource.to_owned(),
            url,
            paths,
            json: Value::Object(document).to_string().into_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::store::SealedStore;

    fn authenticator(authentications: &[Authentication]) -> Result<Authenticator, Vec<String>> {
        let used = SingleUse::new(&SealedStore::in_memory(), "proofs", 10, std::time::SystemTime::now());
        let used = Arc::new(used);
        let failed = FailureRate {
            rate: Rate::new(60, Duration::from_secs(60)),
            addresses: 1000,
            timeout: Duration::from_secs(10),
        };
        let (keys, observers): (_, Observers) = (KeyRing::random().unwrap(), Arc::new([]));
        Authenticator::new(authentications, &used, &keys, failed, None, &observers)
    }

    fn oauth() -> Oauth {
        Oauth::issuer("https://id.example.com")
            .resource("https://mcp.example.com/a/mcp")
            .scopes(["x", "y", "x"])
    }

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_metadata_is_at_the_path_of_the_resource_and_at_the_root() {
        let auth = authenticator(&[oauth().into_authentication()]).unwrap();
        let metadata = auth.metadata().unwrap();
        assert_eq!(
            metadata.paths,
            ["/.well-known/oauth-protected-resource/a/mcp", "/.well-known/oauth-protected-resource"]
        );
        let document: Value = serde_json::from_slice(&metadata.json).unwrap();
        assert_eq!(document["resource"], "https://mcp.example.com/a/mcp");
        assert_eq!(document["authorization_servers"], json!(["https://id.example.com"]));
        assert_eq!(document["scopes_supported"], json!(["x", "y"]));
        let root =
            authenticator(&[oauth().resource("https://mcp.example.com").into_authentication()]).unwrap();
        assert_eq!(root.metadata().unwrap().paths, ["/.well-known/oauth-protected-resource"]);
        let slash =
            authenticator(&[oauth().resource("https://mcp.example.com/mcp/").into_authentication()]).unwrap();
        let well_known =
            ["/mcp/", "/mcp", ""].map(|path| format!("/.well-known/oauth-protected-resource{path}"));
        assert_eq!(slash.metadata().unwrap().paths, well_known);
        assert_eq!(slash.metadata().unwrap().url, format!("https://mcp.example.com{}", well_known[0]));
        assert_eq!(
            root.scope_challenge("x y"),
            "Bearer resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource\", \
             error=\"insufficient_scope\", error_description=\"the token lacks a scope that this needs\", scope=\"x y\""
        );
    }

    #[test]
    fn options_that_cannot_be_served_are_reported_together() {
        let wrong = Oauth::issuer("http://id.example.com").algorithms([]);
        let problems = authenticator(&[
            wrong.into_authentication(),
            ApiKeys::new([("short", Principal::new("i", "s"))]).into_authentication(),
        ]);
        let problems = problems.err().unwrap().join("\n");
        for text in ["not an `https:` URL", "allows none", "which resource", "shorter than 16"] {
            assert!(problems.contains(text), "{text}: {problems}");
        }
        let others = [
            oauth().into_authentication(),
            oauth().resource("https://other.example.com/mcp").into_authentication(),
        ];
        assert!(authenticator(&others).err().unwrap()[0].contains("different resources"));
        for resource in
            ["mcp.example.com", "https://mcp.example.com/#a", "https://mcp.example.com/?a", "ftp://x/"]
        {
            assert!(
                authenticator(&[oauth().resource(resource).into_authentication()]).is_err(),
                "{resource}"
            );
        }
    }

    #[test]
    fn a_token_is_in_one_header_and_nowhere_else() {
        let status = |uri: &str, headers: &[(&str, &str)]| {
            let keys = ApiKeys::new([("0123456789abcdef", Principal::new("i", "ada"))]);
            let auth = authenticator(&[keys.into_authentication()]).unwrap();
            let request = parts(uri, headers);
            let Verification::Ready(verified) = auth.start(&request, None) else {
                panic!("keys are known at once")
            };
            verified.map_or_else(|refused| refused.refusal.status().as_u16(), |_| 200)
        };
        let good = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(status("/", &[good]), 200);
        assert_eq!(status("/?a=access_token&sessionId=1", &[good]), 200);
        assert_eq!(status("/", &[("authorization", "bEARER  0123456789abcdef ")]), 200);
        for (status_code, uri, headers) in [
            (401, "/", &[][..]),
            (401, "/", &[("authorization", "Basic YTpi")]),
            (401, "/", &[("authorization", "Bearer")]),
            (401, "/", &[("authorization", "Bearer 0123456789abcdex")]),
            (401, "/", &[("authorization", "Bearer 0123 456789abcdef")]),
            (401, "/", &[("authorization", "Bearer ===")]),
            (400, "/", &[good, good]),
            (400, "/?access_token=0123456789abcdef", &[]),
            (400, "/?access_token=0123456789abcdef", &[good]),
        ] {
            assert_eq!(status(uri, headers), status_code, "{uri} {headers:?}");
        }
        let long = format!("Bearer {}", "a".repeat(MAX_TOKEN + 1));
        assert_eq!(status("/", &[("authorization", &long)]), 401);
    }

    struct Panics;

    impl Verifier for Panics {
        async fn verify(&self, _: &str, _: &Parts) -> Result<Principal, Denied> {
            panic!("a verifier that panics")
        }
    }

    #[tokio::test]
    async fn a_verifier_that_panics_admits_no_one() {
        let auth = authenticator(&[Panics.into_authentication()]).unwrap();
        let request = parts("/", &[("authorization", "Bearer a")]);
        let Verification::Pending(verified) = auth.start(&request, None) else { panic!("it is a future") };
        assert_eq!(verified.await.unwrap_err().refusal, Refusal::AuthUnavailable);
    }

    #[tokio::test]
    async fn several_methods_are_asked_in_turn() {
        let key = |key, name| ApiKeys::new([(key, Principal::new("i", name))]);
        let auth = authenticator(&[
            key("0123456789abcdef", "ada").into_authentication(),
            Panics.into_authentication(),
            key("fedcba9876543210", "bob").into_authentication(),
        ])
        .unwrap();
        for (token, subject) in
            [("0123456789abcdef", Ok("ada")), ("fedcba9876543210", Ok("bob")), ("x", Err(503))]
        {
            let request = parts("/", &[("authorization", &format!("Bearer {token}"))]);
            let Verification::Pending(verified) = auth.start(&request, None) else {
                panic!("it is a future")
            };
            let verified = verified.await;
            let found =
                verified.as_ref().map(|p| p.subject()).map_err(|refused| refused.refusal.status().as_u16());
            assert_eq!(found, subject);
        }
    }

    #[test]
    fn what_is_quoted_cannot_end_its_quotes() {
        assert_eq!(quotable("a\"b\\c\r\nd\u{e9}"), "a'b'c  d ");
    }

    #[test]
    fn a_token_has_the_characters_that_the_specification_names() {
        for byte in 0..=255_u8 {
            let named = byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
            assert_eq!(is_token(&[b'a', byte, b'a']), named, "{byte}");
        }
    }
}
