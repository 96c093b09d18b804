//! The keys of the authorization server: rotated, out of reach, and asked for no more often than needed.

use super::{RESOURCE, bearing, call, oauth, serve, status};
use crate::prelude::*;

#[tokio::test]
async fn a_rotated_key_is_fetched_once_and_what_the_old_one_signed_is_refused() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer).key_cooldown(Duration::ZERO)).await;
    let old = issuer.token("ada", RESOURCE, "");
    assert_eq!(status(&served, &old).await, 200);
    issuer.rotate("second");
    assert_eq!(status(&served, &old).await, 200, "the keys are not fetched before they are needed");
    let new = issuer.token("ada", RESOURCE, "");
    assert_eq!(status(&served, &new).await, 200);
    assert_eq!(issuer.key_requests(), 2);
    assert_eq!(status(&served, &old).await, 401, "though it was accepted before");
}

#[tokio::test]
async fn a_key_that_is_withdrawn_is_noticed_though_its_tokens_are_known() {
    let issuer = Issuer::start().await;
    let config = oauth(&issuer).key_cooldown(Duration::ZERO).key_max_age(Duration::from_millis(50));
    let (served, _) = serve(config).await;
    let token = issuer.token("ada", RESOURCE, "");
    assert_eq!(status(&served, &token).await, 200);
    issuer.rotate("second");
    let mut statuses = Vec::new();
    while statuses.last() != Some(&401) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        statuses.push(status(&served, &token).await);
    }
    assert!(statuses.iter().all(|status| [200, 401].contains(status)), "{statuses:?}");
}

#[tokio::test]
async fn unknown_keys_have_the_keys_fetched_once_in_a_while() {
    let issuer = Issuer::start().await;
    let (served, _) = serve(oauth(&issuer)).await;
    let forger = TestKey::new("forged");
    let claims = issuer.claims("ada", RESOURCE, "");
    let requests: Vec<_> = (0..20)
        .map(|_| {
            let request = bearing(call("whoami"), &forger.sign(&claims));
            spawn(async move { request.send(served.address).await.status })
        })
        .collect();
    for request in requests {
        assert_eq!(request.await.unwrap(), 401);
    }
    assert_eq!(issuer.key_requests(), 1);
    issuer.rotate("second");
    let new = bearing(call("whoami"), &issuer.token("ada", RESOURCE, ""));
    assert_eq!(new.send(served.address).await.status, 401, "during the pause");
    assert_eq!(issuer.key_requests(), 1);
}

#[tokio::test]
async fn keys_serve_on_while_the_authorization_server_is_out_of_order() {
    let issuer = Issuer::start().await;
    let config = oauth(&issuer).key_cooldown(Duration::ZERO).key_max_age(Duration::ZERO);
    let (served, _) = serve(config).await;
    let send = async |subject: &str| status(&served, &issuer.token(subject, RESOURCE, "")).await;
    issuer.set_down(true);
    let refused = bearing(call("whoami"), &issuer.token("ada", RESOURCE, "")).send(served.address).await;
    assert_eq!(refused.status, 503, "no key is known");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(!refused.text().contains(&issuer.url), "the cause is for the log");
    issuer.set_down(false);
    assert_eq!(send("ada").await, 200);
    issuer.set_down(true);
    let before = issuer.key_requests();
    for subject in ["bob", "eve"] {
        assert_eq!(send(subject).await, 200, "the keys are old, but known");
    }
    assert!(soon(|| issuer.key_requests() > before).await, "they are fetched again in the background");
}

#[tokio::test]
async fn keys_that_could_not_be_fetched_for_too_long_are_not_used() {
    let issuer = Issuer::start().await;
    let config = oauth(&issuer).key_cooldown(Duration::ZERO).key_max_outage(Duration::from_millis(50));
    let (served, _) = serve(config).await;
    let send = async |subject: &str| status(&served, &issuer.token(subject, RESOURCE, "")).await;
    assert_eq!(send("ada").await, 200);
    issuer.set_down(true);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(send("bob").await, 503);
    issuer.set_down(false);
    assert_eq!(send("bob").await, 200);
}

#[tokio::test]
async fn an_issuer_that_names_another_in_its_metadata_is_not_believed() {
    let issuer = Issuer::start().await;
    // the same server by another name
    let other = issuer.url.replace("127.0.0.1", "localhost");
    let config = mcp_runtime::auth::Oauth::issuer(&other).resource(RESOURCE);
    let (served, entered) = serve(config).await;
    let mut claims = issuer.claims("ada", RESOURCE, "");
    claims["iss"] = json!(other);
    let request = bearing(call("whoami"), &issuer.key().sign(&claims));
    // what it publishes names the host that was asked for, unlike a real server
    assert_eq!(request.send(served.address).await.status, 200);
    assert_eq!(entered.count(), 1);
    let wrong = mcp_runtime::auth::Oauth::issuer(format!("{}/", issuer.url)).resource(RESOURCE);
    let (served, entered) = serve(wrong).await;
    claims["iss"] = json!(format!("{}/", issuer.url));
    let request = bearing(call("whoami"), &issuer.key().sign(&claims));
    assert_eq!(request.send(served.address).await.status, 503);
    assert_eq!(entered.count(), 0);
}

#[tokio::test]
async fn two_keys_of_one_name_are_both_tried() {
    let issuer = Issuer::start().await;
    let first = issuer.key();
    issuer.add_key(TestKey::new("first"));
    let (served, _) = serve(oauth(&issuer)).await;
    let claims = issuer.claims("ada", RESOURCE, "");
    for key in [first, issuer.key()] {
        assert_eq!(status(&served, &key.sign(&claims)).await, 200);
    }
    let foreign = TestKey::new("first").sign(&claims);
    assert_eq!(status(&served, &foreign).await, 401);
}

#[tokio::test]
async fn a_key_that_was_replaced_under_its_name_is_fetched_once() {
    let issuer = Issuer::start().await;
    let (eager, _) = serve(oauth(&issuer).key_cooldown(Duration::ZERO)).await;
    let (served, _) = serve(oauth(&issuer)).await;
    let send =
        async |to: &HttpServer, token: &str| bearing(call("whoami"), token).send(to.address).await.status;
    for server in [&eager, &served] {
        assert_eq!(send(server, &issuer.token("ada", RESOURCE, "")).await, 200);
    }
    issuer.rotate("first");
    assert_eq!(send(&eager, &issuer.token("ada", RESOURCE, "")).await, 200);
    assert_eq!(issuer.key_requests(), 3);
    // forged ones do not have them fetched each time
    let claims = issuer.claims("ada", RESOURCE, "");
    for _ in 0..20 {
        assert_eq!(send(&served, &TestKey::new("first").sign(&claims)).await, 401);
    }
    assert_eq!(issuer.key_requests(), 3, "they were fetched a moment ago");
}
