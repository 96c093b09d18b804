//! Access tokens: authorized once, renewed once for all calls and processes, and never shown.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    body::Body,
    extract::{Form, RawQuery},
    http::{HeaderMap, Response},
    routing::{any, get, post},
};
use mcp_runtime::client::{Client, Error, FileTokens, OAuth, TokenStore};
use mcp_tests::support::serve_router;
use serde_json::{Value, json};

use super::within;

/// An MCP server that is its own authorization server, with refresh tokens that rotate.
#[derive(Default)]
struct Issuer {
    /// The number of the access token that is accepted.
    current: AtomicUsize,
    authorized: AtomicUsize,
    refreshed: AtomicUsize,
    /// Uses of a refresh token that had been used.
    reused: AtomicUsize,
    refuses_refresh: AtomicUsize,
    state: Mutex<Vec<String>>,
}

fn reply(status: u16, headers: &[(&str, String)], body: &Value) -> Response<Body> {
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    response.body(Body::from(body.to_string())).unwrap()
}

impl Issuer {
    fn grant(&self) -> Response<Body> {
        let number = self.current.fetch_add(1, Ordering::SeqCst) + 1;
        reply(
            200,
            &[],
            &json!({
                "access_token": format!("secret-access-{number}"), "token_type": "Bearer", "expires_in": 3600,
                "refresh_token": format!("secret-refresh-{number}"),
            }),
        )
    }

    fn token(&self, form: &[(String, String)]) -> Response<Body> {
        let value = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        self.state.lock().unwrap().push(value("resource").unwrap_or_default().to_owned());
        if value("grant_type") == Some("authorization_code") {
            assert!(value("code_verifier").is_some_and(|verifier| verifier.len() >= 43));
            self.authorized.fetch_add(1, Ordering::SeqCst);
            return self.grant();
        }
        let latest = format!("secret-refresh-{}", self.current.load(Ordering::SeqCst));
        if value("refresh_token") != Some(&latest) {
            self.reused.fetch_add(1, Ordering::SeqCst);
            return reply(400, &[], &json!({ "error": "invalid_grant" }));
        }
        if self.refuses_refresh.load(Ordering::SeqCst) > 0 {
            return reply(400, &[], &json!({ "error": "invalid_grant" }));
        }
        self.refreshed.fetch_add(1, Ordering::SeqCst);
        self.grant()
    }

    fn mcp(&self, headers: &HeaderMap, body: &str) -> Response<Body> {
        let accepted = format!("Bearer secret-access-{}", self.current.load(Ordering::SeqCst));
        if headers.get("authorization").is_none_or(|sent| *sent != *accepted) {
            return reply(401, &[("www-authenticate", "Bearer scope=\"read\"".to_owned())], &json!({}));
        }
        let message: Value = serde_json::from_str(body).unwrap();
        let result = match message["method"].as_str() {
            Some("server/discover") => json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} } }),
            _ => json!({ "resultType": "complete", "content": [] }),
        };
        reply(200, &[], &json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    }
}

async fn serve() -> (Arc<Issuer>, String) {
    let issuer = Arc::new(Issuer::default());
    // its own address is known only when it listens
    let host = |headers: &HeaderMap| format!("http://{}", headers["host"].to_str().unwrap());
    let of = |issuer: &Arc<Issuer>| issuer.clone();
    let (a, b) = (of(&issuer), of(&issuer));
    let app = Router::new()
        .route("/mcp", any(move |headers: HeaderMap, body: String| async move { a.mcp(&headers, &body) }))
        .route("/token", post(move |Form(form): Form<Vec<(String, String)>>| async move { b.token(&form) }))
        .route("/.well-known/oauth-protected-resource/mcp", get(move |headers: HeaderMap| async move {
            let host = host(&headers);
            reply(200, &[], &json!({ "resource": format!("{host}/mcp"), "authorization_servers": [host] }))
        }))
        .route("/.well-known/oauth-authorization-server", get(move |headers: HeaderMap| async move {
            let host = host(&headers);
            reply(200, &[], &json!({
                "issuer": host, "authorization_endpoint": format!("{host}/authorize"),
                "token_endpoint": format!("{host}/token"), "registration_endpoint": format!("{host}/register"),
                "code_challenge_methods_supported": ["S256"],
            }))
        }))
        .route("/register", post(|| async { reply(201, &[], &json!({ "client_id": "me" })) }))
        .route("/authorize", get(|RawQuery(query): RawQuery| async move {
            let query = query.unwrap();
            assert!(query.contains("code_challenge_method=S256") && query.contains("scope=read"), "{query}");
            let state = query.split('&').find(|part| part.starts_with("state=")).unwrap().to_owned();
            reply(302, &[("location", format!("http://localhost:1/callback?code=c&{state}"))], &json!({}))
        }));
    let address = serve_router(app).await;
    (issuer, format!("http://{address}/mcp"))
}

/// A directory that is removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = mcp_tests::external::cache_dir("client").join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn tokens(&self) -> FileTokens {
        FileTokens::new(self.0.join("tokens.json"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn connect(url: &str, store: FileTokens) -> Result<Client, Error> {
    let oauth = OAuth::headless("http://localhost:1/callback").store(store);
    within(Client::builder().oauth(oauth).connect(url)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotating_refresh_token_is_used_once_by_all_calls_and_processes() {
    let folder = Folder::new("rotation");
    let (issuer, url) = serve().await;
    // two clients that share nothing but the file, as two processes do
    let clients =
        [connect(&url, folder.tokens()).await.unwrap(), connect(&url, folder.tokens()).await.unwrap()];
    assert_eq!(issuer.authorized.load(Ordering::SeqCst), 1, "the second one found the first one's tokens");
    for round in 1..=3 {
        // the server ends the token early
        issuer.current.fetch_add(1, Ordering::SeqCst);
        let kept = folder.tokens().load(&url).unwrap().unwrap();
        let mut renewed = kept.clone();
        renewed["refresh_token"] = format!("secret-refresh-{}", issuer.current.load(Ordering::SeqCst)).into();
        folder.tokens().save(&url, &renewed).unwrap();
        let before = issuer.refreshed.load(Ordering::SeqCst);
        let calls: Vec<_> =
            (0..50).map(|n| tokio::spawn(clients[n % 2].call("t", json!({})).into_future())).collect();
        for call in calls {
            within(call).await.unwrap().unwrap();
        }
        let refreshed = issuer.refreshed.load(Ordering::SeqCst) - before;
        assert_eq!((refreshed, issuer.reused.load(Ordering::SeqCst)), (1, 0), "round {round}");
    }
    assert_eq!(issuer.authorized.load(Ordering::SeqCst), 1);
    assert!(
        issuer.state.lock().unwrap().iter().all(|resource| *resource == url),
        "`resource` as it was published"
    );
    assert!(!format!("{clients:?}").contains("secret"));
}

#[tokio::test]
async fn an_old_token_is_renewed_and_a_refused_renewal_authorizes_again() {
    let folder = Folder::new("renewal");
    let (issuer, url) = serve().await;
    drop(connect(&url, folder.tokens()).await.unwrap());
    let mut kept = folder.tokens().load(&url).unwrap().unwrap();
    kept["renew_at"] = 1.into();
    folder.tokens().save(&url, &kept).unwrap();
    drop(connect(&url, folder.tokens()).await.unwrap());
    assert_eq!((issuer.authorized.load(Ordering::SeqCst), issuer.refreshed.load(Ordering::SeqCst)), (1, 1));

    let mut kept = folder.tokens().load(&url).unwrap().unwrap();
    kept["renew_at"] = 1.into();
    folder.tokens().save(&url, &kept).unwrap();
    issuer.refuses_refresh.store(1, Ordering::SeqCst);
    drop(connect(&url, folder.tokens()).await.unwrap());
    assert_eq!(issuer.authorized.load(Ordering::SeqCst), 2);
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_of_tokens_is_its_owners() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("owner");
    let (_issuer, url) = serve().await;
    drop(connect(&url, folder.tokens()).await.unwrap());
    for entry in std::fs::read_dir(&folder.0).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}

#[tokio::test]
async fn an_answer_of_another_request_is_refused_before_its_code_is_used() {
    let (issuer, url) = serve().await;
    let oauth = OAuth::authorization_code("http://localhost:1/callback", |_| async {
        Ok("http://localhost:1/callback?code=stolen&state=other".to_owned())
    });
    let error = within(Client::builder().oauth(oauth).connect(url)).await.unwrap_err();
    assert!(error.to_string().contains("another request"), "{error}");
    assert_eq!(issuer.authorized.load(Ordering::SeqCst), 0);
}
