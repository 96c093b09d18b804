//! Access tokens with the claims that common authorization servers document, against the settings that
//! `docs/authorization.md` has for each. The test kit signs them: no provider is asked.

use mcp_runtime::{auth::Oauth, testing::TestIssuer};

use super::RESOURCE;
use crate::prelude::*;

/// The caller's subject, client and scopes
#[mcp_tool]
fn describe(caller: &Principal) -> String {
    let mut scopes = caller.scopes().to_vec();
    scopes.sort();
    format!("{} | {} | {}", caller.subject(), caller.client_id().unwrap_or("-"), scopes.join(" "))
}

/// A token with these claims, and those that every provider has.
fn sign(issuer: &TestIssuer, claims: &Value) -> String {
    let mut all = claims.as_object().cloned().unwrap_or_default();
    all.insert("iss".to_owned(), issuer.url().into());
    all.insert("iat".to_owned(), unix_now().into());
    all.insert("exp".to_owned(), (unix_now() + 300).into());
    issuer.sign(all)
}

/// The token is accepted with this description of its caller; with another value of the claim that names this server, it
/// is refused.
async fn check(
    configure: impl Fn(Oauth) -> Oauth,
    claims: Value,
    expected: &str,
    (audience, other): (&str, Value),
) {
    let issuer = TestIssuer::start().await.unwrap();
    let server = || {
        let oauth = configure(Oauth::issuer(issuer.url()).resource(RESOURCE));
        TestServer::new(mcp_runtime::server!().tool::<describe>().auth(oauth)).unwrap()
    };
    let client = server().token(&sign(&issuer, &claims)).await.unwrap();
    client.call("describe", json!({})).await.expect_text(expected);
    let mut foreign = claims.clone();
    foreign[audience] = other;
    let refused = server().token(&sign(&issuer, &foreign)).await.unwrap_err();
    assert!(refused.starts_with("401: the token is not for this resource"), "{refused}");
}

#[tokio::test]
async fn a_token_of_the_shape_of_keycloak_has_roles_of_its_realm_as_scopes() {
    within(check(
        |oauth| oauth.scope_claims(["scope", "/realm_access/roles"]),
        json!({
            "jti": "onrtac:1", "aud": [RESOURCE, "account"], "sub": "f:1:ada", "typ": "Bearer", "azp": "notes-app",
            "sid": "s1", "acr": "1", "realm_access": { "roles": ["writer"] },
            "resource_access": { "account": { "roles": ["view-profile"] } }, "scope": "openid notes:read",
            "email_verified": true, "preferred_username": "ada",
        }),
        "f:1:ada | notes-app | notes:read openid writer",
        // without an audience mapper
        ("aud", json!("account")),
    ))
    .await;
}

#[tokio::test]
async fn a_token_of_the_shape_of_auth0_has_permissions_as_scopes() {
    within(check(
        |oauth| oauth.scope_claims(["scope", "permissions"]),
        json!({
            "sub": "auth0|ada", "aud": [RESOURCE, "https://acme.auth0.com/userinfo"], "azp": "notes-app",
            "scope": "openid notes:read", "permissions": ["notes:write"],
        }),
        "auth0|ada | notes-app | notes:read notes:write openid",
        ("aud", json!(["https://acme.auth0.com/userinfo"])),
    ))
    .await;
}

#[tokio::test]
async fn a_token_of_the_shape_of_okta_has_a_list_of_scopes_and_its_own_audience() {
    within(check(
        |oauth| oauth.audience("api://default"),
        json!({
            "ver": 1, "jti": "AT.1", "aud": "api://default", "cid": "notes-app", "uid": "00u1", "auth_time": 1,
            "scp": ["openid", "notes:read"], "sub": "ada@example.com",
        }),
        "ada@example.com | notes-app | notes:read openid",
        // of the org authorization server
        ("aud", json!("https://acme.okta.com")),
    ))
    .await;
}

#[tokio::test]
async fn a_token_of_the_shape_of_entra_names_the_user_by_its_object_id_and_has_scp_or_roles() {
    let configure = |oauth: Oauth| {
        oauth
            .audience("6e74172b-0000-0000-0000-000000000000")
            .subject_claim("oid")
            .scope_prefix("https://mcp.example.com/mcp/")
            .scope_claims(["scp", "roles"])
    };
    let of_a_user = json!({
        "aud": "6e74172b-0000-0000-0000-000000000000", "azp": "notes-app", "azpacr": "1", "name": "Ada", "oid": "ada-oid",
        "preferred_username": "ada@example.com", "rh": "0.A", "scp": "notes:read", "roles": ["notes:write"],
        "sub": "pairwise", "tid": "tenant", "uti": "u", "ver": "2.0",
    });
    let of_a_program = json!({
        "aud": "6e74172b-0000-0000-0000-000000000000", "azp": "job", "idtyp": "app", "oid": "job-oid",
        "roles": ["notes:read"], "sub": "job-oid", "tid": "tenant", "ver": "2.0",
    });
    let other = || ("aud", json!("00000003-0000-0000-c000-000000000000"));
    check(configure, of_a_user, "ada-oid | notes-app | notes:read notes:write", other()).await;
    check(configure, of_a_program, "job-oid | job | notes:read", other()).await;
}

#[tokio::test]
async fn a_token_of_the_shape_of_cognito_is_for_the_server_by_its_client_id() {
    within(check(
        |oauth| oauth.audience("7app").audience_claim("client_id"),
        json!({
            "sub": "ada-uuid", "client_id": "7app", "origin_jti": "o", "token_use": "access", "version": 2,
            "scope": "openid notes/read", "auth_time": 1, "jti": "j", "username": "ada", "cognito:groups": ["staff"],
        }),
        "ada-uuid | 7app | notes/read openid",
        ("client_id", json!("8app")),
    ))
    .await;
}
