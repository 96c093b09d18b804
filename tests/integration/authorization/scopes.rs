//! Items whose scopes can be acquired are listed, and a call without them says which to ask for.

use mcp_runtime::auth::{ApiKeys, Oauth};

use super::{RESOURCE, bearing, call, challenge, items, oauth, serve};
use crate::prelude::*;

/// The scopes of a challenge.
#[track_caller]
fn asked_for(challenge: &str) -> &str {
    assert!(
        challenge.starts_with("Bearer resource_metadata=")
            && challenge.contains("error=\"insufficient_scope\"")
    );
    challenge.split_once("scope=\"").and_then(|(_, rest)| rest.split_once('"')).expect("scopes").0
}

#[tokio::test]
async fn what_can_be_acquired_is_listed_and_what_cannot_is_unknown() {
    let issuer = Issuer::start().await;
    let (served, entered) = serve(oauth(&issuer)).await;
    let token = issuer.token("ada", RESOURCE, "notes:write");
    let send = async |method: &str, params: Value| {
        bearing(HttpRequest::modern(1, method, params), &token).send(served.address).await
    };
    let listed = send("tools/list", json!({})).await.json();
    assert_eq!(tool_names(&listed), ["whoami", "read_notes", "move_notes"]);
    let unknown = send("tools/call", json!({ "name": "purge" })).await;
    assert_eq!((unknown.status, unknown.code()), (200, -32602));
    for (method, params, scopes) in [
        ("tools/call", json!({ "name": "read_notes" }), "notes:read"),
        ("tools/call", json!({ "name": "move_notes" }), "notes:read notes:write"),
        ("resources/read", json!({ "uri": "note://one" }), "notes:read"),
        ("prompts/get", json!({ "name": "summarize" }), "notes:read"),
    ] {
        let refused = send(method, params.clone()).await;
        assert_eq!(refused.status, 403, "{params}: {}", refused.text());
        assert_eq!(asked_for(challenge(&refused)), scopes, "all of them, in one challenge");
        assert_eq!(refused.code(), -32603);
        assert!(refused.json()["error"]["message"].as_str().unwrap().contains(scopes));
    }
    assert_eq!(entered.count(), 0);
    let both = issuer.token("ada", RESOURCE, "notes:read notes:write");
    let moved = bearing(call("move_notes"), &both).send(served.address).await;
    assert_eq!(text_of(&moved.json()), "moved");
}

#[tokio::test]
async fn offline_access_is_not_a_scope_of_the_resource() {
    let issuer = Issuer::start().await;
    let token = issuer.token("ada", RESOURCE, "notes:write");
    for (required, first) in [
        (&[][..], Some("notes:read notes:write")),
        (&["offline_access", "notes:write"], Some("notes:write")),
        (&["offline_access"], None),
    ] {
        let scopes = ["notes:read", "offline_access", "notes:write"];
        let oauth = oauth(&issuer).scopes(scopes).required_scopes(required.iter().copied());
        let (served, _) = serve(oauth).await;
        let metadata = HttpRequest::new("GET").path("/.well-known/oauth-protected-resource");
        let published = metadata.send(served.address).await.json()["scopes_supported"].clone();
        assert_eq!(published, json!(["notes:read", "notes:write"]));
        let anonymous = call("whoami").send(served.address).await;
        let asked = challenge(&anonymous).split_once("scope=\"").map(|(_, rest)| rest.split('"').next());
        assert_eq!(asked.flatten(), first, "{required:?}");
        if !required.is_empty() {
            let refused = bearing(call("whoami"), &token).send(served.address).await;
            assert!(!challenge(&refused).contains("offline_access"), "{}", challenge(&refused));
        }
    }
}

#[tokio::test]
async fn a_legacy_call_without_a_scope_is_403_before_its_stream_begins() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer)).await;
    let token = issuer.token("ada", RESOURCE, "");
    let session = bearing(HttpRequest::initialize("2025-06-18"), &token).send(served.address).await.session();
    for (method, params) in [
        ("tools/call", json!({ "name": "read_notes" })),
        ("resources/read", json!({ "uri": "note://one" })),
        ("prompts/get", json!({ "name": "summarize" })),
    ] {
        let request = bearing(HttpRequest::legacy(&session, 1, method, &params), &token);
        for request in [request.clone(), request.with("Accept", "text/event-stream")] {
            let refused = request.send(served.address).await;
            assert_eq!(refused.status, 403, "{method}");
            assert_eq!(asked_for(challenge(&refused)), "notes:read");
            assert_eq!(refused.code(), -32603);
        }
    }
}

#[tokio::test]
async fn a_member_of_a_batch_is_refused_with_the_names_of_its_scopes() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer)).await;
    let token = issuer.token("ada", RESOURCE, "");
    let session = bearing(HttpRequest::initialize("2025-03-26"), &token).send(served.address).await.session();
    let batch = json!([
        request(1, "tools/call", json!({ "name": "whoami" })),
        request(2, "tools/call", json!({ "name": "move_notes" })),
    ]);
    let reply =
        bearing(HttpRequest::post(batch.to_string()).session(&session), &token).send(served.address).await;
    assert_eq!(reply.status, 200);
    let replies = reply.json();
    let by_id = |id: i64| replies.as_array().unwrap().iter().find(|reply| reply["id"] == id).unwrap();
    assert_eq!(text_of(by_id(1)), "ada of test");
    assert_eq!(by_id(2)["error"]["code"], -32603);
    assert!(by_id(2)["error"]["message"].as_str().unwrap().contains("`notes:read notes:write`"));
}

#[tokio::test]
async fn the_old_transport_authenticates_its_stream_and_each_message() {
    let issuer = Issuer::start().await;
    let builder = items().auth(oauth(&issuer)).http(|http| http.legacy_sse("/sse"));
    let served = HttpServer::start(builder).await;
    let get = HttpRequest::new("GET").path("/sse").header("Accept", "text/event-stream");
    assert_eq!(get.send(served.address).await.status, 401);
    let authorization = format!("Bearer {}", issuer.token("ada", RESOURCE, ""));
    let headers = [("Authorization", authorization.as_str())];
    let mut sse = HttpSse::open(served.address, "/sse", &headers).await;
    sse.initialize(&json!({})).await;
    sse.send(&request(1, "tools/call", json!({ "name": "read_notes" }))).await;
    let refused = sse.message().await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("notes:read"));
    let anonymous = HttpRequest::post("{}").path("/sse?sessionId=x").send(served.address).await;
    assert_eq!(anonymous.status, 401);
}

#[tokio::test]
async fn a_subscription_to_what_may_not_be_read_is_refused_with_all_its_scopes() {
    let issuer = Issuer::start().await;
    let served = HttpServer::start(items().auth(oauth(&issuer)).with_handle(drop)).await;
    let filter = json!({ "notifications": { "resourceSubscriptions": ["note://one"] } });
    let listen =
        |token: &str| bearing(HttpRequest::modern("s", "subscriptions/listen", filter.clone()), token);
    let refused = listen(&issuer.token("ada", RESOURCE, "")).send(served.address).await;
    assert_eq!((refused.status, asked_for(challenge(&refused))), (403, "notes:read"));
    let allowed = listen(&issuer.token("ada", RESOURCE, "notes:read"));
    let mut stream = EventStream::open(&allowed, served.address).await.expect("a stream");
    let acknowledged = stream.message().await;
    assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!(["note://one"]));
}

#[tokio::test]
async fn a_scope_includes_what_the_rule_of_the_server_says() {
    let issuer = Issuer::start().await;
    let nested = |builder: ServerBuilder| {
        builder.http(|http| {
            http.implied_scopes(|granted, required| {
                required.strip_prefix(granted).is_some_and(|rest| rest.starts_with(':'))
            })
        })
    };
    for (builder, status) in [(nested(items()), 200), (items(), 403)] {
        let served = HttpServer::start(builder.auth(oauth(&issuer))).await;
        let send = async |scope: &str| {
            let token = issuer.token("ada", RESOURCE, scope);
            bearing(call("move_notes"), &token).send(served.address).await.status
        };
        assert_eq!(send("notes").await, status);
        assert_eq!(send("not").await, 403);
    }
}

/// Searches
#[mcp_tool(scopes("notes:wriet"))]
fn search() -> &'static str {
    "found"
}

/// Archives
#[mcp_resource(uri = "note://archive", scopes("archive"))]
fn archive() -> &'static str {
    "old"
}

fn with_scopes() -> Oauth {
    Oauth::issuer("https://id.example.com").resource(RESOURCE).scopes(["notes:read", "notes:write"])
}

#[test]
fn a_scope_that_no_token_has_is_an_error_that_names_the_nearest() {
    let error = build_error(mcp_runtime::server!().tool::<search>().auth(with_scopes()));
    assert!(error.contains("tool `search` needs the scope `notes:wriet`"), "{error}");
    assert!(error.contains("did you mean `notes:write`?") && error.contains("scopes.rs"), "{error}");
    let error = build_error(mcp_runtime::server!().resource::<archive>().auth(with_scopes()));
    assert!(error.contains("`archive`") && error.contains("`.unlisted_scopes([..])`"), "{error}");
    let made = ToolDef::builder("made").scopes(["notes:raed"]).handler(|_: ToolCall| async { "" });
    let error = build_error(mcp_runtime::server!().add(made).auth(with_scopes()));
    assert!(error.contains("`made`") && error.contains("did you mean `notes:read`?"), "{error}");
    let error = build_error(mcp_runtime::server!().auth(with_scopes().required_scopes(["note:read"])));
    assert!(error.contains("the server needs the scope `note:read`"), "{error}");
}

#[test]
fn scopes_that_tokens_may_have_build() {
    let ada = Principal::new("https://example.com", "ada").with_scopes(["notes:wriet"]);
    for builder in [
        mcp_runtime::server!().auth(with_scopes().unlisted_scopes(["archive", "notes:wriet"])),
        mcp_runtime::server!()
            .auth(with_scopes().scopes(["all"]))
            .http(|http| http.implied_scopes(|granted, _| granted == "all")),
        // others may come from keys, and from a server whose scopes are not listed
        mcp_runtime::server!().auth(with_scopes()).auth(ApiKeys::new([("0123456789abcdef", ada)])),
        mcp_runtime::server!().auth(with_scopes().scopes([""; 0])),
        mcp_runtime::server!(),
    ] {
        builder.tool::<search>().resource::<archive>().build().expect("a server");
    }
}
