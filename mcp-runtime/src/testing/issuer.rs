//! An authorization server for tests: it publishes its metadata and its keys on the loopback interface, and signs the
//! tokens that a test requests. Dropping it stops the server.

use std::{
    fmt,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use super::TestServer;
use crate::core::{
    connection::Principal,
    es256::SigningKey,
    server::{Error, Result},
    sync::Mutex,
};

/// How long a token is valid whose principal does not expire.
const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// An authorization server for tests, on the loopback interface: [`Oauth::issuer`](crate::auth::Oauth::issuer) takes its
/// [`url`](Self::url), and accepts its tokens.
///
/// ```
/// use mcp_runtime::{Principal, auth::Oauth, prelude::*, testing::{TestIssuer, TestServer}};
/// use serde_json::json;
///
/// /// Who is calling?
/// #[mcp_tool(scopes("notes:read"))]
/// fn whoami(caller: &Principal) -> String {
///     caller.subject().to_owned()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mcp_runtime::Result<()> {
/// const RESOURCE: &str = "https://mcp.example.com/mcp";
/// let issuer = TestIssuer::start().await?;
/// let oauth = Oauth::issuer(issuer.url()).resource(RESOURCE).scopes(["notes:read"]);
/// let server = TestServer::new(mcp_runtime::server!().tool::<whoami>().auth(oauth))?;
///
/// let ada = Principal::new(issuer.url(), "ada").with_scopes(["notes:read"]);
/// let server = server.token(&issuer.token(&ada, RESOURCE)).await.expect("a good token");
/// server.call("whoami", json!({})).await.expect_text("ada");
///
/// let refused = server.token(&issuer.token(&ada, "https://elsewhere.example.com/mcp")).await;
/// assert!(refused.expect_err("another audience").contains("is not for this resource"));
/// # Ok(())
/// # }
/// ```
pub struct TestIssuer {
    url: String,
    key: Arc<Mutex<IssuerKey>>,
    task: AbortHandle,
}

/// The key that signs now.
struct IssuerKey {
    /// Its number, which is its `kid`.
    number: usize,
    key: SigningKey,
}

impl IssuerKey {
    fn generate(number: usize) -> Result<Self> {
        let failed = |_| Error::serve("a key cannot be generated: the system provides no randomness");
        let key = SigningKey::from_pkcs8(&SigningKey::generate().map_err(failed)?);
        Ok(Self { number, key: key.expect("it was generated just now") })
    }

    fn kid(&self) -> String {
        format!("key-{}", self.number)
    }

    fn jwk(&self) -> Value {
        let mut jwk = self.key.jwk();
        jwk["kid"] = self.kid().into();
        jwk["use"] = "sig".into();
        jwk["alg"] = "ES256".into();
        jwk
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": self.kid() });
        let signed = self.key.sign(&header, claims);
        signed.expect("the operating system has random bytes")
    }
}

impl TestIssuer {
    /// Starts the server on a free port.
    ///
    /// # Errors
    /// No port is free, or no key can be generated.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let key = Arc::new(Mutex::new(IssuerKey::generate(1)?));
        let task = tokio::spawn(serve(listener, url.clone(), key.clone())).abort_handle();
        Ok(Self { url, key, task })
    }

    /// Its URL, which is the `iss` of its tokens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a token of this principal for the server at `resource`, with the principal's claims, subject, scopes and
    /// client. It expires when the principal does, or else in ten minutes.
    ///
    /// A principal of another issuer gets a token that names the other issuer, and servers refuse it.
    #[must_use]
    pub fn token(&self, principal: &Principal, resource: &str) -> String {
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = SystemTime::now();
        let expires = seconds(principal.expires().unwrap_or(now + LIFETIME));
        let mut claims = principal.claims().cloned().unwrap_or_default();
        let mut set = |name: &str, value: Value| {
            claims.insert(name.to_owned(), value);
        };
        set("iss", principal.issuer().into());
        set("sub", principal.subject().into());
        set("aud", resource.into());
        // of a token that has expired, too, it is before the end
        set("iat", seconds(now).min(expires).into());
        set("exp", expires.into());
        if !principal.scopes().is_empty() {
            set("scope", principal.scopes().join(" ").into());
        }
        if let Some(client) = principal.client_id() {
            set("client_id", client.into());
        }
        if let Some(actor) = principal.actor() {
            set("act", actor.clone());
        }
        if let Some(key) = principal.confirmation_key() {
            set("cnf", json!({ "jkt": key }));
        }
        self.sign(claims)
    }

    /// A token with exactly these claims.
    #[must_use]
    pub fn sign(&self, claims: Map<String, Value>) -> String {
        self.key.lock().sign(&Value::Object(claims))
    }

    /// Signs with a new key from now on, and publishes only that key.
    ///
    /// # Errors
    /// No key can be generated.
    pub fn rotate_keys(&self) -> Result<()> {
        let mut key = self.key.lock();
        *key = IssuerKey::generate(key.number + 1)?;
        Ok(())
    }
}

impl Drop for TestIssuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestServer {
    /// Sends the next requests as the caller of this access token or API key, if [`auth`](crate::ServerBuilder::auth) accepts
    /// it. They have its header `Authorization`, as over HTTP. A [`TestIssuer`] issues tokens.
    ///
    /// # Errors
    /// The token is refused: the status over HTTP and its message, such as `401: the token has expired`.
    ///
    /// # Panics
    /// The server has no [`auth`](crate::ServerBuilder::auth).
    pub async fn token(mut self, token: &str) -> std::result::Result<Self, String> {
        let server = &self.client.connection.server;
        let Some(authenticator) = server.options().http.authenticator.clone() else {
            panic!("the server does not authenticate its callers\nadd `.auth(..)` to it");
        };
        let mut request = Request::new(());
        *request.method_mut() = http::Method::POST;
        let header = format!("Bearer {token}").parse().map_err(|_| "400: not the value of a header")?;
        request.headers_mut().insert(http::header::AUTHORIZATION, header);
        let (request, ()) = request.into_parts();
        let verified = authenticator.start(&request, None).get().await;
        let caller = verified
            .map_err(|refused| format!("{}: {}", refused.refusal.status().as_u16(), refused.message))?;
        self.client.connection.set_caller(Some(caller));
        let headers = Arc::make_mut(&mut self.client.connection.headers);
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        Ok(self)
    }
}

impl fmt::Debug for TestIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestIssuer").field("url", &self.url).finish_non_exhaustive()
    }
}

async fn serve(listener: TcpListener, url: String, key: Arc<Mutex<IssuerKey>>) {
    // its tasks end with it
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve_connection(stream, url.clone(), key.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve_connection(stream: TcpStream, url: String, key: Arc<Mutex<IssuerKey>>) {
    let service = service_fn(|request: Request<Incoming>| {
        let reply = answer(request.uri().path(), &url, &key);
        async move { Ok::<_, std::convert::Infallible>(reply) }
    });
    // a client that goes away ends its connection
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn answer(path: &str, url: &str, key: &Mutex<IssuerKey>) -> Response<String> {
    let (status, body) = match path {
        "/.well-known/oauth-authorization-server" | "/.well-known/openid-configuration" => {
            (StatusCode::OK, json!({ "issuer": url, "jwks_uri": format!("{url}/keys") }))
        }
        "/keys" => (StatusCode::OK, json!({ "keys": [key.lock().jwk()] })),
        _ => (StatusCode::NOT_FOUND, json!({})),
    };
    let mut response = Response::new(body.to_string());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
