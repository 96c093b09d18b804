//! Which tokens are accepted. The functions of a server are never entered by the others.

use mcp_runtime::{auth::Oauth, config::HttpOptions};

use super::{RESOURCE, bearing, call, challenge, counting, items, oauth, serve};
use crate::{prelude::*, reasons::assert_refused};

#[tokio::test]
async fn a_good_token_is_accepted_in_both_eras() {
    let issuer = Issuer::start().await;
    let (served, entered) = serve(oauth(&issuer)).await;
    let token = issuer.token("ada", RESOURCE, "");
    for _ in 0..2 {
        let reply = bearing(call("whoami"), &token).send(served.address).await;
        assert_eq!(text_of(&reply.json()), "ada of test");
    }
    let session = bearing(HttpRequest::initialize("2025-11-25"), &token).send(served.address).await.session();
    let legacy = HttpRequest::legacy(&session, 1, "tools/call", &json!({ "name": "whoami" }));
    let reply = bearing(legacy.clone(), &token).send(served.address).await;
    assert_eq!(text_of(&reply.json()), "ada of test");
    assert_eq!(entered.count(), 3);
    assert_eq!(issuer.key_requests(), 1, "keys are kept");
    // every request is authenticated, whatever its method
    assert_eq!(legacy.send(served.address).await.status, 401);
    let stream = HttpRequest::standalone_stream(&session);
    assert_eq!(stream.send(served.address).await.status, 401);
    assert_eq!(HttpRequest::new("DELETE").session(&session).send(served.address).await.status, 401);
    assert_eq!(HttpRequest::new("PUT").send(served.address).await.status, 401);
}

#[tokio::test]
async fn a_client_whose_body_follows_its_head_receives_the_refusal_and_keeps_its_connection() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer)).await;
    let mut connection = HttpConnection::open(served.address).await;
    for _ in 0..2 {
        let bytes = call("whoami").bytes();
        let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
        connection.write(&bytes[..head]).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        connection.write(&bytes[head..]).await;
        assert_eq!(connection.response().await.status, 401);
    }
    connection.send(&bearing(call("whoami"), &issuer.token("ada", RESOURCE, ""))).await;
    assert_eq!(connection.response().await.status, 200);
}

#[tokio::test]
async fn a_request_without_a_token_is_told_where_to_get_one() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer).required_scopes(["notes:read"])).await;
    let refused = call("whoami").send(served.address).await;
    assert_eq!(refused.status, 401);
    assert_eq!(
        challenge(&refused),
        "Bearer resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\", scope=\"notes:read\""
    );
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let metadata = HttpRequest::new("GET").path(path).send(served.address).await;
        assert_eq!(metadata.status, 200);
        assert_eq!(
            metadata.json(),
            json!({
                "resource": RESOURCE,
                "authorization_servers": [issuer.url],
                "scopes_supported": ["notes:read", "notes:write"],
                "bearer_methods_supported": ["header"],
            })
        );
        assert_eq!(HttpRequest::post("{}").path(path).send(served.address).await.status, 405);
    }
    let lacking = bearing(call("whoami"), &issuer.token("ada", RESOURCE, "notes:write"));
    let refused = lacking.send(served.address).await;
    assert_eq!(refused.status, 403, "nothing is served without the required scope");
    let including = |http: HttpOptions| {
        http.implied_scopes(|granted, required| granted == "notes:write" && required == "notes:read")
    };
    let server = items().http(including).auth(oauth(&issuer).required_scopes(["notes:read"]));
    let served_anyway = HttpServer::start(server).await;
    assert_eq!(lacking.send(served_anyway.address).await.status, 200, "a scope that includes it will do");
    assert!(challenge(&refused).contains("error=\"insufficient_scope\""), "{}", challenge(&refused));
}

#[tokio::test]
async fn a_body_is_not_read_before_its_token_is_checked() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer)).await;
    let mut connection = HttpConnection::open(served.address).await;
    // the body that is announced never comes
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Authorization: Bearer abc\r\nContent-Length: 1000\r\n\r\n";
    connection.write(head.as_bytes()).await;
    assert_eq!(connection.response().await.status, 401);
}

/// Every kind of token that must not be accepted, with a part of what its client is told, and the reason that operators read.
#[tokio::test]
async fn bad_tokens_are_refused_and_no_function_is_entered() {
    let issuer = Issuer::start().await;
    let entered = Arc::default();
    let lines = AuditLines::default();
    let builder = counting(&entered).auth(oauth(&issuer).key_cooldown(Duration::ZERO));
    let server = builder.audit(lines.sink().values()).telemetry(|t| t.metrics()).build().unwrap();
    let served = HttpServer::of(&server).await;
    let key = issuer.key();
    let good = issuer.claims("ada", RESOURCE, "notes:read");
    let changed = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let header = |alg: &str| json!({ "alg": alg, "typ": "at+jwt", "kid": key.kid });
    let now = unix_now();
    let tokens = [
        (format!("{}.", unsigned(&header("none"), &good)), "algorithm", "algorithm"),
        (format!("{}.", unsigned(&header("None"), &good)), "algorithm", "algorithm"),
        (key.sign_as_secret(&good), "algorithm", "algorithm"),
        (key.sign_with(&header("RS256"), &good), "key of the token is not known", "unknown_key"),
        (key.sign_with(&header("ES512"), &good), "algorithm", "algorithm"),
        (TestKey::new(&key.kid).sign(&good), "signature", "signature"),
        (TestKey::new("other").sign(&good), "key of the token is not known", "unknown_key"),
        (format!("{}.{}", unsigned(&header("ES256"), &good), "AAAA"), "signature", "signature"),
        (key.sign(&changed("iss", "https://evil.example.com".into())), "another issuer", "issuer"),
        (
            key.sign(&changed("aud", "https://other.example.com/mcp".into())),
            "not for this resource",
            "audience",
        ),
        (key.sign(&changed("exp", json!(now - 120))), "expired", "expired"),
        (key.sign(&changed("exp", json!("never"))), "not a time", "claims"),
        (key.sign(&changed("nbf", json!(now + 120))), "not valid yet", "not_yet_valid"),
        (key.sign(&changed("iat", json!(now + 120))), "not valid yet", "not_yet_valid"),
        (key.sign(&changed("sub", Value::Null)), "subject", "claims"),
        (key.sign(&changed("cnf", json!({ "jkt": "a" }))), "bound to a key", "binding"),
        (key.sign(&changed("cnf", json!({ "x5t#S256": "a" }))), "bound to something", "binding"),
        (
            key.sign_with(&json!({ "alg": "ES256", "typ": "dpop+jwt", "kid": key.kid }), &good),
            "access token",
            "type",
        ),
        (
            key.sign_with(&json!({ "alg": "ES256", "kid": key.kid, "crit": ["x"] }), &good),
            "extension",
            "malformed",
        ),
        (key.sign(&json!([])), "not readable", "malformed"),
        ("opaque".to_owned(), "not a signed JWT", "malformed"),
        ("a".repeat(17_000), "too long", "malformed"),
    ];
    for (token, told, reason) in &tokens {
        let refused = bearing(call("whoami"), token).send(served.address).await;
        assert_eq!(refused.status, 401, "{told}: {}", refused.text());
        let challenge = challenge(&refused);
        assert!(
            challenge.contains("error=\"invalid_token\"") && challenge.contains(told),
            "{told}: {challenge}"
        );
        assert!(challenge.contains("resource_metadata="), "{challenge}");
        let line = assert_refused(&server, &lines, 401, &format!("token_{reason}")).await;
        assert_eq!((&line["subject"], &line["address"]), (&Value::Null, &json!("127.0.0.1")), "{line}");
        assert!(!line.to_string().contains(token), "{line}");
    }
    let token = key.sign(&good);
    // the same from the second time on, when it could be known
    for _ in 0..2 {
        for (request, status) in [
            (bearing(bearing(call("whoami"), &token), &token), 400),
            (call("whoami").path(&format!("/mcp?access_token={token}")), 400),
            (bearing(call("whoami").path(&format!("/mcp?access_token={token}")), &token), 400),
            (call("whoami").header("Authorization", &format!("DPoP {token}")), 401),
            (call("whoami").header("Authorization", &format!("Basic {token}")), 401),
            (call("whoami").header("Authorization", &token), 401),
            (call("whoami").header("Authorization", "Bearer "), 401),
        ] {
            assert_eq!(request.send(served.address).await.status, status);
        }
        assert_eq!(entered.count(), 0);
        let accepted = bearing(call("whoami"), &token).send(served.address).await;
        assert_eq!(text_of(&accepted.json()), "ada of test", "the table differs from this in one point each");
        entered.0.store(0, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn claims_with_other_names_say_who_calls_what_it_may_and_for_whom_the_token_is() {
    let issuer = Issuer::start().await;
    let claims = |changes: Value| {
        let mut claims = issuer.claims("ada", RESOURCE, "");
        let map = claims.as_object_mut().unwrap();
        map.remove("scope");
        for (name, value) in changes.as_object().unwrap() {
            map.insert(name.clone(), value.clone());
        }
        map.retain(|_, value| !value.is_null());
        claims
    };
    let status = async |oauth: Oauth, tool: &str, changes: Value| {
        let (served, _) = serve(oauth).await;
        let token = issuer.key().sign(&claims(changes));
        let reply = bearing(call(tool), &token).send(served.address).await;
        if reply.status == 200 { Ok(text_of(&reply.json()).to_owned()) } else { Err(reply.status) }
    };
    let groups = json!({ "https://example.com/groups": ["notes:read"] });
    let mapped = oauth(&issuer).scope_claims(["https://example.com/groups"]);
    assert_eq!(status(mapped, "read_notes", groups.clone()).await.as_deref(), Ok("notes"));
    assert_eq!(status(oauth(&issuer), "read_notes", groups).await, Err(403));
    let by_oid = || oauth(&issuer).subject_claim("oid");
    assert_eq!(status(by_oid(), "whoami", json!({})).await, Err(401), "a user without it");
    let machine = json!({ "sub": "test" });
    assert_eq!(status(by_oid(), "whoami", machine).await.as_deref(), Ok("client:test of test"));
    // an authorization server that names the client only
    let by_client = || oauth(&issuer).audience("test").audience_claim("client_id");
    assert_eq!(status(by_client(), "whoami", json!({ "aud": null })).await.as_deref(), Ok("ada of test"));
    for refused in
        [json!({ "aud": null, "client_id": "other" }), json!({ "aud": "https://other.example.com" })]
    {
        assert_eq!(status(by_client(), "whoami", refused.clone()).await, Err(401), "{refused}");
    }
    assert_eq!(status(oauth(&issuer), "whoami", json!({ "aud": null })).await, Err(401));
}

#[tokio::test]
async fn a_prefix_of_scopes_is_for_the_authorization_server_only() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer).scope_prefix("api://notes/")).await;
    let metadata = HttpRequest::new("GET").path("/.well-known/oauth-protected-resource");
    let metadata = metadata.send(served.address).await.json();
    assert_eq!(metadata["scopes_supported"], json!(["api://notes/notes:read", "api://notes/notes:write"]));
    let refused = bearing(call("read_notes"), &issuer.token("ada", RESOURCE, "")).send(served.address).await;
    assert!(challenge(&refused).contains("scope=\"api://notes/notes:read\""), "{}", challenge(&refused));
    let good = bearing(call("read_notes"), &issuer.token("ada", RESOURCE, "notes:read"));
    assert_eq!(good.send(served.address).await.status, 200);
}

#[tokio::test]
async fn a_token_with_a_duplicated_member_is_refused() {
    let issuer = Issuer::start().await;
    let (served, entered) = serve(oauth(&issuer)).await;
    let header = r#"{"alg":"ES256","typ":"at+jwt","kid":"first"}"#;
    let claims = issuer.claims("ada", RESOURCE, "").to_string();
    let add = |text: &str, member: &str| format!("{},{member}}}", &text[..text.len() - 1]);
    let status = async |header: &str, claims: &str| {
        let token = issuer.key().sign_text(header, claims);
        bearing(call("whoami"), &token).send(served.address).await
    };
    assert_eq!(status(&add(header, r#""cty":"x""#), &add(&claims, r#""x":1"#)).await.status, 200);
    for member in [
        r#""sub":"eve""#,
        r#""sub":"ada""#,
        r#""\u0073ub":"eve""#,
        r#""x":1,"x":1"#,
        r#""realm_access":{"roles":[],"roles":["admin"]}"#,
    ] {
        let refused = status(header, &add(&claims, member)).await;
        assert_eq!(refused.status, 401, "{member}");
        assert!(challenge(&refused).contains("duplicated"), "{}", challenge(&refused));
    }
    for member in [r#""alg":"ES256""#, r#""x":1,"x":2"#, r#""\u006bid":"other""#] {
        assert_eq!(status(&add(header, member), &claims).await.status, 401, "{member}");
    }
    assert_eq!(entered.count(), 1);
}
