//! Access tokens: authorized once, renewed once for all calls and processes, and never shown.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, http::Response};
use mcp_runtime::client::{Client, ClientBuilder, Error, FileTokens, KeyringTokens, OAuth, TokenStore};
use mcp_tests::support::{TestFolder, discovered};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{
    authorizations::honest,
    site::{Seen, json_response, serve_async},
    within,
};

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
    /// The status that refuses every request for a token, which is not answered otherwise; zero means none.
    busy: AtomicUsize,
    /// How many requests an access token is good for; zero means any number.
    lifetime: AtomicUsize,
    used: AtomicUsize,
    /// Milliseconds before the answer to a refresh token, after it has been replaced.
    slow_refresh: AtomicUsize,
    /// Assertions of workloads.
    assertions: Mutex<Vec<String>>,
    state: Mutex<Vec<String>>,
}

impl Issuer {
    fn grant(&self) -> Response<Body> {
        let number = self.current.fetch_add(1, Ordering::SeqCst) + 1;
        self.used.store(0, Ordering::SeqCst);
        let grant = json!({
            "access_token": format!("secret-access-{number}"), "token_type": "Bearer", "expires_in": 3600,
            "refresh_token": format!("secret-refresh-{number}"),
        });
        json_response(200, &[], &grant)
    }

    fn token(&self, form: &[(String, String)]) -> Response<Body> {
        let value = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let busy = self.busy.load(Ordering::SeqCst);
        if busy > 0 {
            return json_response(u16::try_from(busy).unwrap(), &[], &json!({ "error": "slow_down" }));
        }
        self.state.lock().unwrap().push(value("resource").unwrap_or_default().to_owned());
        if value("grant_type") == Some("authorization_code") {
            assert!(value("code_verifier").is_some_and(|verifier| verifier.len() >= 43));
            self.authorized.fetch_add(1, Ordering::SeqCst);
            return self.grant();
        }
        if let Some(assertion) = value("assertion") {
            self.assertions.lock().unwrap().push(assertion.to_owned());
            return self.grant();
        }
        let latest = format!("secret-refresh-{}", self.current.load(Ordering::SeqCst));
        if value("refresh_token") != Some(&latest) {
            self.reused.fetch_add(1, Ordering::SeqCst);
            return json_response(400, &[], &json!({ "error": "invalid_grant" }));
        }
        if self.refuses_refresh.load(Ordering::SeqCst) > 0 {
            return json_response(400, &[], &json!({ "error": "invalid_grant" }));
        }
        self.refreshed.fetch_add(1, Ordering::SeqCst);
        self.grant()
    }

    fn mcp(&self, seen: &Seen) -> Response<Body> {
        let accepted = format!("Bearer secret-access-{}", self.current.load(Ordering::SeqCst));
        let lifetime = self.lifetime.load(Ordering::SeqCst);
        let is_current = seen.header("authorization") == Some(&accepted);
        let has_ended = lifetime > 0 && is_current && self.used.fetch_add(1, Ordering::SeqCst) >= lifetime;
        if !is_current || has_ended {
            return json_response(401, &[("www-authenticate", "Bearer scope=\"read\"")], &json!({}));
        }
        seen.reply(&match seen.message["method"].as_str() {
            Some("server/discover") => discovered(json!({ "tools": {} })),
            _ => json!({ "resultType": "complete", "content": [] }),
        })
    }
}

async fn serve() -> (Arc<Issuer>, String) {
    let issuer = Arc::new(Issuer::default());
    let answering = issuer.clone();
    let (url, _) = serve_async(move |seen| {
        let mut pause = 0;
        let response = match &*seen.path {
            "/mcp" => answering.mcp(seen),
            "/token" => {
                let form: Vec<_> = form_urlencoded::parse(seen.body.as_bytes()).into_owned().collect();
                let response = answering.token(&form);
                pause = answering.slow_refresh.load(Ordering::SeqCst) as u64;
                response
            }
            "/authorize" => {
                let query = seen.query.as_deref().unwrap();
                assert!(
                    query.contains("code_challenge_method=S256") && query.contains("scope=read"),
                    "{query}"
                );
                let part = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name)).unwrap();
                let redirect = part("redirect_uri=").replace("%3A", ":").replace("%2F", "/");
                let location = format!("{redirect}?code=c&state={}", part("state="));
                json_response(302, &[("location", &location)], &json!({}))
            }
            _ => honest(seen),
        };
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            response
        })
    })
    .await;
    (issuer, url)
}

/// The file of tokens in a folder.
fn tokens(folder: &TestFolder) -> FileTokens {
    FileTokens::new(folder.join("tokens.json"))
}

/// The tokens that are kept for a server.
fn kept(folder: &TestFolder, url: &str) -> Value {
    tokens(folder).load(url).unwrap().unwrap()
}

/// Has the token that is kept renewed at its next use.
fn set_old(folder: &TestFolder, url: &str) {
    let mut kept = kept(folder, url);
    kept["renew_at"] = 1.into();
    tokens(folder).save(url, &kept).unwrap();
}

/// A client that asks a slow machine for its revision as long as it takes: it would take another one for an older server.
fn builder() -> ClientBuilder {
    Client::builder().probe_timeout(Duration::from_secs(60))
}

async fn connect(url: &str, store: FileTokens) -> Result<Client, Error> {
    let oauth = OAuth::headless("http://localhost:1/callback").store(store);
    within(builder().oauth(oauth).connect(url)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotating_refresh_token_is_used_once_by_all_calls_and_processes() {
    let folder = TestFolder::default();
    let (issuer, url) = serve().await;
    // two clients that share nothing but the file, as two processes do
    let clients =
        [connect(&url, tokens(&folder)).await.unwrap(), connect(&url, tokens(&folder)).await.unwrap()];
    assert_eq!(issuer.authorized.load(Ordering::SeqCst), 1, "the second one found the first one's tokens");
    for round in 1..=3 {
        // the server ends the token early
        issuer.current.fetch_add(1, Ordering::SeqCst);
        let kept = kept(&folder, &url);
        let mut renewed = kept.clone();
        renewed["refresh_token"] = format!("secret-refresh-{}", issuer.current.load(Ordering::SeqCst)).into();
        tokens(&folder).save(&url, &renewed).unwrap();
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
    let folder = TestFolder::default();
    let (issuer, url) = serve().await;
    drop(connect(&url, tokens(&folder)).await.unwrap());
    set_old(&folder, &url);
    drop(connect(&url, tokens(&folder)).await.unwrap());
    assert_eq!((issuer.authorized.load(Ordering::SeqCst), issuer.refreshed.load(Ordering::SeqCst)), (1, 1));

    set_old(&folder, &url);
    issuer.refuses_refresh.store(1, Ordering::SeqCst);
    drop(connect(&url, tokens(&folder)).await.unwrap());
    assert_eq!(issuer.authorized.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_busy_token_endpoint_is_an_error_and_costs_no_grant() {
    let folder = TestFolder::default();
    let (issuer, url) = serve().await;
    drop(connect(&url, tokens(&folder)).await.unwrap());
    set_old(&folder, &url);
    for status in [429, 408, 503] {
        issuer.busy.store(status, Ordering::SeqCst);
        let error = connect(&url, tokens(&folder)).await.expect_err("the token cannot be renewed");
        let Error::Authorization { cause } = &error else { panic!("{error:?}") };
        assert!(
            matches!(**cause, Error::Http { status: got, .. } if usize::from(got) == status),
            "{error:?}"
        );
        assert_eq!(kept(&folder, &url)["refresh_token"], "secret-refresh-1");
    }
    issuer.busy.store(0, Ordering::SeqCst);
    drop(connect(&url, tokens(&folder)).await.unwrap());
    assert_eq!((issuer.authorized.load(Ordering::SeqCst), issuer.refreshed.load(Ordering::SeqCst)), (1, 1));
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_of_tokens_is_its_owners() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TestFolder::default();
    let (_issuer, url) = serve().await;
    drop(connect(&url, tokens(&folder)).await.unwrap());
    for entry in std::fs::read_dir(&*folder).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_of_tokens_is_made_anew_whatever_lies_beside_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TestFolder::default();
    let path = |name: &str| folder.join(name);
    for name in ["tokens.json", "tokens.json.next"] {
        std::fs::write(path(name), "{}").unwrap();
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o666)).unwrap();
    }
    std::fs::write(path("of another"), "kept").unwrap();
    std::os::unix::fs::symlink(path("of another"), path("tokens.json.write")).unwrap();
    let tokens = tokens(&folder);
    tokens.save("https://example.com/mcp", &serde_json::json!({ "access_token": "secret" })).unwrap();
    assert_eq!(std::fs::metadata(path("tokens.json")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(path("of another")).unwrap(), "kept");
    assert_eq!(std::fs::read_to_string(path("tokens.json.next")).unwrap(), "{}");
}

#[tokio::test]
async fn a_broken_file_of_tokens_is_set_aside() {
    let folder = TestFolder::default();
    for broken in ["", "{\"https:", "[1]", "\u{0}"] {
        std::fs::write(folder.join("tokens.json"), broken).unwrap();
        let (_issuer, url) = serve().await;
        drop(connect(&url, tokens(&folder)).await.unwrap());
        assert_eq!(std::fs::read_to_string(folder.join("tokens.json.broken")).unwrap(), broken);
        assert!(tokens(&folder).load(&url).unwrap().is_some());
    }
}

/// What a browser does with a URL on this machine: it follows redirects.
async fn browse(mut url: String) -> String {
    loop {
        let rest = url.strip_prefix("http://").expect("a URL of this machine");
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        let request = mcp_tests::support::HttpRequest::new("GET").path(path);
        let response = request.send(host.parse().unwrap()).await;
        match response.header("location") {
            Some(location) => url = location.to_owned(),
            None => return format!("{} {}", response.status, response.text()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_redirect_is_received_on_this_machine() {
    let (issuer, url) = serve().await;
    let shown = Arc::new(Mutex::new(Vec::new()));
    let (pages, runtime) = (shown.clone(), tokio::runtime::Handle::current());
    let oauth = OAuth::loopback(0, move |url| {
        let (url, pages) = (url.to_owned(), pages.clone());
        runtime.spawn(async move {
            // a request of someone else, first
            let callback = url.split('&').find_map(|part| part.strip_prefix("redirect_uri=")).unwrap();
            let callback = callback.replace("%3A", ":").replace("%2F", "/");
            let foreign = browse(format!("{callback}?code=stolen&state=guessed")).await;
            let own = browse(url).await;
            pages.lock().unwrap().extend([foreign, own]);
        });
    })
    .unwrap();
    let client = within(builder().oauth(oauth).connect(&url)).await.unwrap();
    assert!(client.call("t", json!({})).await.is_ok());
    assert_eq!(issuer.authorized.load(Ordering::SeqCst), 1);
    super::until(|| shown.lock().unwrap().len() == 2).await;
    let shown = shown.lock().unwrap();
    assert!(shown[0].starts_with("404") && shown[1].starts_with("200 You can close"), "{shown:?}");
}

#[tokio::test]
async fn the_token_of_a_workload_is_read_from_its_file_each_time() {
    let folder = TestFolder::default();
    let (issuer, url) = serve().await;
    let file = folder.join("token");
    std::fs::write(&file, "platform-token-1\n").unwrap();
    let connect = || {
        let oauth = OAuth::workload_identity_file("me", &file).issuer(url.trim_end_matches("/mcp"));
        within(builder().oauth(oauth).connect(&url))
    };
    connect().await.unwrap();
    std::fs::write(&file, "platform-token-2").unwrap();
    connect().await.unwrap();
    assert_eq!(*issuer.assertions.lock().unwrap(), ["platform-token-1", "platform-token-2"]);
    std::fs::remove_file(&file).unwrap();
    let error = connect().await.unwrap_err();
    let Error::Authorization { cause } = &error else { panic!("{error:?}") };
    assert!(matches!(**cause, Error::Handler { .. }) && !error.to_string().contains("token-"), "{error}");
}

#[tokio::test]
async fn a_call_that_is_dropped_while_a_token_is_renewed_does_not_lose_it() {
    let folder = TestFolder::default();
    let (issuer, url) = serve().await;
    let client = connect(&url, tokens(&folder)).await.unwrap();
    // the server does not accept the token any more, and is slow to answer with the next one
    issuer.lifetime.store(1, Ordering::SeqCst);
    client.call("t", json!({})).await.ok();
    issuer.lifetime.store(0, Ordering::SeqCst);
    set_old(&folder, &url);
    let before = issuer.refreshed.load(Ordering::SeqCst);
    issuer.slow_refresh.store(300, Ordering::SeqCst);
    let (at, store) = (url.clone(), tokens(&folder));
    let second = tokio::spawn(async move { connect(&at, store).await });
    super::until(|| issuer.refreshed.load(Ordering::SeqCst) > before).await;
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    issuer.slow_refresh.store(0, Ordering::SeqCst);
    // what the server has sent is kept, although no call waits for it
    let latest = format!("secret-refresh-{}", issuer.current.load(Ordering::SeqCst));
    super::until(|| kept(&folder, &url)["refresh_token"] == *latest).await;
    let third = connect(&url, tokens(&folder)).await.unwrap();
    assert!(third.call("t", json!({})).await.is_ok());
    assert_eq!((issuer.authorized.load(Ordering::SeqCst), issuer.reused.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn tokens_are_kept_in_the_keyring_that_the_program_has_set() {
    let folder = TestFolder::default();
    let (issuer, url) = serve().await;
    let tokens = KeyringTokens::new("mcp-tests", folder.join("lock"));
    let connect = || {
        let oauth = OAuth::headless("http://localhost:1/callback").store(tokens.clone());
        within(builder().oauth(oauth).connect(&url))
    };
    let error = connect().await.unwrap_err();
    assert!(error.to_string().contains("the program has set no keyring"), "{error}");
    keyring_core::set_default_store(keyring_core::mock::Store::new().unwrap());
    drop(connect().await.unwrap());
    let mut kept = tokens.load(&url).unwrap().unwrap();
    assert_eq!(kept["refresh_token"], "secret-refresh-1");
    kept["renew_at"] = 1.into();
    tokens.save(&url, &kept).unwrap();
    drop(connect().await.unwrap());
    assert_eq!((issuer.authorized.load(Ordering::SeqCst), issuer.refreshed.load(Ordering::SeqCst)), (1, 1));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_a_login_is_opened_in_the_browser_of_the_system() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TestFolder::default();
    let (issuer, url) = serve().await;
    // a first launcher that fails, and one that works, which tells what it was given
    let write = |name: &str, script: &str| {
        std::fs::write(folder.join(name), script).unwrap();
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o700)).unwrap();
    };
    let opened = folder.join("opened");
    write("xdg-open", "#!/bin/sh\nexit 3\n");
    write(
        "gio",
        &format!(
            "#!/bin/sh\nprintf '%s %s' \"$1\" \"$2\" > '{0}.next'; mv '{0}.next' '{0}'\n",
            opened.display()
        ),
    );
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = super::programs::program("browser");
    command.env("MCP_TESTS_URL", &url).env("PATH", path).stderr(std::process::Stdio::piped());
    let program = tokio::task::spawn_blocking(move || command.output());
    super::until(|| opened.exists()).await;
    let seen = std::fs::read_to_string(&opened).unwrap();
    let visited = seen.strip_prefix("open ").expect("the URL alone");
    let page = within(browse(visited.to_owned())).await;
    assert!(page.starts_with("200 You can close"), "{page}");
    let output = within(program).await.unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("called."), "{stderr}");
    assert!(stderr.contains(&format!("visit {visited}")), "the program shows it as well: {stderr}");
    assert_eq!(issuer.authorized.load(Ordering::SeqCst), 1);
}
