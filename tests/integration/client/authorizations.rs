//! Authorization that fails, or that a hostile server leads astray: reported once, and kept to where it belongs.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, http::Response};
use mcp_runtime::client::{ChangeEvent, Client, Error, IdentityProvider, OAuth, TokenStore};
use mcp_tests::support::{SUBSCRIPTION, discovered, notification, response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    site::{Log, Seen, event_stream, json_response, respond, serve, serve_async},
    until, within,
};

fn is_authorized(seen: &Seen) -> bool {
    seen.header("authorization") == Some("Bearer good")
}

/// The metadata of an authorization server, with other members in place of its own.
fn metadata(seen: &Seen, other: &Value) -> Value {
    let host = seen.host();
    let mut metadata = json!({
        "issuer": host,
        "authorization_endpoint": format!("{host}/authorize"),
        "token_endpoint": format!("{host}/token"),
        "registration_endpoint": format!("{host}/register"),
        "code_challenge_methods_supported": ["S256"],
    });
    for (name, value) in other.as_object().unwrap() {
        metadata[name] = value.clone();
    }
    metadata
}

/// An MCP server that is its own authorization server, as it should be.
pub(super) fn honest(seen: &Seen) -> Response<Body> {
    let host = seen.host();
    match seen.path.as_str() {
        "/mcp" if !is_authorized(seen) => {
            json_response(401, &[("www-authenticate", "Bearer scope=\"read\"")], &json!({}))
        }
        "/mcp" => {
            let mut result = discovered(json!({ "tools": {} }));
            result["content"] = json!([]);
            seen.reply(&result)
        }
        "/.well-known/oauth-protected-resource/mcp" => json_response(
            200,
            &[],
            &json!({ "resource": format!("{host}/mcp"), "authorization_servers": [host] }),
        ),
        "/.well-known/oauth-authorization-server" => json_response(200, &[], &metadata(seen, &json!({}))),
        "/register" => json_response(201, &[], &json!({ "client_id": "me" })),
        "/token" => json_response(200, &[], &json!({ "access_token": "good", "token_type": "Bearer" })),
        _ => json_response(404, &[], &json!({})),
    }
}

/// A server and what it has seen.
struct Site {
    url: String,
    seen: Log,
}

impl Site {
    /// Answers as [`honest`] does, except for what `answer` returns.
    async fn start(answer: impl Fn(&Seen) -> Option<Response<Body>> + Clone + Send + Sync + 'static) -> Self {
        let (url, seen) = serve(move |seen| answer(seen).unwrap_or_else(|| honest(seen))).await;
        Self { url, seen }
    }

    fn host(&self) -> &str {
        self.url.trim_end_matches("/mcp")
    }

    fn to(&self, path: &str) -> Vec<Seen> {
        self.seen.to(path)
    }

    fn methods(&self) -> Vec<String> {
        let messages = self.to("/mcp");
        messages.iter().filter_map(|seen| seen.message["method"].as_str().map(str::to_owned)).collect()
    }
}

/// A user whose every login is counted, and ends as `login` says.
fn user(login: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> (OAuth, Arc<AtomicUsize>) {
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    let oauth = OAuth::authorization_code("http://localhost:1/callback", move |url| {
        counted.fetch_add(1, Ordering::SeqCst);
        let answer = login(&url);
        async move { answer }
    });
    (oauth, visits)
}

/// What a user who agrees is redirected to.
#[expect(clippy::unnecessary_wraps, reason = "it is what a login returns")]
fn agree(url: &str) -> Result<String, String> {
    let state = url.split('&').find_map(|part| part.strip_prefix("state=")).unwrap().to_owned();
    Ok(format!("http://localhost:1/callback?code=c&state={state}"))
}

fn decline(_url: &str) -> Result<String, String> {
    Err("the user closed the window".to_owned())
}

async fn connect(oauth: OAuth, url: &str) -> Result<Client, Error> {
    within(Client::builder().oauth(oauth).connect(url)).await
}

#[tokio::test]
async fn a_login_that_fails_is_reported_once_as_such() {
    let refuse = |url: &str| agree(url).map(|url| url.replace("code=c", "error=access_denied"));
    let answer_another = |_: &str| Ok("http://localhost:1/callback?code=c&state=other".to_owned());
    for (login, why) in [
        (decline as fn(&str) -> Result<String, String>, "closed the window"),
        (refuse, "access_denied"),
        (answer_another, "another request"),
    ] {
        let site = Site::start(|_| None).await;
        let (oauth, visits) = user(login);
        let error = connect(oauth, &site.url).await.unwrap_err();
        assert!(matches!(error, Error::Authorization { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!((visits.load(Ordering::SeqCst), site.to("/register").len()), (1, 1), "{why}");
        assert_eq!(site.to("/token").len(), 0, "{why}");
        assert_eq!(site.methods(), ["server/discover"], "no other handshake is tried");
    }
}

#[tokio::test]
async fn an_authorization_server_that_fails_is_reported_once_as_such() {
    for (path, status) in [("/register", 400), ("/token", 400), ("/token", 503)] {
        let site =
            Site::start(move |seen| (seen.path == path).then(|| json_response(status, &[], &json!({}))))
                .await;
        let (oauth, visits) = user(agree);
        let error = connect(oauth, &site.url).await.unwrap_err();
        assert!(matches!(error, Error::Authorization { .. }), "{path}: {error:?}");
        assert!(visits.load(Ordering::SeqCst) <= 1, "{path}");
        assert_eq!((site.to("/register").len(), site.to(path).len()), (1, 1), "{path}");
        assert_eq!(site.methods(), ["server/discover"], "{path}");
    }
}

#[tokio::test]
async fn a_token_that_is_refused_at_once_leads_to_no_second_login() {
    let site = Site::start(|seen| {
        (seen.path == "/mcp").then(|| json_response(401, &[("www-authenticate", "Bearer")], &json!({})))
    })
    .await;
    let (oauth, visits) = user(agree);
    let error = connect(oauth, &site.url).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { .. }), "{error:?}");
    assert_eq!((visits.load(Ordering::SeqCst), site.methods().len()), (1, 2));
}

#[tokio::test]
async fn scopes_that_are_missing_again_after_a_login_lead_to_no_other_login() {
    let site = Site::start(|seen| {
        let challenge = [("www-authenticate", "Bearer error=\"insufficient_scope\", scope=\"write\"")];
        let is_call = seen.message["method"] == "tools/call";
        (is_call && is_authorized(seen)).then(|| json_response(403, &challenge, &json!({})))
    })
    .await;
    let (oauth, visits) = user(agree);
    let client = connect(oauth, &site.url).await.unwrap();
    let error = client.call("t", json!({})).await.unwrap_err();
    assert!(matches!(&error, Error::Forbidden { scopes, .. } if scopes == &["write"]), "{error:?}");
    assert_eq!(visits.load(Ordering::SeqCst), 2, "one to connect, one for more scopes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_need_one_login_log_the_user_in_once() {
    const CALLS: usize = 8;
    let lacks = [("www-authenticate", "Bearer error=\"insufficient_scope\", scope=\"write\"")];
    let ended = [("www-authenticate", "Bearer")];
    // a scope that is missing, and a token that has ended; the new token is accepted, or refused as well
    for (status, challenge, is_accepted) in
        [(403, lacks, true), (403, lacks, false), (401, ended, true), (401, ended, false)]
    {
        let (logins, calls) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Barrier::new(CALLS)));
        let counted = logins.clone();
        let (url, _) = serve_async(move |seen| {
            let (seen, logins, calls) = (seen.clone(), counted.clone(), calls.clone());
            Box::pin(async move {
                let first = seen.header("authorization") == Some("Bearer token1");
                let has_token = seen.header("authorization").is_some();
                match seen.path.as_str() {
                    "/token" => {
                        let token = format!("token{}", logins.fetch_add(1, Ordering::SeqCst) + 1);
                        json_response(200, &[], &json!({ "access_token": token, "token_type": "Bearer" }))
                    }
                    "/mcp" if seen.message["method"] == "tools/call" => {
                        if first {
                            // all of them are refused with the first token
                            calls.wait().await;
                        }
                        if first || !is_accepted {
                            return json_response(status, &challenge, &json!({}));
                        }
                        seen.reply(&json!({ "content": [] }))
                    }
                    "/mcp" if has_token => seen.reply(&discovered(json!({ "tools": {} }))),
                    _ => honest(&seen),
                }
            })
        })
        .await;
        let (oauth, visits) = user(agree);
        let client = connect(oauth, &url).await.unwrap();
        let calls: Vec<_> =
            (0..CALLS).map(|_| tokio::spawn(client.call("t", json!({})).into_future())).collect();
        for call in calls {
            let called = within(call).await.unwrap();
            assert_eq!(called.is_ok(), is_accepted, "{status}: {called:?}");
        }
        let visits = visits.load(Ordering::SeqCst);
        assert_eq!(visits, 2, "{status} {is_accepted}: one to connect, one for all of the calls");
    }
}

#[tokio::test]
async fn a_stream_of_changes_that_ends_with_its_token_is_opened_again_with_a_renewed_one() {
    let (builder, seen) = super::keeping_changes();
    let streams = Arc::new(AtomicUsize::new(0));
    let site = Site::start(move |seen| {
        let token = seen.header("authorization").unwrap_or_default();
        let meta = json!({ SUBSCRIPTION: seen.message["id"] });
        let acknowledged = notification(
            "notifications/subscriptions/acknowledged",
            json!({ "_meta": meta, "notifications": { "toolsListChanged": true } }),
        );
        let is_listening = seen.message["method"] == "subscriptions/listen";
        let is_first = is_listening && streams.fetch_add(1, Ordering::SeqCst) == 0;
        Some(match (seen.path.as_str(), token) {
            ("/token", _) => {
                let token = if seen.body.contains("grant_type=refresh_token") { "new" } else { "old" };
                let reply = json!({ "access_token": token, "token_type": "Bearer", "refresh_token": "r" });
                json_response(200, &[], &reply)
            }
            ("/mcp", "Bearer old") if is_first => {
                let end = response(&seen.message, json!({}));
                event_stream(format!("data: {acknowledged}\n\ndata: {end}\n\n"))
            }
            ("/mcp", "Bearer new") if is_listening => {
                let changed = notification("notifications/tools/list_changed", json!({ "_meta": meta }));
                event_stream(format!("data: {acknowledged}\n\ndata: {changed}\n\n"))
            }
            ("/mcp", "Bearer old") if seen.message["method"] == "server/discover" => {
                seen.reply(&discovered(json!({ "tools": { "listChanged": true } })))
            }
            _ => return None,
        })
    })
    .await;
    let (oauth, visits) = user(agree);
    let _client = within(builder.oauth(oauth).connect(&*site.url)).await.unwrap();
    until(|| seen.lock().unwrap().len() >= 2).await;
    // the change comes with the acknowledgement
    for event in [ChangeEvent::Restored, ChangeEvent::Tools] {
        assert!(seen.lock().unwrap()[..2].contains(&event), "{seen:?}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_for_a_login_that_fails_fail_with_it_and_a_registration_outlives_it() {
    let ends = Arc::new(AtomicUsize::new(0));
    let token = ends.clone();
    let site = Site::start(move |seen| {
        let ended = token.load(Ordering::SeqCst) == 1 && seen.path == "/mcp";
        ended.then(|| json_response(401, &[("www-authenticate", "Bearer")], &json!({})))
    })
    .await;
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    let oauth = OAuth::authorization_code("http://localhost:1/callback", move |url| {
        let visit = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if visit == 1 {
                tokio::time::sleep(Duration::from_millis(300)).await;
                return decline(&url);
            }
            agree(&url)
        }
    });
    let client = connect(oauth, &site.url).await.unwrap();
    ends.store(1, Ordering::SeqCst);
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(client.call("t", json!({})).into_future())).collect();
    for call in calls {
        let error = within(call).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Authorization { .. }), "{error:?}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 2, "one to connect, one for all of the calls");
    // the next call of the program is worth another
    ends.store(0, Ordering::SeqCst);
    within(client.call("t", json!({})).into_future()).await.unwrap();
    assert_eq!((visits.load(Ordering::SeqCst), site.to("/register").len()), (3, 1));
}

#[tokio::test]
async fn a_registration_outlives_a_login_that_fails_and_the_program() {
    let site = Site::start(|_| None).await;
    let store = KeptTokens::default();
    for (login, registrations) in [(decline as fn(&str) -> Result<String, String>, 1), (agree, 1), (agree, 1)]
    {
        let (oauth, _) = user(login);
        // another process with the same store
        let connected = connect(oauth.store(store.clone()), &site.url).await;
        assert_eq!(connected.is_ok(), login as usize == agree as fn(&str) -> Result<String, String> as usize);
        assert_eq!(site.to("/register").len(), registrations);
    }
    // it was made for one redirect
    let site = Site::start(|_| None).await;
    let store = KeptTokens::default();
    for (redirect, registrations) in [("http://localhost:1/callback", 1), ("http://localhost:2/callback", 2)]
    {
        let oauth = OAuth::authorization_code(redirect, |_| async { Err("closed".to_owned()) });
        connect(oauth.store(store.clone()), &site.url).await.unwrap_err();
        assert_eq!(site.to("/register").len(), registrations);
    }
}

/// A store that outlives its client; clones are the same store.
#[derive(Clone, Default)]
struct KeptTokens(Arc<Mutex<HashMap<String, Value>>>);

impl TokenStore for KeptTokens {
    fn load(&self, server: &str) -> std::io::Result<Option<Value>> {
        Ok(self.0.lock().unwrap().get(server).cloned())
    }

    fn save(&self, server: &str, kept: &Value) -> std::io::Result<()> {
        self.0.lock().unwrap().insert(server.to_owned(), kept.clone());
        Ok(())
    }
}

fn store_of(store: &KeptTokens, url: &str) -> String {
    store.load(url).unwrap().unwrap_or_default().to_string()
}

#[tokio::test]
async fn an_answer_names_the_authorization_server_where_that_promises_to() {
    for (issuer, is_accepted) in [(None, false), (Some("http://other.example"), false), (Some(""), true)] {
        let site = Site::start(|seen| {
            let promise = json!({ "authorization_response_iss_parameter_supported": true });
            (seen.path == "/.well-known/oauth-authorization-server")
                .then(|| json_response(200, &[], &metadata(seen, &promise)))
        })
        .await;
        let issuer = issuer.map(|issuer| if issuer.is_empty() { site.host() } else { issuer }.to_owned());
        let shown = issuer.clone();
        let answer = move |url: &str| {
            let answer = agree(url)?;
            Ok(issuer.as_ref().map_or(answer.clone(), |issuer| format!("{answer}&iss={issuer}")))
        };
        let connected = connect(user(answer).0, &site.url).await;
        assert_eq!(connected.is_ok(), is_accepted, "{shown:?}: {:?}", connected.err());
        assert_eq!(site.to("/token").len(), usize::from(is_accepted), "{shown:?}");
    }
}

#[tokio::test]
async fn errors_repeat_no_text_of_an_authorization_server() {
    const SECRET: &str = "tok_51H8secret";
    for path in ["/register", "/token"] {
        let site = Site::start(move |seen| {
            let body = json!({ "error": SECRET, "error_description": SECRET, "access_token": SECRET });
            (seen.path == path).then(|| json_response(400, &[], &body))
        })
        .await;
        let error = connect(user(agree).0, &site.url).await.unwrap_err();
        let shown = format!("{error} {error:?} {error:#?}");
        assert!(!shown.contains(SECRET), "{path}: {shown}");
    }
    let site = Site::start(|_| None).await;
    let refuse = |url: &str| agree(url).map(|url| url.replace("code=c", &format!("error={SECRET}")));
    let error = connect(user(refuse).0, &site.url).await.unwrap_err();
    assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
}

#[tokio::test]
async fn token_answers_that_other_servers_give_are_read_or_reported_as_what_they_are() {
    let loose = json!({ "access_token": "good", "expires_in": "3600", "scope": ["read", "write"], "token_type": null });
    let site =
        Site::start(move |seen| (seen.path == "/token").then(|| json_response(200, &[], &loose))).await;
    let store = KeptTokens::default();
    let client = connect(user(agree).0.store(store.clone()), &site.url).await.unwrap();
    within(client.call("t", json!({})).into_future()).await.unwrap();
    let kept: Value = serde_json::from_str(&store_of(&store, &site.url)).unwrap();
    assert!(kept["renew_at"].is_u64(), "{kept}");
    assert!(kept["scopes"].as_array().unwrap().contains(&json!("write")), "{kept}");

    let code = |url: &str| agree(url).map(|url| url.replace("code=c", "code=a-secret-code"));
    for status in [200, 400, 401, 503] {
        let site = Site::start(move |seen| {
            let body = json!({ "error": "invalid_grant", "error_description": "the code a-secret-code has\u{1b}[2J expired" });
            (seen.path == "/token").then(|| json_response(status, &[], &body))
        })
        .await;
        let error = connect(user(code).0, &site.url).await.unwrap_err().to_string();
        let expected = if status == 503 { "HTTP status 503".to_owned() } else { format!("(HTTP {status})") };
        let expected = format!("{expected}: invalid_grant: the code *** has");
        assert!(error.contains(&expected) && !error.contains('\u{1b}'), "{error}");
    }
}

/// The identity provider of an enterprise gets the user's token and the client's secret, and both sides of the protocol learn
/// of the extension.
#[tokio::test]
async fn the_token_for_an_identity_provider_is_a_functions_and_its_client_may_have_a_secret() {
    for (is_refresh_token, secret) in [(false, None), (true, Some("idp-secret"))] {
        let site = Site::start(|seen| {
            (seen.path == "/idp")
                .then(|| json_response(200, &[], &json!({ "access_token": "grant", "token_type": "N_A" })))
        })
        .await;
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let token = move || {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok(format!("users-{number}")) }
        };
        let endpoint = format!("{}/idp", site.host());
        let provider = match is_refresh_token {
            false => IdentityProvider::with_id_token(endpoint, "me-there", token),
            true => IdentityProvider::with_refresh_token(endpoint, "me-there", token),
        };
        let provider = secret.into_iter().fold(provider, IdentityProvider::client_secret);
        let oauth = OAuth::enterprise(provider).client("me", None).any_issuer();
        let client = connect(oauth, &site.url).await.unwrap();
        within(client.forget_authorization()).await.unwrap();
        within(client.call("t", json!({})).into_future()).await.unwrap();

        let requests = site.to("/idp");
        assert_eq!(requests.len(), 2);
        assert!(requests[1].body.contains("subject_token=users-1"), "{}", requests[1].body);
        let kind = if is_refresh_token { "token-type%3Arefresh_token" } else { "token-type%3Aid_token" };
        assert!(requests[1].body.contains(kind), "{}", requests[1].body);
        assert_eq!(requests[1].headers.contains_key("authorization"), secret.is_some());
        assert!(site.to("/token")[1].body.contains("assertion=grant"));
        let asked = site.to("/mcp").pop().unwrap();
        let declared = &asked.message["params"]["_meta"];
        let declared = &declared["io.modelcontextprotocol/clientCapabilities"]["extensions"];
        assert_eq!(
            declared["io.modelcontextprotocol/enterprise-managed-authorization"],
            json!({}),
            "{declared}"
        );
    }
}

/// RFC 9728, section 3.1.
#[tokio::test]
async fn the_query_and_the_slash_of_a_resource_are_in_the_address_of_its_metadata() {
    let site = Site::start(|seen| match seen.path.as_str() {
        "/mcp/" => Some(honest(&Seen { path: "/mcp".to_owned(), ..seen.clone() })),
        "/.well-known/oauth-protected-resource/mcp/" => {
            let resource = format!("{}/mcp/?tenant=a", seen.host());
            Some(json_response(
                200,
                &[],
                &json!({ "resource": resource, "authorization_servers": [seen.host()] }),
            ))
        }
        _ => None,
    })
    .await;
    let client = connect(user(agree).0, &format!("{}/?tenant=a", site.url)).await.unwrap();
    within(client.call("t", json!({})).into_future()).await.unwrap();
    assert_eq!(site.to("/.well-known/oauth-protected-resource/mcp/")[0].query.as_deref(), Some("tenant=a"));
    assert!(site.to("/.well-known/oauth-protected-resource/mcp").is_empty());
}

#[tokio::test]
async fn a_user_has_a_time_of_their_own_for_a_login() {
    let site = Site::start(|_| None).await;
    let slow = |url: String| async move {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        agree(&url)
    };
    let oauth = OAuth::authorization_code("http://localhost:1/callback", slow);
    let builder = Client::builder().oauth(oauth).timeout(Duration::from_millis(1000));
    let client = within(builder.connect(&site.url)).await.unwrap();
    within(client.call("t", json!({})).into_future()).await.unwrap();

    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    let oauth = OAuth::authorization_code("http://localhost:1/callback", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::pending()
    });
    let error = connect(oauth.login_timeout(Duration::from_millis(50)), &site.url).await.unwrap_err();
    assert!(matches!(error, Error::Authorization { .. }), "{error:?}");
    assert!(error.to_string().contains("did not answer in time"), "{error}");
    assert_eq!(visits.load(Ordering::SeqCst), 1);
}

/// Addresses that a server on this machine's loopback must not name, and what refuses them.
const FOREIGN: [(&str, &str); 12] = [
    ("https://169.254.169.254/latest", "may name"),
    ("http://169.254.169.254/latest", "https"),
    ("https://10.0.0.1/token", "may name"),
    ("https://10.1/token", "may name"),
    ("https://0xa000001/token", "may name"),
    ("https://167772161/token", "may name"),
    ("https://192.168.0.1./token", "may name"),
    ("https://[::ffff:10.0.0.1]/token", "may name"),
    ("https://[fd00::1]/token", "may name"),
    ("http://id.example.com/token", "https"),
    ("https://ada:secret@id.example.com/token", "credentials"),
    ("file:///etc/passwd", "https"),
];

#[tokio::test]
async fn addresses_in_metadata_are_of_the_servers_kind_of_network_or_public() {
    for member in ["token_endpoint", "registration_endpoint", "authorization_endpoint", "issuer", "resource"]
    {
        for (url, why) in FOREIGN {
            let site = Site::start(move |seen| match (member, seen.path.as_str()) {
                // where the metadata is said to be
                ("resource", "/mcp") => {
                    let challenge = format!("Bearer resource_metadata=\"{url}\"");
                    Some(json_response(401, &[("www-authenticate", &challenge)], &json!({})))
                }
                ("issuer", "/.well-known/oauth-protected-resource/mcp") => {
                    let resource = format!("{}/mcp", seen.host());
                    Some(json_response(
                        200,
                        &[],
                        &json!({ "resource": resource, "authorization_servers": [url] }),
                    ))
                }
                (member, "/.well-known/oauth-authorization-server") if member.ends_with("endpoint") => {
                    Some(json_response(200, &[], &metadata(seen, &json!({ member: url }))))
                }
                _ => None,
            })
            .await;
            let (oauth, visits) = user(agree);
            let error = connect(oauth, &site.url).await.unwrap_err();
            assert!(matches!(error, Error::Authorization { .. }), "{member} {url}: {error:?}");
            assert!(error.to_string().contains(why), "{member} {url}: {error}");
            let visited = usize::from(member == "token_endpoint");
            assert_eq!(visits.load(Ordering::SeqCst), visited, "{member} {url}");
        }
    }
}

/// A listener on this machine that counts connections.
async fn trap() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (format!("http://{address}"), connections)
}

#[tokio::test]
async fn redirects_of_documents_and_token_endpoints_are_not_followed() {
    let (trap, connections) = trap().await;
    for path in
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/token"]
    {
        for status in [302, 307] {
            let location = format!("{trap}/stolen");
            let site = Site::start(move |seen| {
                (seen.path == path).then(|| json_response(status, &[("location", &location)], &json!({})))
            })
            .await;
            let (oauth, _) = user(agree);
            assert!(connect(oauth, &site.url).await.is_err(), "{path}");
        }
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

/// The metadata of the protected resource in [`honest`].
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

#[tokio::test]
async fn a_server_is_its_own_authorization_server_only_where_it_has_no_metadata() {
    // the server that is its own has nothing but the addresses of 2025-03-26
    let bare = |seen: &Seen| match seen.path.as_str() {
        "/.well-known/oauth-authorization-server" => Some(json_response(404, &[], &json!({}))),
        _ => None,
    };
    for (status, is_absent) in
        [(404, true), (405, true), (401, true), (302, false), (429, false), (500, false), (503, false)]
    {
        let site = Site::start(move |seen| {
            bare(seen)
                .or_else(|| (seen.path == RESOURCE_METADATA).then(|| json_response(status, &[], &json!({}))))
        })
        .await;
        let (oauth, visits) = user(agree);
        let connected = connect(oauth, &site.url).await;
        assert_eq!(connected.is_ok(), is_absent, "{status}: {connected:?}");
        assert_eq!(visits.load(Ordering::SeqCst), usize::from(is_absent), "{status}");
    }
    // the server's own metadata is there, but not now
    let site = Site::start(|seen| match seen.path.as_str() {
        RESOURCE_METADATA => Some(json_response(404, &[], &json!({}))),
        "/.well-known/oauth-authorization-server" => Some(json_response(503, &[], &json!({}))),
        _ => None,
    })
    .await;
    let (oauth, visits) = user(agree);
    assert!(connect(oauth, &site.url).await.is_err());
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    // a document that is none, and one that a challenge names
    for (named, body, status) in [(false, "{\"resource\":", 200), (true, "{}", 404), (true, "<html>", 200)] {
        let site = Site::start(move |seen| {
            let is_refused = seen.path == "/mcp" && !is_authorized(seen);
            if named && is_refused {
                let challenge = format!("Bearer resource_metadata=\"{}/about\"", seen.host());
                return Some(json_response(401, &[("www-authenticate", &challenge)], &json!({})));
            }
            let place = if named { "/about" } else { RESOURCE_METADATA };
            (seen.path == place).then(|| respond(status, &[], body))
        })
        .await;
        let (oauth, visits) = user(agree);
        let error = connect(oauth, &site.url).await.unwrap_err();
        assert!(matches!(error, Error::Authorization { .. }), "{body}: {error:?}");
        assert!(error.to_string().contains("metadata"), "{error}");
        assert_eq!(visits.load(Ordering::SeqCst), 0, "{body}");
    }
}

#[tokio::test]
async fn metadata_that_cannot_be_fetched_costs_no_registration_and_no_token() {
    let store = KeptTokens::default();
    let (refuses, fails) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (refused, failed) = (refuses.clone(), fails.clone());
    let site = Site::start(move |seen| match seen.path.as_str() {
        // honest but elsewhere: its issuer has a path
        "/mcp" if refused.load(Ordering::SeqCst) > 0 => {
            Some(json_response(401, &[("www-authenticate", "Bearer")], &json!({})))
        }
        RESOURCE_METADATA if failed.load(Ordering::SeqCst) > 0 => Some(json_response(503, &[], &json!({}))),
        RESOURCE_METADATA => {
            let host = seen.host();
            Some(json_response(200, &[], &json!({ "resource": format!("{host}/mcp"), "authorization_servers": [format!("{host}/as")] })))
        }
        "/.well-known/oauth-authorization-server/as" => {
            Some(json_response(200, &[], &metadata(seen, &json!({ "issuer": format!("{}/as", seen.host()) }))))
        }
        "/token" => Some(json_response(200, &[], &json!({ "access_token": "good", "token_type": "Bearer", "refresh_token": "r" }))),
        _ => None,
    })
    .await;
    let (oauth, visits) = user(agree);
    let client = connect(oauth.store(store.clone()), &site.url).await.unwrap();
    refuses.store(1, Ordering::SeqCst);
    fails.store(1, Ordering::SeqCst);
    let before = store_of(&store, &site.url);
    assert!(before.contains("\"r\""), "{before}");
    let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
    assert!(matches!(error, Error::Authorization { .. }), "{error:?}");
    assert_eq!(store_of(&store, &site.url), before);
    fails.store(0, Ordering::SeqCst);
    refuses.store(0, Ordering::SeqCst);
    within(client.call("t", json!({})).into_future()).await.unwrap();
    assert_eq!((visits.load(Ordering::SeqCst), site.to("/register").len()), (1, 1));
}

#[tokio::test]
async fn what_is_kept_for_one_user_is_not_shown_to_another() {
    use mcp_runtime::client::TokenStore as _;
    let ada_is_out = Arc::new(AtomicUsize::new(0));
    let is_out = ada_is_out.clone();
    let site = Site::start(move |seen| {
        let of = |user: &str| {
            seen.headers.get("authorization").is_some_and(|sent| *sent == *format!("Bearer {user}"))
        };
        match seen.path.as_str() {
            "/token" => {
                let is_out = is_out.load(Ordering::SeqCst) == 1;
                if is_out && seen.body.contains("grant_type=refresh_token") {
                    return Some(json_response(400, &[], &json!({ "error": "invalid_grant" })));
                }
                let user = if is_out { "ben" } else { "ada" };
                let refresh_token = format!("of-{user}");
                let token =
                    json!({ "access_token": user, "token_type": "Bearer", "refresh_token": refresh_token });
                Some(json_response(200, &[], &token))
            }
            "/mcp" if of("ben") || (of("ada") && is_out.load(Ordering::SeqCst) == 0) => {
                let user = if of("ben") { "ben" } else { "ada" };
                let result = match seen.message["method"].as_str() {
                    Some("resources/read") => {
                        json!({ "resultType": "complete", "ttlMs": 60_000, "cacheScope": "private",
                        "contents": [{ "uri": "x://y", "text": user }] })
                    }
                    Some("tools/call") => json!({ "resultType": "complete", "content": [] }),
                    _ => discovered(json!({ "tools": {}, "resources": {} })),
                };
                Some(seen.reply(&result))
            }
            "/mcp" => Some(json_response(401, &[("www-authenticate", "Bearer")], &json!({}))),
            _ => None,
        }
    })
    .await;
    let store = KeptTokens::default();
    let (oauth, visits) = user(agree);
    let client = connect(oauth.store(store.clone()), &site.url).await.unwrap();
    let read = async || within(client.read("x://y").into_future()).await.unwrap().text().unwrap();
    assert_eq!((read().await, read().await), ("ada".to_owned(), "ada".to_owned()));
    assert_eq!(site.methods().iter().filter(|method| *method == "resources/read").count(), 1);
    // another process, in which someone else has logged in
    let mut kept = store.load(&site.url).unwrap().unwrap();
    (kept["access_token"], kept["refresh_token"]) = ("ben".into(), "of-ben".into());
    store.save(&site.url, &kept).unwrap();
    ada_is_out.store(1, Ordering::SeqCst);
    within(client.call("t", json!({})).into_future()).await.unwrap();
    assert_eq!(read().await, "ben");
    assert_eq!(visits.load(Ordering::SeqCst), 1);
    // nor to the next one, after the authorization was forgotten
    ada_is_out.store(0, Ordering::SeqCst);
    within(client.forget_authorization()).await.unwrap();
    assert!(!store_of(&store, &site.url).contains("\"ben\""));
    assert_eq!(read().await, "ada");
    assert_eq!((visits.load(Ordering::SeqCst), site.to("/register").len()), (2, 1));
    // nor to one who logs in because the tokens of the one before are refused
    ada_is_out.store(1, Ordering::SeqCst);
    within(client.call("t", json!({})).into_future()).await.unwrap();
    assert_eq!((read().await, visits.load(Ordering::SeqCst)), ("ben".to_owned(), 3));
}

#[tokio::test]
async fn a_client_registers_itself_by_the_kind_of_its_redirect() {
    for (redirect, kind) in [
        ("http://localhost:1/callback", "native"),
        ("https://localhost:1/callback", "native"),
        ("http://127.0.0.1/callback", "native"),
        ("http://[::1]:5/callback", "native"),
        ("com.example.app:/callback", "native"),
        ("https://app.example.com/callback", "web"),
    ] {
        let site = Site::start(|_| None).await;
        let oauth = OAuth::authorization_code(redirect, |_| async { Err("closed".to_owned()) });
        assert!(connect(oauth, &site.url).await.is_err());
        assert_eq!(site.to("/register")[0].message["application_type"], kind, "{redirect}");
    }
}

#[tokio::test]
async fn redirects_and_documents_of_clients_are_checked_before_anything_is_sent() {
    let redirect = |uri: &str| OAuth::authorization_code(uri, |_| async { Err("closed".to_owned()) });
    let document = |url: &str| redirect("http://localhost:1/callback").client_metadata(url);
    let site = Site::start(|_| None).await;
    for oauth in [
        redirect("callback"),
        redirect("https://app.example.com/callback#part"),
        redirect("http://app.example.com/callback"),
        document("client.json"),
        document("http://app.example.com/client.json"),
        document("https://app.example.com"),
        document("https://app.example.com/client.json#part"),
        document("https://me:secret@app.example.com/client.json"),
        document("https://app.example.com/a/../client.json"),
        // no user logs in
        OAuth::client_credentials("me", "secret").any_issuer().open_browser(),
    ] {
        let error = connect(oauth, &site.url).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert_eq!(site.seen.all().len(), 0);
}

#[tokio::test]
async fn the_resource_of_a_server_without_metadata_has_no_credentials_and_no_fragment() {
    let site =
        Site::start(|seen| (seen.path == RESOURCE_METADATA).then(|| json_response(404, &[], &json!({}))))
            .await;
    let (oauth, _) = user(agree);
    let url = site.url.replace("http://", "http://ada:hidden@") + "#part";
    connect(oauth, &url).await.unwrap();
    let asked = &site.to("/token")[0].body;
    let resource = site.url.replace(':', "%3A").replace('/', "%2F");
    assert!(
        asked.contains(&format!("resource={resource}&")) || asked.ends_with(&format!("resource={resource}")),
        "{asked}"
    );
}

#[tokio::test]
async fn a_token_of_another_type_is_not_used() {
    for (kind, is_used) in [("Bearer", true), ("bearer", true), ("mac", false), ("DPoP", false)] {
        let site = Site::start(move |seen| {
            (seen.path == "/token")
                .then(|| json_response(200, &[], &json!({ "access_token": "good", "token_type": kind })))
        })
        .await;
        let (oauth, _) = user(agree);
        let connected = connect(oauth, &site.url).await;
        assert_eq!(connected.is_ok(), is_used, "{kind}: {connected:?}");
        if let Err(error) = connected {
            assert!(error.to_string().contains("type"), "{error}");
            assert!(site.to("/mcp").iter().all(|seen| !seen.headers.contains_key("authorization")));
        }
    }
}

#[tokio::test]
async fn documents_and_scopes_that_are_too_large_are_refused() {
    let long = "x".repeat(1 << 20);
    let scopes: Vec<String> = (0..2000).map(|number| format!("scope{number}")).collect();
    for (path, member, value) in [
        ("/.well-known/oauth-protected-resource/mcp", "padding", json!(long)),
        ("/.well-known/oauth-protected-resource/mcp", "padding in chunks", json!(long)),
        ("/.well-known/oauth-protected-resource/mcp", "scopes_supported", json!(scopes)),
        ("/.well-known/oauth-authorization-server", "padding", json!(long)),
        ("/register", "padding", json!(long)),
        ("/token", "padding", json!(long)),
    ] {
        let site = Site::start(move |seen| {
            if member == "scopes_supported" && seen.path == "/mcp" {
                return Some(json_response(401, &[("www-authenticate", "Bearer")], &json!({})));
            }
            if seen.path != path {
                return None;
            }
            let host = seen.host();
            let mut document = match path {
                "/.well-known/oauth-authorization-server" => metadata(seen, &json!({})),
                "/token" => json!({ "access_token": "good" }),
                "/register" => json!({ "client_id": "me" }),
                _ => json!({ "resource": format!("{host}/mcp"), "authorization_servers": [host] }),
            };
            document[member] = value.clone();
            let response = json_response(200, &[], &document);
            // without a length
            let in_chunks = |body: Body| Body::from_stream(body.into_data_stream());
            Some(if member == "padding in chunks" { response.map(in_chunks) } else { response })
        })
        .await;
        let (oauth, visits) = user(agree);
        let error = connect(oauth, &site.url).await.unwrap_err();
        let Error::Authorization { cause } = &error else { panic!("{path}: {error:?}") };
        match member {
            "scopes_supported" => assert!(error.to_string().contains("scopes of more than"), "{error}"),
            _ => assert!(matches!(**cause, Error::TooLarge { .. }), "{path} {member}: {error:?}"),
        }
        assert!(error.to_string().len() < 1000);
        assert_eq!(visits.load(Ordering::SeqCst), usize::from(path == "/token"), "{path} {member}");
    }
    // in a challenge
    let scopes = scopes.join(" ");
    let site = Site::start(move |seen| {
        let challenge = format!("Bearer scope=\"{scopes}\"");
        (seen.path == "/mcp").then(|| json_response(401, &[("www-authenticate", &challenge)], &json!({})))
    })
    .await;
    let (oauth, visits) = user(agree);
    let error = connect(oauth, &site.url).await.unwrap_err();
    assert!(error.to_string().contains("scopes of more than"), "{error}");
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_secret_goes_to_the_authorization_server_that_the_program_names() {
    let has_secret = |site: &Site| {
        site.seen.all().iter().any(|seen| {
            let sent = format!("{:?} {}", seen.headers, seen.body);
            // `me:top-secret`, and the assertion of a platform
            sent.contains("top-secret") || sent.contains("bWU6dG9wLXNlY3JldA")
        })
    };
    let secrets = || {
        [
            OAuth::client_credentials("me", "top-secret"),
            OAuth::headless("http://localhost:1/callback").client("me", Some("top-secret")),
            OAuth::workload_identity("me", || async { Ok("top-secret".to_owned()) }),
        ]
    };
    // a server that names itself
    let evil = Site::start(|_| None).await;
    for oauth in secrets() {
        let error = connect(oauth, &evil.url).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
        assert!(error.to_string().contains(".issuer("), "{error}");
    }
    assert_eq!(evil.seen.all().len(), 0, "refused before anything is sent");
    let own = Site::start(|_| None).await;
    for oauth in secrets() {
        let error = connect(oauth.issuer(own.host()), &evil.url).await.unwrap_err();
        assert!(matches!(error, Error::Authorization { .. }), "{error:?}");
    }
    assert!(!has_secret(&evil));

    // a server that says nothing of authorization servers, and whose own metadata claims to be of the right one
    let claimed = own.host().to_owned();
    let liar = Site::start(move |seen| match seen.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => Some(json_response(404, &[], &json!({}))),
        "/.well-known/oauth-authorization-server" => {
            Some(json_response(200, &[], &metadata(seen, &json!({ "issuer": claimed }))))
        }
        _ => None,
    })
    .await;
    connect(OAuth::client_credentials("me", "top-secret").issuer(own.host()), &liar.url).await.unwrap();
    assert!(has_secret(&own) && !has_secret(&liar));
    let (oauth, visits) = user(agree);
    let error = connect(oauth, &liar.url).await.unwrap_err();
    assert!(error.to_string().contains("names another issuer"), "{error}");
    assert_eq!(visits.load(Ordering::SeqCst), 0);

    // the right one, and any
    for oauth in [
        OAuth::client_credentials("me", "top-secret").issuer(evil.host()),
        OAuth::client_credentials("me", "other").registered(evil.host(), "me", Some("top-secret")),
        OAuth::client_credentials("me", "top-secret").any_issuer(),
    ] {
        evil.seen.clear();
        connect(oauth, &evil.url).await.unwrap();
        assert!(has_secret(&evil));
    }
}

/// A server that a proxy reaches is not known to be on this machine, so it cannot name what is.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_on_this_machine_names_no_address_of_it() {
    let (trap, connections) = trap().await;
    let ports = [
        trap.clone(),
        trap.replace("http:", "https:"),
        trap.replace("http://127.0.0.1", "https://localhost"),
    ];
    for named in ports {
        let document = format!("{named}/metadata");
        let proxy = Site::start(move |seen| {
            let challenge = format!("Bearer resource_metadata=\"{document}\"");
            (seen.path == "/mcp").then(|| json_response(401, &[("www-authenticate", &challenge)], &json!({})))
        })
        .await;
        let mut command = super::programs::program("login");
        command.env("MCP_TESTS_URL", "http://shop.invalid/mcp");
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
            command.env(name, proxy.host());
        }
        command.env_remove("NO_PROXY").env_remove("no_proxy");
        let limit = crate::client::PATIENCE;
        let run = move || mcp_tests::programs::child::run(&mut command, "", limit).unwrap();
        let finished = tokio::task::spawn_blocking(run).await.unwrap();
        assert!(finished.stderr.contains("refused: "), "{named}: {}\n{}", finished.stdout, finished.stderr);
        assert_eq!(proxy.seen.all().len(), 1, "{named}");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}
