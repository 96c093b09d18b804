//! Routes of the program itself: their layers, extractors and authorization run.

use std::collections::BTreeMap;

use axum::{
    Extension, Json, Router,
    extract::{Path, Query, Request},
    http::{HeaderMap, StatusCode},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use mcp_runtime::{
    Principal,
    serde_json::{Value, json},
};
use mcp_runtime_openapi::OpenApi;

use crate::support::serve;

async fn authorized(request: Request, next: Next) -> Response {
    match request.headers().get("authorization") {
        Some(token) if token == "Bearer right" => next.run(request).await,
        _ => (StatusCode::UNAUTHORIZED, "log in first").into_response(),
    }
}

async fn order(
    Path(id): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    caller: Option<Extension<Principal>>,
) -> Json<Value> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let caller = caller.map(|caller| caller.subject().to_owned());
    Json(
        json!({ "id": id, "query": query, "tenant": header("x-tenant"), "note": header("x-note"), "caller": caller }),
    )
}

async fn create(Json(order): Json<Value>) -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({ "created": order })))
}

fn application() -> Router {
    let routes =
        Router::new().route("/orders/{id}", get(order)).route("/large", get(async || "x".repeat(4000)));
    let guarded = Router::new().route("/orders", post(create)).layer(from_fn(authorized));
    routes.merge(guarded)
}

fn description() -> Value {
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
    let members = json!({ "type": "object", "properties": { "item": { "type": "string" } } });
    json!({ "openapi": "3.1.0", "paths": {
        "/orders/{id}": { "get": { "operationId": "getOrder", "parameters": [
            parameter("id", "path"), parameter("q", "query"), parameter("X-Note", "header"),
        ] } },
        "/orders": { "post": { "operationId": "createOrder", "requestBody": {
            "required": true, "content": { "application/json": { "schema": members } },
        } } },
        "/large": { "get": { "operationId": "getLarge" } },
    } })
}

fn api() -> OpenApi {
    OpenApi::routes(application(), &description()).expect("a description")
}

#[tokio::test]
async fn a_call_goes_through_extractors_with_the_caller_and_chosen_headers() {
    let server = serve(api().forward_headers(["X-Tenant"]));
    let server =
        server.caller(Principal::new("issuer", "ada")).header("X-Tenant", "t1").header("X-Secret", "s");
    let reply = server.call("get_order", json!({ "id": "a/b ü", "q": "x&y", "X-Note": "n" })).await;
    reply.expect_json(
        &json!({ "id": "a/b ü", "query": { "q": "x&y" }, "tenant": "t1", "note": "n", "caller": "ada" }),
    );

    let without = serve(api()).header("X-Tenant", "t1");
    let reply = without.call("get_order", json!({ "id": "1" })).await;
    reply.expect_json(&json!({ "id": "1", "query": {}, "tenant": null, "note": null, "caller": null }));
    without.call("get_order", json!({ "id": ".." })).await.expect_failure("leads to another path");
}

#[tokio::test]
async fn the_authorization_of_the_application_decides() {
    let order = || json!({ "item": "tea" });
    let call = async |api: OpenApi, token: &str| {
        serve(api).header("Authorization", token).call("create_order", order()).await
    };
    call(api(), "Bearer right").await.expect_failure("the API answered 401 Unauthorized: log in first");
    call(api().forward_authorization(), "Bearer wrong").await.expect_failure("401 Unauthorized");
    let reply = call(api().forward_authorization(), "Bearer right").await;
    reply.expect_json(&json!({ "created": { "item": "tea" } }));
}

#[tokio::test]
async fn a_response_of_routes_is_limited_as_any_other() {
    let server = serve(api().max_response(1000));
    server.call("get_large", json!({})).await.expect_failure("the API answered more than 1000 bytes");
}

#[test]
fn headers_of_clients_go_to_no_other_server() {
    let other =
        || OpenApi::parse(description().to_string()).expect("a description").server("https://x.example");
    for (api, why) in [
        (other().forward_authorization(), "only routes of the program itself"),
        (api().forward_headers(["Host"]), "`host` says what the client's request is"),
        (api().forward_headers(["a b"]), "`a b` is not the name of a header"),
    ] {
        let error = mcp_runtime::server!().add(api).build().expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}
