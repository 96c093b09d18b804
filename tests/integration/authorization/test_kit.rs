//! The authorization server of the test kit, and tokens in memory.

use std::time::SystemTime;

use mcp_runtime::{
    auth::{ApiKeys, Claims, Oauth},
    testing::TestIssuer,
};
use serde::Deserialize;

use super::{RESOURCE, bearing, call};
use crate::prelude::*;

#[derive(Deserialize)]
struct Tenant {
    tenant: String,
}

/// The notes of the caller's tenant
#[mcp_tool(scopes("notes:read"))]
async fn notes_of_tenant(caller: &Principal, #[mcp(inject)] claims: Claims<Tenant>) -> String {
    format!("{} of {}", caller.subject(), claims.0.tenant)
}

/// The header of the request
#[mcp_tool]
fn shows_authorization(ctx: &Context) -> String {
    ctx.header("authorization").unwrap_or_default().to_owned()
}

fn server(issuer: &TestIssuer) -> ServerBuilder {
    let oauth = Oauth::issuer(issuer.url()).resource(RESOURCE).scopes(["notes:read"]);
    mcp_runtime::server!().tool::<notes_of_tenant>().tool::<shows_authorization>().auth(oauth)
}

fn ada(issuer: &TestIssuer) -> Principal {
    let claims = json!({ "tenant": "acme" }).as_object().cloned().unwrap_or_default();
    Principal::new(issuer.url(), "ada").with_scopes(["notes:read"]).with_claims(claims)
}

#[tokio::test]
async fn a_token_of_the_test_issuer_is_accepted_over_http_and_in_memory() {
    let issuer = TestIssuer::start().await.unwrap();
    let token = issuer.token(&ada(&issuer), RESOURCE);
    let served = HttpServer::start(server(&issuer)).await;
    let reply = bearing(call("notes_of_tenant"), &token).send(served.address).await;
    assert_eq!(text_of(&reply.json()), "ada of acme");
    let client = TestServer::new(server(&issuer)).unwrap().token(&token).await.unwrap();
    client.call("notes_of_tenant", json!({})).await.expect_text("ada of acme");
    client.call("shows_authorization", json!({})).await.expect_text(&format!("Bearer {token}"));
    // another one whose keys have changed is fetched again
    issuer.rotate_keys().unwrap();
    let token = issuer.token(&ada(&issuer), RESOURCE);
    let client = TestServer::new(server(&issuer)).unwrap().token(&token).await.unwrap();
    client.call("notes_of_tenant", json!({})).await.expect_text("ada of acme");
}

#[tokio::test]
async fn every_reason_to_refuse_a_token_can_be_tried() {
    let issuer = TestIssuer::start().await.unwrap();
    let other = TestIssuer::start().await.unwrap();
    let ada = ada(&issuer);
    let past = SystemTime::now() - Duration::from_secs(300);
    for (token, reason) in [
        (issuer.token(&ada, "https://elsewhere.example.com/mcp"), "401: the token is not for this resource"),
        (issuer.token(&ada.clone().with_expiry(past), RESOURCE), "401: the token has expired"),
        (issuer.token(&Principal::new(other.url(), "ada"), RESOURCE), "401: the token is of another issuer"),
        (other.token(&ada, RESOURCE), "401: "),
        ("0123456789abcdef".to_owned(), "401: the token is not a signed JWT"),
        ("line\nend".to_owned(), "400: "),
    ] {
        let refused = TestServer::new(server(&issuer)).unwrap().token(&token).await.unwrap_err();
        assert!(refused.starts_with(reason), "{reason}: {refused}");
    }
    let poor = issuer.token(&Principal::new(issuer.url(), "bob"), RESOURCE);
    let client = TestServer::new(server(&issuer)).unwrap().token(&poor).await.unwrap();
    assert_eq!(client.list_tools().await.len(), 2, "the scope can be acquired");
    client.call("notes_of_tenant", json!({})).await.expect_code(-32603);
}

#[tokio::test]
async fn api_keys_are_tried_in_memory_like_tokens() {
    let keys = ApiKeys::new([("0123456789abcdef", Principal::new("i", "ada"))]);
    let server = mcp_runtime::server!().auth(keys).build().unwrap();
    TestServer::of(&server).token("0123456789abcdef").await.unwrap();
    let refused = TestServer::of(&server).token("fedcba9876543210").await.unwrap_err();
    assert_eq!(refused, "401: the API key is unknown");
}
