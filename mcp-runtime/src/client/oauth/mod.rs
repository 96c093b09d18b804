//! Authorization by OAuth (feature `client-oauth`): how a client gets the access tokens that an HTTP server requires, and
//! how it keeps them fresh. Neither an error nor a `Debug` output contains a token or a secret.
//!
//! See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).
//!
//! The flows are a few form posts with MCP's own rules for discovery, `resource`, `iss` and registration, which general
//! OAuth crates do not know; the cryptography is that of `ring`, which TLS uses already.

mod access_token;
mod authorized_request;
mod authorizer;
#[cfg(feature = "client-browser")]
mod browser;
mod kept_tokens;
#[cfg(feature = "client-keyring")]
mod keyring_tokens;
mod login;
mod loopback_listener;
mod metadata;
mod proof_key;
mod token_endpoint;
mod token_store;

use std::{
    fmt,
    future::Future,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

pub(super) use authorized_request::AuthorizedRequest;
pub(super) use authorizer::Authorizer;
#[cfg(feature = "client-keyring")]
pub use keyring_tokens::KeyringTokens;
use loopback_listener::LoopbackListener;
use token_store::MemoryTokens;
pub use token_store::{FileTokens, TokenStore};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use url::Url;

use super::receive::handlers::{AsyncHandler, async_handler};
use crate::{
    core::{
        blocking, bound::Texts, crypto::random_id, es256::SigningKey, text_file::read_text,
        unix_time::unix_seconds,
    },
    fetch::Reach,
};

/// How long a user has for a login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Seconds since 1970, as tokens have them.
fn now() -> u64 {
    unix_seconds(SystemTime::now())
}

fn random() -> Result<String, super::Error> {
    random_id().map_err(|_| super::Error::invalid("the operating system provides no randomness"))
}

/// How a client authorizes itself.
#[derive(Clone)]
#[must_use = "give it to `ClientBuilder::oauth`"]
pub struct OAuth {
    grant: Grant,
    registered: Option<RegisteredClient>,
    issuer: TrustedIssuer,
    metadata_url: Option<String>,
    name: String,
    redirect_uri: String,
    scopes: Vec<String>,
    /// Whether tokens are bound to a key wherever the authorization server does that.
    binds_tokens: bool,
    login_timeout: Duration,
    /// Whether the URL of a login is opened in a browser.
    opens_browser: bool,
    /// Whether authorization servers may be anywhere.
    any_address: bool,
    store: Arc<dyn TokenStore>,
}

/// How tokens are asked for.
#[derive(Clone)]
enum Grant {
    /// The user decides, in a browser.
    AuthorizationCode(FrontEnd),
    ClientCredentials,
    /// A token of another issuer is exchanged.
    JwtBearer(AsyncHandler<(), Result<String, String>>),
    Enterprise(IdentityProvider),
}

/// The program or browser that visits the authorization server.
#[derive(Clone)]
enum FrontEnd {
    /// The program shows the URL, and returns the one that the user was redirected to.
    User(AsyncHandler<String, Result<String, String>>),
    /// The program shows the URL, and the redirect comes to this machine.
    Loopback(Arc<LoopbackListener>),
    /// The authorization server redirects at once.
    None,
}

/// The identity provider of an enterprise, which decides for its users; for [`OAuth::enterprise`].
#[derive(Clone)]
#[must_use = "give it to `OAuth::enterprise`"]
pub struct IdentityProvider {
    token_endpoint: String,
    client_id: String,
    client_secret: Option<String>,
    /// `subject_token_type` on the wire.
    token_type: &'static str,
    token: AsyncHandler<(), Result<String, String>>,
}

impl fmt::Debug for IdentityProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityProvider").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

impl IdentityProvider {
    /// The provider exchanges the user's id token: `token` returns it, fresh, each time. The client is known there as
    /// `client_id`.
    pub fn with_id_token<F, Fut>(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        token: F,
    ) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self {
            token_endpoint: token_endpoint.into(),
            client_id: client_id.into(),
            client_secret: None,
            token_type: "urn:ietf:params:oauth:token-type:id_token",
            token: async_handler(move |()| token()),
        }
    }

    /// The provider exchanges a refresh token that it has given to this client, which outlives id tokens.
    pub fn with_refresh_token<F, Fut>(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        token: F,
    ) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let token_type = "urn:ietf:params:oauth:token-type:refresh_token";
        Self { token_type, ..Self::with_id_token(token_endpoint, client_id, token) }
    }

    /// Sets the client's secret at the provider, which gets it by HTTP Basic.
    pub fn client_secret(mut self, secret: impl Into<String>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }
}

/// A client that an authorization server knows already.
#[derive(Clone)]
struct RegisteredClient {
    id: String,
    secret: ClientSecret,
}

/// Which authorization servers get what the client proves itself with.
#[derive(Clone, Default, PartialEq, Eq)]
enum TrustedIssuer {
    /// Any that the MCP server names, as long as the client has nothing that another one could use.
    #[default]
    Named,
    Only(String),
    /// Any that the MCP server names.
    Any,
}

#[derive(Clone)]
enum ClientSecret {
    None,
    Secret(String),
    /// A private key in PKCS#8, for ES256.
    Key(Arc<SigningKey>),
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Checks an address that users are redirected to; a native program may have a scheme of its own.
fn check_redirect(uri: &str) -> Result<(), &'static str> {
    let url: Url = uri.parse().map_err(|_| "it is not a URL")?;
    if url.fragment().is_some() {
        return Err("it has a fragment");
    }
    if url.scheme() == "http" && Reach::of(&url) != Reach::Loopback {
        return Err("it is `http:` and not on this machine\nuse `https:`");
    }
    Ok(())
}

/// Checks the URL of a document that describes a client, which is the client's id.
fn check_document(text: &str) -> Result<(), &'static str> {
    let url: Url = text.parse().map_err(|_| "it is not a URL")?;
    if url.scheme() != "https" {
        return Err("it is not `https:`");
    }
    if url.path() == "/" {
        return Err("it has no path");
    }
    if url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err("it has a fragment or credentials");
    }
    let path = text.split(['?', '#']).next().unwrap_or_default();
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err("its path has dot segments");
    }
    Ok(())
}

impl OAuth {
    fn of(grant: Grant) -> Self {
        Self {
            grant,
            registered: None,
            issuer: TrustedIssuer::default(),
            metadata_url: None,
            name: env!("CARGO_PKG_NAME").to_owned(),
            redirect_uri: "http://127.0.0.1/callback".to_owned(),
            scopes: Vec::new(),
            binds_tokens: false,
            login_timeout: LOGIN_TIMEOUT,
            opens_browser: false,
            any_address: false,
            store: Arc::new(MemoryTokens::default()),
        }
    }

    /// The user authorizes the client: `visit` gets the URL to show, and returns the URL that the user was redirected to.
    pub fn authorization_code<F, Fut>(redirect_uri: impl Into<String>, visit: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let front_end = FrontEnd::User(async_handler(visit));
        Self { redirect_uri: redirect_uri.into(), ..Self::of(Grant::AuthorizationCode(front_end)) }
    }

    /// The user authorizes the client in a browser on this machine: `show` gets the URL, to open or to print it, and the
    /// redirect comes to a listener on 127.0.0.1, which this holds for as long as it lives. The user has five minutes, or
    /// the time set by [`login_timeout`](Self::login_timeout).
    ///
    /// Port 0 is any free port, which suits authorization servers that ignore the port of loopback addresses
    /// ([RFC 8252](https://www.rfc-editor.org/rfc/rfc8252#section-7.3)) and clients that register themselves; others need
    /// the port that they know the client by.
    ///
    /// ```no_run
    /// use mcp_runtime::client::{Client, OAuth};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let oauth = OAuth::loopback(0, |url| eprintln!("visit {url}"))?.name("My client");
    /// let server = Client::builder().oauth(oauth).connect("https://example.com/mcp").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The port is in use.
    pub fn loopback(port: u16, show: impl Fn(&str) + Send + Sync + 'static) -> std::io::Result<Self> {
        let listener = LoopbackListener::bind(port, show)?;
        let redirect_uri = listener.redirect_uri();
        let front_end = FrontEnd::Loopback(Arc::new(listener));
        Ok(Self { redirect_uri, ..Self::of(Grant::AuthorizationCode(front_end)) })
    }

    /// The authorization server decides without a user: the client fetches the URL itself, and expects a redirect.
    pub fn headless(redirect_uri: impl Into<String>) -> Self {
        Self { redirect_uri: redirect_uri.into(), ..Self::of(Grant::AuthorizationCode(FrontEnd::None)) }
    }

    /// The client acts for itself, with a secret, which only one authorization server gets: name it with
    /// [`issuer`](Self::issuer).
    ///
    /// ```
    /// use mcp_runtime::client::OAuth;
    ///
    /// let oauth = OAuth::client_credentials("my-service", "its secret").issuer("https://id.example.com");
    /// ```
    pub fn client_credentials(id: impl Into<String>, secret: impl Into<String>) -> Self {
        let registered = RegisteredClient { id: id.into(), secret: ClientSecret::Secret(secret.into()) };
        Self { registered: Some(registered), ..Self::of(Grant::ClientCredentials) }
    }

    /// The client acts for itself, with a private key: PKCS#8 in PEM, for ES256. Name the authorization server with
    /// [`issuer`](Self::issuer).
    ///
    /// # Errors
    /// It is not such a key.
    pub fn client_credentials_with_key(id: impl Into<String>, pem: &str) -> Result<Self, super::Error> {
        let body: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        let key = STANDARD.decode(body).ok().and_then(|der| SigningKey::from_pkcs8(&der).ok());
        let key =
            key.ok_or_else(|| super::Error::invalid("the private key is not PKCS#8 in PEM, for ES256"))?;
        let registered = RegisteredClient { id: id.into(), secret: ClientSecret::Key(Arc::new(key)) };
        Ok(Self { registered: Some(registered), ..Self::of(Grant::ClientCredentials) })
    }

    /// The client exchanges a token that its platform issues: `token` returns it, fresh, each time. Name the authorization
    /// server that gets it with [`issuer`](Self::issuer).
    pub fn workload_identity<F, Fut>(id: impl Into<String>, token: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let registered = RegisteredClient { id: id.into(), secret: ClientSecret::None };
        Self { registered: Some(registered), ..Self::of(Grant::JwtBearer(async_handler(move |()| token()))) }
    }

    /// The client exchanges the token in a file, which its platform replaces from time to time: it is read each time.
    pub fn workload_identity_file(id: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path = Arc::new(path.into());
        Self::workload_identity(id, move || {
            let path = path.clone();
            async move {
                let read = blocking::run(move || read_text(&path, u64::MAX)).await;
                // the error of a file names neither its path nor what is in it
                let text = read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
                Ok(text.trim().to_owned())
            }
        })
    }

    /// An enterprise's identity provider decides: a token of the user is exchanged there for a grant. Give the client's
    /// own registration with [`registered`](Self::registered).
    ///
    /// ```
    /// use mcp_runtime::client::{IdentityProvider, OAuth};
    ///
    /// # async fn id_token_of_the_session() -> Result<String, String> { Ok("..".into()) }
    /// let provider = IdentityProvider::with_id_token("https://idp.example.com/token", "my-client", || async {
    ///     id_token_of_the_session().await
    /// });
    /// let oauth = OAuth::enterprise(provider).registered("https://id.example.com", "my-id", Some("my secret"));
    /// ```
    pub fn enterprise(provider: IdentityProvider) -> Self {
        Self::of(Grant::Enterprise(provider))
    }

    /// The client is registered with this authorization server already. Its credentials are not used with another one.
    pub fn registered(mut self, issuer: &str, id: impl Into<String>, secret: Option<&str>) -> Self {
        self.issuer = TrustedIssuer::Only(issuer.to_owned());
        self.client(id, secret)
    }

    /// Uses this authorization server and no other: what the client proves itself with goes there alone. An MCP server that
    /// names others is refused.
    ///
    /// Required for clients with a secret, a private key or a token of their platform, unless
    /// [`any_issuer`](Self::any_issuer) is set.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = TrustedIssuer::Only(issuer.into());
        self
    }

    /// Uses whatever authorization server the MCP server names, also for the client's secret or its platform's token: an
    /// MCP server can get them by naming one of its own. For tests, and for servers that are trusted with them.
    pub fn any_issuer(mut self) -> Self {
        self.issuer = TrustedIssuer::Any;
        self
    }

    /// The client is registered by other means. With a secret, name the authorization server with
    /// [`issuer`](Self::issuer).
    pub fn client(mut self, id: impl Into<String>, secret: Option<&str>) -> Self {
        let kept = self.registered.take().map(|client| client.secret);
        let secret = match (secret, kept) {
            (Some(secret), _) => ClientSecret::Secret(secret.to_owned()),
            // of `client_credentials_with_key`
            (None, Some(key @ ClientSecret::Key(_))) => key,
            (None, _) => ClientSecret::None,
        };
        self.registered = Some(RegisteredClient { id: id.into(), secret });
        self
    }

    /// The client is described by a document at this `https:` URL, which is its id with every authorization server that
    /// supports such documents.
    pub fn client_metadata(mut self, url: impl Into<String>) -> Self {
        self.metadata_url = Some(url.into());
        self
    }

    /// Sets the name under which the client registers itself.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Asks for these scopes; by default for those that the server names.
    pub fn scopes(mut self, scopes: impl Texts) -> Self {
        self.scopes = scopes.into_texts();
        self
    }

    /// Binds tokens to a key of this client if the authorization server can
    /// ([DPoP, RFC 9449](https://www.rfc-editor.org/rfc/rfc9449)), so that they are of no use to a thief. Without it they are
    /// bound only where the server requires that. The key is kept with the tokens.
    pub fn dpop(mut self) -> Self {
        self.binds_tokens = true;
        self
    }

    /// Sets how long the user has for a login; five minutes by default. The time limits of calls do not run meanwhile.
    pub fn login_timeout(mut self, limit: Duration) -> Self {
        self.login_timeout = limit;
        self
    }

    /// Also opens the URL of a login in the system's browser (feature `client-browser`), for [`loopback`](Self::loopback) and
    /// [`authorization_code`](Self::authorization_code). Their functions get the URL all the same: a machine without a
    /// display has no browser, and a launcher may fail without saying so.
    ///
    /// ```no_run
    /// use mcp_runtime::client::{Client, OAuth};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let oauth = OAuth::loopback(0, |url| eprintln!("if no browser opens, visit {url}"))?.open_browser();
    /// let server = Client::builder().oauth(oauth).connect("https://example.com/mcp").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "client-browser")]
    pub fn open_browser(mut self) -> Self {
        self.opens_browser = true;
        self
    }

    /// Connects to authorization servers wherever they are, also on this machine, in private networks and by `http:`; for
    /// tests, and for networks that no one else can write to.
    ///
    /// Without this, an MCP server can name addresses of its own kind of network and public ones, by `https:`: one on
    /// this machine's loopback can name others there, by `http:` too, and one in a private network can name others in
    /// private networks.
    pub fn allow_private_network(mut self) -> Self {
        self.any_address = true;
        self
    }

    /// Keeps tokens and registrations in this store; by default in memory.
    pub fn store(mut self, store: impl TokenStore + 'static) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// The extension of the protocol that this is, which the client declares.
    pub(in crate::client) fn extension(&self) -> Option<&'static str> {
        match self.grant {
            Grant::ClientCredentials => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Grant::Enterprise(_) => Some("io.modelcontextprotocol/enterprise-managed-authorization"),
            Grant::AuthorizationCode(_) | Grant::JwtBearer(_) => None,
        }
    }

    /// Whether a person logs in.
    fn has_user(&self) -> bool {
        matches!(self.grant, Grant::AuthorizationCode(FrontEnd::User(_) | FrontEnd::Loopback(_)))
    }

    /// Checks that nothing secret goes to an authorization server that only the MCP server names, that a browser is not
    /// opened for no one, and that the client's own URLs are ones that authorization servers accept.
    fn check(&self) -> Result<(), super::Error> {
        if matches!(self.grant, Grant::AuthorizationCode(_)) {
            check_redirect(&self.redirect_uri).map_err(|why| {
                super::Error::invalid(format!("the redirect of `OAuth` cannot be used: {why}"))
            })?;
        }
        if let Some(url) = &self.metadata_url {
            check_document(url).map_err(|why| {
                super::Error::invalid(format!("the URL of `.client_metadata(..)` cannot be used: {why}"))
            })?;
        }
        if self.opens_browser && !self.has_user() {
            return Err(super::Error::invalid(
                "no user logs in that `.open_browser()` could open a browser for\n\
                 remove it, or use `OAuth::loopback`",
            ));
        }
        let has_secret =
            self.registered.as_ref().is_some_and(|client| !matches!(client.secret, ClientSecret::None));
        let what = match self.grant {
            _ if self.issuer != TrustedIssuer::Named => return Ok(()),
            Grant::JwtBearer(_) => "the platform's token",
            _ if has_secret => "the client's secret",
            _ => return Ok(()),
        };
        Err(super::Error::invalid(format!(
            "{what} would go to whatever authorization server the MCP server names\n\
             name yours with `.issuer(\"https://id.example.com\")`, or trust each with `.any_issuer()`"
        )))
    }
}
