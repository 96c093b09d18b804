//! API keys, and verifiers of the user's own.

use mcp_runtime::auth::{ApiKeys, Denied, Oauth, Verifier};

use super::{RESOURCE, bearing, call, challenge, items, oauth, status};
use crate::prelude::*;

#[tokio::test]
async fn a_key_names_its_caller_and_scopes_and_another_is_401() {
    let ada = Principal::new("https://example.com", "ada").with_scopes(["notes:read"]);
    let keys = ApiKeys::new([("0123456789abcdef", ada)]);
    assert!(!format!("{keys:?}").contains("0123"));
    let served = HttpServer::start(items().auth(keys)).await;
    let reply = bearing(call("read_notes"), "0123456789abcdef").send(served.address).await;
    assert_eq!(text_of(&reply.json()), "notes");
    let list = bearing(HttpRequest::modern(1, "tools/list", json!({})), "0123456789abcdef");
    // no one grants scopes, so what needs others is hidden
    assert_eq!(tool_names(&list.send(served.address).await.json()), ["whoami", "read_notes"]);
    let refused = bearing(call("read_notes"), "0123456789abcdee").send(served.address).await;
    assert_eq!(refused.status, 401);
    assert!(challenge(&refused).starts_with("Bearer realm=\"mcp\", error=\"invalid_token\""));
    let metadata = HttpRequest::new("GET").path("/.well-known/oauth-protected-resource");
    assert_eq!(metadata.send(served.address).await.status, 404);
}

/// Believes what a token says of itself.
pub(crate) struct Credulous;

impl Verifier for Credulous {
    async fn verify(&self, token: &str, request: &axum::http::request::Parts) -> Result<Principal, Denied> {
        tokio::task::yield_now().await;
        assert_eq!(request.uri.path(), "/mcp");
        match token {
            "down" => Err(Denied::unavailable("the database at 10.0.0.1 does not answer")),
            "blocked" => Err(Denied::forbidden("this account is blocked")),
            "poor" => Err(Denied::insufficient_scope(["a", "b"])),
            "expired" => Ok(Principal::new("i", "late").with_expiry(std::time::UNIX_EPOCH)),
            "silent" => std::future::pending().await,
            "bad" => Err(Denied::invalid_token("not \"this\" one")),
            "nameless" => Ok(Principal::new("i", "")),
            name => Ok(Principal::new("i", name)),
        }
    }
}

#[tokio::test]
async fn a_key_does_not_pass_as_a_token_that_is_bound_to_a_key_and_no_caller_is_nameless() {
    let ada = Principal::new("https://example.com", "ada");
    let keys = ApiKeys::new([("0123456789abcdef", ada)]);
    for builder in [items().auth(keys), items().auth(Credulous)] {
        let served = HttpServer::start(builder).await;
        for (scheme, token, status) in [
            ("Bearer", "0123456789abcdef", 200),
            ("DPoP", "0123456789abcdef", 401),
            ("dpop", "0123456789abcdef", 401),
            ("Bearer", "0123456789abcdef", 200),
            ("Bearer", "nameless", 401),
        ] {
            let request = call("whoami").header("Authorization", &format!("{scheme} {token}"));
            let reply = request.send(served.address).await;
            assert_eq!(reply.status, status, "{scheme} {token}");
        }
    }
}

/// The scopes and the tenant of the caller
#[mcp_tool]
fn tenant_of_key(caller: &Principal) -> String {
    format!("{} {:?}", caller.scopes().join(" "), caller.claims().and_then(|claims| claims.get("tenant")))
}

#[tokio::test]
async fn keys_are_read_again_on_demand_and_the_streams_of_those_who_are_gone_or_have_changed_end() {
    let folder = TestFolder::default();
    let write = |text: &str| folder.write("keys", text);
    const EVE: &str = "\neve the-secret-key-of-eve notes:read";
    write(&format!("ada 0123456789abcdef notes:read\nbob fedcba9876543210{EVE} tenant = \"north sea\" x"));
    let builder = items().tool::<tenant_of_key>().with_handle(drop);
    let server = builder.auth(ApiKeys::from_file(folder.join("keys"))).build().unwrap();
    let served = HttpServer::of(&server).await;
    let tenant = async || {
        let reply = bearing(call("tenant_of_key"), "the-secret-key-of-eve").send(served.address).await;
        text_of(&reply.json()).to_owned()
    };
    assert_eq!(tenant().await, "notes:read x Some(String(\"north sea\"))");
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let listen = async |key: &str| {
        let listen = bearing(HttpRequest::modern("s", "subscriptions/listen", filter.clone()), key);
        let mut stream = EventStream::open(&listen, served.address).await.expect("a stream");
        stream.message().await;
        stream
    };
    let mut gone = listen("0123456789abcdef").await;
    let mut changed = listen("the-secret-key-of-eve").await;
    let mut bob = listen("fedcba9876543210").await;
    write(&format!("bob fedcba9876543210{EVE} tenant=\"unclosed"));
    let error = server.handle().reload_auth().unwrap_err().to_string();
    assert!(error.contains("entry 2") && !error.contains("secret-key"), "{error}");
    assert_eq!(status(&served, "0123456789abcdef").await, 200);
    write(&format!("bob fedcba9876543210\nbob another-key-of-bob{EVE} tenant=7"));
    server.handle().reload_auth().unwrap();
    for ended in [&mut gone, &mut changed] {
        assert_eq!(ended.message().await["result"]["resultType"], "complete");
    }
    assert_eq!(tenant().await, "notes:read Some(Number(7))");
    assert_eq!(status(&served, "0123456789abcdef").await, 401);
    for key in ["fedcba9876543210", "another-key-of-bob"] {
        let reply = bearing(call("whoami"), key).send(served.address).await;
        assert_eq!(text_of(&reply.json()), "bob of no client");
    }
    server.handle().tools_changed();
    assert_eq!(bob.message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn what_is_wrong_with_keys_is_an_error_of_the_build() {
    for keys in [
        ApiKeys::from_env("MCP_TEST_NO_SUCH_VARIABLE"),
        ApiKeys::from_file("no/such/file"),
        ApiKeys::new([("short", Principal::new("i", "s"))]),
        ApiKeys::new([
            ("0123456789abcdef", Principal::new("i", "a")),
            ("0123456789abcdef", Principal::new("i", "b")),
        ]),
        ApiKeys::new::<&str>([]),
    ] {
        let error = mcp_runtime::server!().auth(keys).build().expect_err("nothing is wrong").to_string();
        assert!(!error.contains("0123456789abcdef"), "{error}");
    }
}

#[tokio::test]
async fn a_verifier_of_the_users_decides_and_its_reasons_are_told_in_the_words_of_the_standard() {
    let own = HttpServer::start(items().auth(Credulous)).await;
    let of_issuer = Oauth::issuer("https://id.example.com").resource(RESOURCE).verifier(Credulous);
    let of_issuer = HttpServer::start(items().auth(of_issuer)).await;
    for (served, start) in [(&own, "Bearer realm=\"mcp\""), (&of_issuer, "Bearer resource_metadata=\"")] {
        let reply = bearing(call("whoami"), "ada").send(served.address).await;
        assert_eq!(text_of(&reply.json()), "ada of no client");
        for (token, status, told) in [
            ("down", 503, None),
            ("silent", 503, None),
            ("blocked", 403, None),
            (
                "poor",
                403,
                Some(
                    "error=\"insufficient_scope\", error_description=\"the token lacks a scope\", scope=\"a b\"",
                ),
            ),
            ("expired", 401, Some("error=\"invalid_token\"")),
            ("bad", 401, Some("error_description=\"not 'this' one\"")),
        ] {
            let refused = bearing(call("whoami"), token).send(served.address).await;
            assert_eq!(refused.status, status, "{token}");
            assert!(!refused.text().contains("10.0.0.1"), "the cause is for the log");
            match told {
                None => assert_eq!(refused.header("www-authenticate"), None),
                Some(told) => {
                    let challenge = challenge(&refused);
                    assert!(challenge.starts_with(start) && challenge.contains(told), "{challenge}");
                }
            }
        }
    }
}

#[tokio::test]
async fn keys_and_tokens_are_accepted_side_by_side_and_a_block_list_is_asked_each_time() {
    let issuer = Issuer::start().await;
    let blocked = Arc::new(AtomicBool::new(false));
    let is_blocked = blocked.clone();
    let tokens = oauth(&issuer).accept_if(move |_| !is_blocked.load(Ordering::SeqCst));
    let keys = ApiKeys::new([("0123456789abcdef", Principal::new("keys", "ci"))]);
    let served = HttpServer::start(items().auth(tokens).auth(keys)).await;
    let token = issuer.token("ada", RESOURCE, "");
    let send = async |token: &str| bearing(call("whoami"), token).send(served.address).await;
    assert_eq!(text_of(&send(&token).await.json()), "ada of test");
    assert_eq!(text_of(&send("0123456789abcdef").await.json()), "ci of no client");
    assert_eq!(send("0123456789abcdee").await.status, 401);
    blocked.store(true, Ordering::SeqCst);
    assert_eq!(send(&token).await.status, 403, "though it was accepted before");
    assert_eq!(send("0123456789abcdef").await.status, 200);
}

#[tokio::test]
async fn of_several_methods_the_refusal_is_that_of_the_one_that_the_token_was_meant_for() {
    let (issuer, other) = (Issuer::start().await, Issuer::start().await);
    let keys = || ApiKeys::new([("0123456789abcdef", Principal::new("https://example.com", "ada"))]);
    let second =
        || Oauth::issuer(&other.url).resource(RESOURCE).scopes(["notes:read", "notes:write", "admin"]);
    let with = |issuer: &Issuer, member: &str, value: Value| {
        let mut claims = issuer.claims("ada", RESOURCE, "");
        claims[member] = value;
        issuer.key().sign(&claims)
    };
    let forged = TestKey::new("first").sign(&other.claims("ada", RESOURCE, ""));
    let builders = [
        items().auth(keys()).auth(oauth(&issuer)).auth(second()),
        items().auth(second()).auth(oauth(&issuer)).auth(keys()),
    ];
    for builder in builders {
        let served = HttpServer::start(builder).await;
        for (token, reason) in [
            (with(&issuer, "exp", json!(1)), "the token has expired"),
            (with(&other, "exp", json!(1)), "the token has expired"),
            (with(&other, "aud", json!("https://x.example.com")), "the token is not for this resource"),
            (forged.clone(), "the signature of the token is not valid"),
            ("0123456789abcdeg".to_owned(), "the API key is unknown"),
        ] {
            let refused = bearing(call("whoami"), &token).send(served.address).await;
            assert_eq!(refused.status, 401);
            let text = challenge(&refused);
            assert!(text.contains(&format!("error_description=\"{reason}\"")), "{reason}: {text}");
        }
    }
}
