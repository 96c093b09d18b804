//! The caller as a parameter of functions, and what its issuer says about it, whatever has identified it.

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    response::Response,
};
use mcp_runtime::auth::Claims;
use serde::Deserialize;
use serde_json::Map;

use super::{RESOURCE, bearing};
use crate::prelude::*;

#[derive(Deserialize)]
struct Tenant {
    tenant: String,
}

/// The caller and its tenant
#[mcp_tool]
async fn tenant(caller: &Principal, #[mcp(inject)] claims: Claims<Tenant>) -> String {
    format!("{} of {}", caller.subject(), claims.0.tenant)
}

/// The caller, if there is one
#[mcp_tool]
fn maybe(caller: Option<&Principal>) -> String {
    caller.map_or("no one".into(), |caller| format!("{} {:?}", caller.subject(), caller.scopes()))
}

/// The caller, as a resource
#[mcp_resource(uri = "who://am/i")]
fn resource(caller: &Principal) -> String {
    caller.subject().to_owned()
}

/// The caller, as a prompt
#[mcp_prompt]
fn prompt(caller: &Principal) -> String {
    caller.subject().to_owned()
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<tenant>().tool::<maybe>().resource::<resource>().prompt::<prompt>()
}

fn ada(claims: Value) -> Principal {
    let Value::Object(claims) = claims else { unreachable!("an object") };
    Principal::new("test", "ada").with_scopes(["x"]).with_claims(claims)
}

#[tokio::test]
async fn functions_of_every_kind_take_the_caller() {
    let server = TestServer::new(builder()).unwrap().caller(ada(json!({ "tenant": "acme", "more": 1 })));
    server.call("tenant", json!({})).await.expect_text("ada of acme");
    server.call("maybe", json!({})).await.expect_text("ada [\"x\"]");
    assert_eq!(server.read("who://am/i").await.value()["contents"][0]["text"], "ada");
    server.request("prompts/get", json!({ "name": "prompt" })).await.expect_ok();
}

#[tokio::test]
async fn a_function_that_needs_the_caller_is_not_entered_without_one() {
    let server = TestServer::new(builder()).unwrap();
    let refused = server.call("tenant", json!({})).await;
    assert!(
        refused.is_error() && !refused.to_string().contains("Principal"),
        "the cause is private: {refused}"
    );
    server.call("maybe", json!({})).await.expect_text("no one");
    let server = server.caller(Principal::new("test", "ada"));
    let refused = server.call("tenant", json!({})).await;
    assert!(refused.is_error() && !refused.to_string().contains("tenant`"), "it has no claims: {refused}");
    let server = server.caller(ada(json!({ "tenant": 7 })));
    assert!(server.call("tenant", json!({})).await.is_error());
}

/// What a user's middleware does: it knows who sent a request, and puts that into it.
async fn sign_in(mut request: Request, next: Next) -> Response {
    let claims = Map::from_iter([("tenant".to_owned(), json!("initech"))]);
    request.extensions_mut().insert(Principal::new("middleware", "bob").with_claims(claims));
    next.run(request).await
}

#[tokio::test]
async fn the_caller_is_the_same_whether_middleware_or_a_token_names_it() {
    let call = HttpRequest::modern(1, "tools/call", json!({ "name": "tenant" }));
    let service = builder().http(|http| http.caller_from::<Principal>()).into_service().unwrap();
    let app = Router::new().nest_service("/mcp", service).layer(middleware::from_fn(sign_in));
    let address = serve_router(app).await;
    assert_eq!(text_of(&call.send(address).await.json()), "bob of initech");

    let issuer = Issuer::start().await;
    let served = HttpServer::start(builder().auth(super::oauth(&issuer))).await;
    let token = issuer.token("ada", RESOURCE, "");
    assert_eq!(text_of(&bearing(call.clone(), &token).send(served.address).await.json()), "ada of acme");

    // mounted in a program of the user's, where the metadata is at the root
    let service = builder().auth(super::oauth(&issuer)).into_service().unwrap();
    let app = Router::new().merge(service.metadata_router()).nest_service("/deep/mcp", service);
    let address = serve_router(app).await;
    let reply = bearing(call.clone().path("/deep/mcp"), &token).send(address).await;
    assert_eq!(text_of(&reply.json()), "ada of acme");
    assert_eq!(call.path("/deep/mcp").send(address).await.status, 401);
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let metadata = HttpRequest::new("GET").path(path).send(address).await;
        assert_eq!(metadata.json()["resource"], RESOURCE);
    }
    let router = builder().auth(super::oauth(&issuer)).into_router().unwrap();
    let address = serve_router(router).await;
    let metadata =
        HttpRequest::new("GET").path("/.well-known/oauth-protected-resource/mcp").send(address).await;
    assert_eq!(metadata.json()["authorization_servers"], json!([issuer.url]));
}

#[tokio::test]
async fn a_server_that_knows_callers_in_two_places_is_not_built() {
    let twice = || builder().auth(mcp_runtime::auth::ApiKeys::new([("0123456789abcdef", ada(json!({})))]));
    for (builder, reason) in [
        (twice().http(|http| http.caller(|_| None)), "identified twice"),
        (twice().http(|http| http.trust_all_callers()), "contradicts"),
        (builder().mount("inner", twice()), "authenticates its callers"),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
