//! `TokenExchange`: what is asked for, and for whom.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::SystemTime};

use mcp_runtime::{Context, ToolError, config::Secret};
use sha2::{Digest as _, Sha256};
use url::form_urlencoded::Serializer;

use crate::{
    authorization_server::{AuthorizationServer, Form},
    tokens::{Tokens, outcome},
};

/// The error of a call, for the log.
const NO_CALLERS: &str =
    "it is not known whose tokens are exchanged\nwrite `.callers_of(issuer)` or `.subject(..)`";

type SubjectFn = Arc<dyn Fn(Context) -> SubjectFuture + Send + Sync>;
type SubjectFuture = Pin<Box<dyn Future<Output = Result<Secret<String>, ToolError>> + Send>>;

/// Gets tokens for an API behind the server, each for the caller of a request, from the authorization server of that
/// API: by OAuth 2.0 Token Exchange ([RFC 8693](https://www.rfc-editor.org/rfc/rfc8693)), or by
/// [`on_behalf_of`](Self::on_behalf_of) Entra's form.
///
/// It is given to `.state(..)`, and functions take it as `&TokenExchange`. Clones share their tokens, also when other
/// scopes or another audience are set on them.
///
/// ```
/// use mcp_runtime::prelude::*;
/// use mcp_runtime_exchange::TokenExchange;
///
/// /// Lists the caller's mail.
/// #[mcp_tool(read_only)]
/// async fn mail(ctx: &Context, exchange: &TokenExchange) -> Result<String, ToolError> {
///     let token = exchange.for_caller(ctx).await?;
///     Ok(format!("a header has {} bytes", "Bearer ".len() + token.expose().len()))
/// }
///
/// let graph = TokenExchange::at("https://login.example.com/token", "client-id", "secret")
///     .callers_of("https://login.example.com")
///     .audience("https://graph.example.com");
/// let server = mcp_runtime::server!().tool::<mail>().state(graph);
/// ```
#[derive(Clone)]
pub struct TokenExchange {
    server: Arc<AuthorizationServer>,
    tokens: Arc<Tokens>,
    /// The issuer whose callers' tokens may be sent.
    callers_of: Option<String>,
    subject: Option<SubjectFn>,
    /// Each `audience`, each `resource`, and the `scope`.
    targets: Form,
    on_behalf_of: bool,
    secret_by_post: bool,
}

impl TokenExchange {
    /// Asks this token endpoint, a URL of `https:` or of this machine, as the OAuth client with this id and secret.
    /// [`callers_of`](Self::callers_of) or [`subject`](Self::subject) says whose tokens are exchanged there.
    ///
    /// A URL that secrets cannot be sent to is an error of each call, which the log has.
    pub fn at(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<Secret<String>>,
    ) -> Self {
        Self::new(token_endpoint.into(), false, client_id.into(), secret.into())
    }

    /// Asks the token endpoint that the metadata of this issuer names
    /// ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414), or OpenID Connect Discovery), for callers of the same issuer.
    /// The metadata is read at the first call, must be of exactly this issuer, and is not read again.
    pub fn issuer(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<Secret<String>>,
    ) -> Self {
        let issuer = issuer.into();
        Self::new(issuer.clone(), true, client_id.into(), secret.into()).callers_of(issuer)
    }

    fn new(url: String, is_issuer: bool, client_id: String, secret: Secret<String>) -> Self {
        Self {
            server: Arc::new(AuthorizationServer::new(url, is_issuer, client_id, secret)),
            tokens: Arc::default(),
            callers_of: None,
            subject: None,
            targets: Vec::new(),
            on_behalf_of: false,
            secret_by_post: false,
        }
    }

    /// Exchanges the tokens of callers for whom this issuer vouches ([`Principal::issuer`](mcp_runtime::Principal::issuer)),
    /// and of no others: not those of API keys, of other issuers or of other verifiers.
    #[must_use]
    pub fn callers_of(mut self, issuer: impl Into<String>) -> Self {
        self.callers_of = Some(issuer.into());
        self
    }

    /// Exchanges what this function returns, instead of the token of the request: a token that the program keeps for the
    /// caller. It is called for each call of a tool and decides for which callers there is one.
    #[must_use]
    pub fn subject<F>(mut self, subject: impl Fn(Context) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Secret<String>, ToolError>> + Send + 'static,
    {
        self.subject = Some(Arc::new(move |context| Box::pin(subject(context))));
        self
    }

    /// Adds the name by which the authorization server knows the API: `audience`
    /// ([RFC 8693, section 2.1](https://www.rfc-editor.org/rfc/rfc8693#section-2.1)). With
    /// [`on_behalf_of`](Self::on_behalf_of) and without scopes, the scope `AUDIENCE/.default` is asked for.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.targets.push(("audience", audience.into()));
        self
    }

    /// Adds the URL of the API: `resource` ([RFC 8707](https://www.rfc-editor.org/rfc/rfc8707)).
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.targets.push(("resource", resource.into()));
        self
    }

    /// Sets the scopes that the token should have: `scope`.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        self.targets.retain(|(name, _)| *name != "scope");
        self.targets.push(("scope", scopes.join(" ")));
        self
    }

    /// Asks in the form of Entra: `grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer` with
    /// `requested_token_use=on_behalf_of`. Neither `audience` nor `resource` is sent.
    #[must_use]
    pub fn on_behalf_of(mut self) -> Self {
        self.on_behalf_of = true;
        self
    }

    /// Sends id and secret as fields of the form (`client_secret_post`) instead of in a header (`client_secret_basic`).
    /// With [`issuer`](Self::issuer) the metadata decides, unless this is set.
    #[must_use]
    pub fn secret_by_post(mut self) -> Self {
        self.secret_by_post = true;
        self
    }

    /// The token for the caller of this request, which goes into `Authorization: Bearer ..` of requests to the API.
    ///
    /// It is kept until a minute before the caller's token or its own ends, whichever is first. Concurrent calls of a
    /// caller wait for one request, which takes 5 s at most.
    ///
    /// # Errors
    /// A message for the model, if the caller has no token that may be exchanged, must log in again, or the authorization
    /// server is not available; otherwise a private error with the code that the authorization server answered. None of
    /// them has a token in it.
    pub async fn for_caller(&self, ctx: &Context) -> Result<Secret<String>, ToolError> {
        let subject = match &self.subject {
            Some(subject) => subject(ctx.clone()).await?,
            None => self.token_of_request(ctx)?,
        };
        let expires = ctx.caller().and_then(|caller| caller.expires());
        let valid = expires.map(|expires| expires.duration_since(SystemTime::now()).unwrap_or_default());
        let form = self.form(subject.expose());
        // everything that the token depends on is in the form
        let key = Sha256::digest(Serializer::new(String::new()).extend_pairs(&form).finish()).into();
        let request = async { outcome(self.server.ask(form, self.secret_by_post).await, valid) };
        Ok(self.tokens.get(key, request).await?)
    }

    /// The token with which the request came.
    fn token_of_request(&self, ctx: &Context) -> Result<Secret<String>, ToolError> {
        let refused =
            || ToolError::new("the caller has no token that can be exchanged for one of another API");
        let issuer = self.callers_of.as_ref().ok_or_else(|| ToolError::private(NO_CALLERS))?;
        let caller = ctx.caller().filter(|caller| caller.issuer() == issuer).ok_or_else(refused)?;
        // such a token is of use only with a proof of its own client
        if caller.confirmation_key().is_some() {
            return Err(ToolError::new("the caller's token is bound to its client and cannot be exchanged"));
        }
        let header = ctx.header("authorization").and_then(|value| value.split_once(' '));
        let bearer =
            header.filter(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty());
        bearer.map(|(_, token)| token.trim().into()).ok_or_else(refused)
    }

    /// The form of the request, without what authenticates the program.
    fn form(&self, subject: &str) -> Form {
        let fields = |fields: [(&'static str, &str); 3]| fields.map(|(name, value)| (name, value.to_owned()));
        if self.on_behalf_of {
            let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
            let find = |of| self.targets.iter().find(|(name, _)| *name == of).map(|(_, it)| it.clone());
            let scope = find("scope").or_else(|| Some(format!("{}/.default", find("audience")?)));
            let token_use = ("requested_token_use", "on_behalf_of");
            let form = fields([("grant_type", grant), token_use, ("assertion", subject)]);
            return form.into_iter().chain(scope.map(|scope| ("scope", scope))).collect();
        }
        let grant = "urn:ietf:params:oauth:grant-type:token-exchange";
        let subject_type = ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token");
        let form = fields([("grant_type", grant), ("subject_token", subject), subject_type]);
        form.into_iter().chain(self.targets.iter().cloned()).collect()
    }
}

/// Without what is secret.
impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchange").field("targets", &self.targets).finish_non_exhaustive()
    }
}
