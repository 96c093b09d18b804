//! Opaque tokens, about which the authorization server is asked.

use mcp_runtime::auth::Oauth;

use super::{RESOURCE, bearing, call, challenge, oauth, serve, status};
use crate::prelude::*;

fn config(issuer: &Issuer) -> Oauth {
    oauth(issuer).introspection("mcp", "s&cret")
}

fn active(issuer: &Issuer) -> Value {
    let mut claims = issuer.claims("ada", RESOURCE, "notes:read");
    claims["active"] = true.into();
    claims
}

#[tokio::test]
async fn an_opaque_token_is_asked_about_and_the_answer_is_believed_for_a_while() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(config(&issuer)).await;
    issuer.set_token("opaque", active(&issuer));
    for _ in 0..3 {
        let reply = bearing(call("whoami"), "opaque").send(served.address).await;
        assert_eq!(text_of(&reply.json()), "ada of test");
    }
    assert_eq!(issuer.introspections(), 1);
    let (eager, _) = serve(config(&issuer).introspection_cache(Duration::ZERO)).await;
    assert_eq!(bearing(call("whoami"), "opaque").send(eager.address).await.status, 200);
    issuer.set_token("opaque", json!({ "active": false }));
    assert_eq!(bearing(call("whoami"), "opaque").send(eager.address).await.status, 401, "it was revoked");
    assert_eq!(status(&served, "opaque").await, 200, "for half a minute");
}

#[tokio::test]
async fn answers_that_are_not_a_clear_yes_are_a_no() {
    let issuer = Issuer::start().await;
    // refusals are not kept either
    let (served, entered) = serve(config(&issuer).introspection_cache(Duration::ZERO)).await;
    let with = |name: &str, value: Value| {
        let mut claims = active(&issuer);
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        claims
    };
    for (claims, status) in [
        (json!({ "active": false }), 401),
        (with("active", Value::Null), 503),
        (with("active", json!("true")), 503),
        (with("aud", Value::Null), 401),
        (with("aud", json!("https://other.example.com")), 401),
        (with("iss", json!("https://other.example.com")), 401),
        (with("exp", json!(1)), 401),
        (with("sub", json!(7)), 401),
    ] {
        issuer.set_token("opaque", claims.clone());
        let refused = bearing(call("whoami"), "opaque").send(served.address).await;
        assert_eq!(refused.status, status, "{claims}");
    }
    assert_eq!(status(&served, "unknown").await, 401);
    assert_eq!(entered.count(), 0);
    issuer.set_token("opaque", with("iss", Value::Null));
    let reply = bearing(call("whoami"), "opaque").send(served.address).await;
    assert_eq!(text_of(&reply.json()), "ada of test", "the issuer itself has answered");
}

#[tokio::test]
async fn an_outage_is_503_and_never_a_yes() {
    let issuer = Issuer::start().await;
    let (served, entered) = serve(config(&issuer)).await;
    issuer.set_token("opaque", active(&issuer));
    issuer.set_down(true);
    let refused = bearing(call("whoami"), "opaque").send(served.address).await;
    assert_eq!((refused.status, refused.header("www-authenticate")), (503, None));
    assert_eq!(entered.count(), 0);
    issuer.set_down(false);
    assert_eq!(status(&served, "opaque").await, 200);
    let (wrong, _) = serve(oauth(&issuer).introspection("mcp", "guessed")).await;
    assert_eq!(
        bearing(call("whoami"), "opaque").send(wrong.address).await.status,
        503,
        "it is refused there"
    );
    let refused = call("whoami").send(served.address).await;
    assert!(challenge(&refused).starts_with("Bearer resource_metadata="));
}

/// The reply to `whoami` of a token about which this is said.
async fn whoami(config: Oauth, issuer: &Issuer, answer: Value) -> Result<String, u16> {
    let (served, _) = serve(config.introspection_cache(Duration::ZERO)).await;
    issuer.set_token("opaque", answer);
    let reply = bearing(call("whoami"), "opaque").send(served.address).await;
    if reply.status == 200 { Ok(text_of(&reply.json()).to_owned()) } else { Err(reply.status) }
}

#[tokio::test]
async fn members_of_an_answer_that_are_optional_may_be_absent() {
    let issuer = Issuer::start().await;
    let later = unix_now() + 600;
    let by_endpoint = || config(&issuer).audience_by_endpoint();
    // as django-oauth-toolkit answers: of a user, and of a machine
    let user =
        json!({ "active": true, "scope": "notes:read", "exp": later, "client_id": "app", "username": "ada" });
    let machine = json!({ "active": true, "scope": "notes:read", "exp": later, "client_id": "job" });
    let by_name = || by_endpoint().subject_claim("username");
    assert_eq!(whoami(by_name(), &issuer, user.clone()).await.as_deref(), Ok("ada of app"));
    assert_eq!(whoami(by_name(), &issuer, machine.clone()).await.as_deref(), Ok("client:job of job"));
    // all users of a client would be one principal
    assert_eq!(whoami(by_endpoint(), &issuer, user.clone()).await, Err(401));
    assert_eq!(whoami(config(&issuer).subject_claim("username"), &issuer, user.clone()).await, Err(401));
    let mut disguised = user;
    disguised["username"] = "client:job".into();
    assert_eq!(whoami(by_name(), &issuer, disguised).await, Err(401), "a user who is called like a machine");
    // as oidc-provider answers about an opaque token of client credentials
    let credentials = json!({
        "active": true, "client_id": "job", "exp": later, "iat": unix_now(), "iss": issuer.url,
        "scope": "notes:read", "token_type": "Bearer",
    });
    assert_eq!(whoami(by_endpoint(), &issuer, credentials.clone()).await.as_deref(), Ok("job of job"));
    assert_eq!(whoami(config(&issuer), &issuer, credentials.clone()).await, Err(401));
    let mut other = credentials.clone();
    other["aud"] = "https://other.example.com".into();
    assert_eq!(whoami(by_endpoint(), &issuer, other).await, Err(401), "an `aud` that is there counts");
    let mut endless = credentials;
    endless.as_object_mut().unwrap().remove("exp");
    assert_eq!(whoami(by_endpoint(), &issuer, endless).await.as_deref(), Ok("job of job"));
}
