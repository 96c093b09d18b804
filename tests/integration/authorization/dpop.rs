//! Tokens that are bound to a key, and the proofs that come with them.

use super::{RESOURCE, bearing, call, challenge, items, oauth, serve, status};
use crate::prelude::*;

fn bound_token(issuer: &Issuer, key: &TestKey) -> String {
    let mut claims = issuer.claims("ada", RESOURCE, "");
    claims["cnf"] = json!({ "jkt": key.thumbprint() });
    issuer.key().sign(&claims)
}

fn proved(token: &str, proof: &str) -> HttpRequest {
    call("whoami").header("Authorization", &format!("DPoP {token}")).header("DPoP", proof)
}

#[tokio::test]
async fn a_proof_of_the_right_key_for_this_request_is_accepted_once() {
    let issuer = Issuer::start().await;
    let (served, entered) = serve(oauth(&issuer).dpop()).await;
    let key = TestKey::new("client");
    let token = bound_token(&issuer, &key);
    let proof = key.proof("POST", RESOURCE, &token, "one");
    let reply = proved(&token, &proof).send(served.address).await;
    assert_eq!(text_of(&reply.json()), "ada of test");
    let replayed = proved(&token, &proof).send(served.address).await;
    assert_eq!(replayed.status, 401);
    assert_eq!(entered.count(), 1);
    let unbound = issuer.token("ada", RESOURCE, "");
    assert_eq!(status(&served, &unbound).await, 200, "as before");
    let metadata =
        HttpRequest::new("GET").path("/.well-known/oauth-protected-resource").send(served.address).await;
    assert_eq!(metadata.json()["dpop_bound_access_tokens_required"], false);
}

#[tokio::test]
async fn a_proof_is_accepted_once_by_all_replicas_together_and_by_none_while_their_store_is_away() {
    let issuer = Issuer::start().await;
    let store = BreakableStore::default();
    let replica = async || {
        let builder = items().auth(oauth(&issuer).dpop()).shared(store.clone());
        HttpServer::start(builder.stores(|stores| stores.keys([server_key(1)]))).await
    };
    let replicas = [replica().await, replica().await];
    let key = TestKey::new("client");
    let token = bound_token(&issuer, &key);
    for jti in ["one", "two"] {
        let proof = key.proof("POST", RESOURCE, &token, jti);
        let proved = proved(&token, &proof);
        let sent = replicas.iter().map(|served| proved.send(served.address));
        let statuses = futures_util::future::join_all(sent).await.into_iter().map(|reply| reply.status);
        let mut statuses: Vec<_> = statuses.collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 401], "one of them");
    }
    store.set_broken(true);
    let proof = key.proof("POST", RESOURCE, &token, "three");
    for served in &replicas {
        assert_eq!(proved(&token, &proof).send(served.address).await.status, 401, "it cannot be told");
    }
    let unbound = issuer.token("ada", RESOURCE, "");
    assert_eq!(bearing(call("whoami"), &unbound).send(replicas[0].address).await.status, 200);
    store.set_broken(false);
    assert_eq!(proved(&token, &proof).send(replicas[1].address).await.status, 200, "it was not used");
    assert_eq!(proved(&token, &proof).send(replicas[0].address).await.status, 401);
}

#[tokio::test]
async fn proofs_of_anything_else_are_refused_and_no_function_is_entered() {
    let issuer = Issuer::start().await;
    let (served, entered) = serve(oauth(&issuer).dpop()).await;
    let key = TestKey::new("client");
    let token = bound_token(&issuer, &key);
    let thief = TestKey::new("thief");
    let claims = |change: &dyn Fn(&mut Value)| {
        let mut claims = json!({ "jti": "x", "htm": "POST", "htu": RESOURCE, "iat": unix_now() });
        let text = key.proof("POST", RESOURCE, &token, "y");
        let payload = text.split('.').nth(1).unwrap();
        use base64::Engine as _;
        let decoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap();
        claims["ath"] = serde_json::from_slice::<Value>(&decoded).unwrap()["ath"].clone();
        change(&mut claims);
        claims
    };
    let header = json!({ "alg": "ES256", "typ": "dpop+jwt", "jwk": key.jwk() });
    let mut secret = header.clone();
    secret["jwk"]["d"] = "AAAA".into();
    let sign = |change: &dyn Fn(&mut Value)| key.sign_with(&header, &claims(change));
    for (name, proof) in [
        ("another key", thief.proof("POST", RESOURCE, &token, "a")),
        ("another method", key.proof("GET", RESOURCE, &token, "b")),
        ("another server", key.proof("POST", "https://other.example.com/mcp", &token, "c")),
        ("another path", key.proof("POST", "https://mcp.example.com/other", &token, "d")),
        ("another token", key.proof("POST", RESOURCE, "other", "e")),
        ("no token", sign(&|claims| drop(claims.as_object_mut().unwrap().remove("ath")))),
        ("too old", sign(&|claims| claims["iat"] = json!(unix_now() - 120))),
        ("of the future", sign(&|claims| claims["iat"] = json!(unix_now() + 120))),
        ("no name", sign(&|claims| claims["jti"] = json!(""))),
        ("the private key in it", key.sign_with(&secret, &claims(&|_| {}))),
        ("an access token", issuer.key().sign(&claims(&|_| {}))),
        (
            "of another type",
            key.sign_with(&json!({ "alg": "ES256", "typ": "JWT", "jwk": key.jwk() }), &claims(&|_| {})),
        ),
        ("the key of the thief in it", {
            let header = json!({ "alg": "ES256", "typ": "dpop+jwt", "jwk": key.jwk() });
            thief.sign_with(&header, &claims(&|_| {}))
        }),
        ("nothing", "x".to_owned()),
    ] {
        let refused = proved(&token, &proof).send(served.address).await;
        assert_eq!(refused.status, 401, "{name}: {}", refused.text());
    }
    let without = call("whoami").header("Authorization", &format!("DPoP {token}"));
    let refused = without.send(served.address).await;
    assert_eq!(refused.status, 401);
    assert!(challenge(&refused).starts_with("Bearer "), "{}", challenge(&refused));
    assert_eq!(status(&served, &token).await, 401, "stolen, and sent as a bearer's");
    let two = proved(&token, &key.proof("POST", RESOURCE, &token, "f")).header("DPoP", "x");
    assert_eq!(two.send(served.address).await.status, 401);
    assert_eq!(entered.count(), 0);
    let accepted = proved(&token, &sign(&|claims| claims["jti"] = json!("good"))).send(served.address).await;
    assert_eq!(accepted.status, 200, "the table differs from this in one point each: {}", accepted.text());
}

#[tokio::test]
async fn a_server_can_require_proofs() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer).require_dpop()).await;
    let refused = bearing(call("whoami"), &issuer.token("ada", RESOURCE, "")).send(served.address).await;
    assert_eq!(refused.status, 401);
    assert!(challenge(&refused).starts_with("DPoP ") && challenge(&refused).contains("algs=\"ES256 "));
    let key = TestKey::new("client");
    let token = bound_token(&issuer, &key);
    let accepted = proved(&token, &key.proof("POST", RESOURCE, &token, "one")).send(served.address).await;
    assert_eq!(accepted.status, 200);
    // `read_notes` needs a scope
    let request = HttpRequest::modern(1, "tools/call", json!({ "name": "read_notes" }))
        .header("Authorization", &format!("DPoP {token}"))
        .header("DPoP", &key.proof("POST", RESOURCE, &token, "two"));
    let refused = request.send(served.address).await;
    assert_eq!(refused.status, 403);
    assert!(challenge(&refused).starts_with("DPoP "), "{}", challenge(&refused));
}

#[tokio::test]
async fn a_proof_without_a_fresh_nonce_is_told_which_to_use_on_every_replica() {
    let issuer = Issuer::start().await;
    let replica = async |key: u8| {
        let oauth = oauth(&issuer).require_dpop().dpop_nonces(Duration::from_secs(2));
        let builder = items().auth(oauth).stores(|stores| stores.keys([server_key(key)]));
        HttpServer::start(builder).await
    };
    let (one, two, stranger) = (replica(1).await, replica(1).await, replica(2).await);
    let key = TestKey::new("client");
    let token = bound_token(&issuer, &key);
    let mut count = 0;
    let mut proof = |nonce: Value| {
        count += 1;
        let mut claims = json!({ "jti": count.to_string() });
        if !nonce.is_null() {
            claims["nonce"] = nonce;
        }
        key.proof_with("POST", RESOURCE, &token, claims)
    };
    let asked = proved(&token, &proof(Value::Null)).send(one.address).await;
    assert_eq!(asked.status, 401);
    let told = challenge(&asked);
    assert!(told.starts_with("DPoP ") && told.contains("error=\"use_dpop_nonce\""), "{told}");
    let nonce = json!(asked.header("dpop-nonce").expect("a nonce"));
    for served in [&one, &two] {
        // as often as it likes
        for _ in 0..2 {
            let reply = proved(&token, &proof(nonce.clone())).send(served.address).await;
            assert_eq!(text_of(&reply.json()), "ada of test");
            assert!(reply.header("dpop-nonce").is_none());
        }
    }
    let mut forged = nonce.as_str().unwrap().to_owned();
    forged.replace_range(10..11, if &forged[10..11] == "A" { "B" } else { "A" });
    let wrong =
        [(&stranger, nonce.clone()), (&one, json!(forged)), (&one, json!("")), (&one, json!("made up"))];
    for (served, nonce) in wrong {
        let refused = proved(&token, &proof(nonce.clone())).send(served.address).await;
        assert_eq!((refused.status, refused.header("dpop-nonce").is_some()), (401, true), "{nonce}");
    }
    // another mistake in the proof is reported as such
    let thief = TestKey::new("thief");
    let stolen = thief.proof_with("POST", RESOURCE, &token, json!({ "jti": "x" }));
    let refused = proved(&token, &stolen).send(one.address).await;
    assert!(challenge(&refused).contains("invalid_dpop_proof") && refused.header("dpop-nonce").is_none());

    let mut is_new = async || {
        let reply = proved(&token, &proof(nonce.clone())).send(one.address).await;
        reply.header("dpop-nonce").is_some_and(|new| json!(new) != nonce)
    };
    within(async {
        while !is_new().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}
