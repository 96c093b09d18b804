//! Routes of the program itself, as `utoipa` describes them: their layers, extractors and authorization run.

#![allow(unused_qualifications, reason = "of what `utoipa` generates")]

use std::collections::BTreeMap;

use axum::{
    Extension, Json, Router,
    body::{Body, to_bytes},
    extract::{Form, Path, Query, Request},
    http::{HeaderMap, StatusCode},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
    routing::{get, post, put},
};
use mcp_runtime::{Principal, testing::TestServer};
use mcp_runtime_openapi::OpenApi;
use mcp_tests::support::serve_router;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_service::Service as _;
use utoipa::{IntoParams, ToSchema};

/// The URL of a server of these routes, until the test ends.
async fn listening(routes: Router) -> String {
    format!("http://{}", serve_router(routes).await)
}

fn serve(api: OpenApi) -> TestServer {
    TestServer::new(mcp_runtime::server!().add(api)).expect("a server")
}

async fn authorized(request: Request, next: Next) -> Response {
    match request.headers().get("authorization") {
        Some(token) if token == "Bearer right" => next.run(request).await,
        _ => (StatusCode::UNAUTHORIZED, "log in first").into_response(),
    }
}

/// An order.
#[utoipa::path(get, path = "/orders/{id}", operation_id = "getOrder", params(
    ("id" = String, Path), ("q" = Option<String>, Query), ("X-Note" = Option<String>, Header),
))]
async fn order(
    Path(id): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    caller: Option<Extension<Principal>>,
) -> Json<Value> {
    let caller = caller.map(|caller| caller.subject().to_owned());
    let (tenant, note) = (text(&headers, "x-tenant"), text(&headers, "x-note"));
    Json(json!({ "id": id, "query": query, "tenant": tenant, "note": note, "caller": caller }))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A shop.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Shop {
    Tea,
    Coffee,
}

/// What is looked for.
#[derive(Debug, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct Search {
    text: String,
    at_most: Option<u8>,
    price: Option<f64>,
    is_new: Option<bool>,
    shop: Option<Shop>,
}

/// How a search is remembered.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct Saved {
    search: Search,
    names: Vec<String>,
    levels: BTreeMap<String, i64>,
    #[schema(value_type = Option<Object>)]
    more: Option<Value>,
}

/// What has arrived.
#[derive(Debug, Serialize, ToSchema)]
struct Found<T> {
    shop: Shop,
    page: u16,
    level: Option<String>,
    cookie: Option<String>,
    given: T,
}

#[utoipa::path(get, path = "/search/{shop}/{page}", responses((status = 200, body = Found<Search>)), params(
    ("shop" = Shop, Path), ("page" = u16, Path), Search,
    ("X-Level" = Option<f32>, Header), ("seen" = Option<bool>, Cookie),
))]
async fn search(
    Path((shop, page)): Path<(Shop, u16)>,
    Query(given): Query<Search>,
    headers: HeaderMap,
) -> Json<Found<Search>> {
    let [level, cookie] = ["x-level", "cookie"].map(|name| text(&headers, name).map(str::to_owned));
    Json(Found { shop, page, level, cookie, given })
}

#[utoipa::path(post, path = "/save", request_body = Saved, responses((status = 201, body = Saved)))]
async fn save(Json(saved): Json<Saved>) -> (StatusCode, Json<Saved>) {
    (StatusCode::CREATED, Json(saved))
}

#[utoipa::path(put, path = "/send", responses((status = 200, body = Search)),
    request_body(content = Search, content_type = "application/x-www-form-urlencoded"))]
async fn send(Form(search): Form<Search>) -> Json<Search> {
    Json(search)
}

#[derive(Deserialize, ToSchema)]
struct New {
    item: Option<String>,
}

#[utoipa::path(post, path = "/orders", operation_id = "createOrder", request_body = New)]
async fn create(Json(New { item }): Json<New>) -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({ "created": { "item": item } })))
}

#[utoipa::path(get, path = "/large", operation_id = "getLarge")]
async fn large() -> String {
    "x".repeat(4000)
}

fn application() -> Router {
    let routes = Router::new().route("/orders/{id}", get(order)).route("/large", get(large));
    let routes = routes.route("/search/{shop}/{page}", get(search)).route("/save", post(save));
    let guarded = Router::new().route("/orders", post(create)).layer(from_fn(authorized));
    routes.route("/send", put(send)).merge(guarded)
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(order, search, save, send, create, large))]
struct Description;

fn description() -> utoipa::openapi::OpenApi {
    <Description as utoipa::OpenApi>::openapi()
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

    // what is taken from the client's request is not for the model to say
    let server = serve(api().forward_headers(["x-note"])).header("X-Note", "client's");
    server.call("get_order", json!({ "id": "1", "X-Note": "model's" })).await.expect_failure("X-Note");
    let reply = server.call("get_order", json!({ "id": "1" })).await;
    assert_eq!(reply.value()["structuredContent"]["note"], "client's");

    let without = serve(api()).header("X-Tenant", "t1");
    let reply = without.call("get_order", json!({ "id": "1" })).await;
    reply.expect_json(&json!({ "id": "1", "query": {}, "tenant": null, "note": null, "caller": null }));
    without.call("get_order", json!({ "id": ".." })).await.expect_failure("leads to another path");
}

#[tokio::test]
async fn what_utoipa_describes_is_called_as_by_a_request_that_is_written_by_hand() {
    let by_http = OpenApi::parse(description().to_json().expect("JSON")).expect("a description");
    let servers = [serve(api()), serve(by_http.server(listening(application()).await))];
    let json = "application/json";
    for (tool, arguments, method, target, header, body) in [
        (
            "search",
            json!({ "shop_path": "tea", "page": 3, "text": "a b&c=ü/?#", "atMost": 7, "price": -1.5e-3, "isNew": false,
                "shop_query": "coffee", "X-Level": 0.25, "seen": true }),
            "GET",
            "/search/tea/3?text=a%20b%26c%3D%C3%BC%2F%3F%23&atMost=7&price=-0.0015&isNew=false&shop=coffee",
            [("x-level", "0.25"), ("cookie", "seen=true")],
            "",
        ),
        (
            "search",
            json!({ "shop_path": "coffee", "page": 0, "text": "" }),
            "GET",
            "/search/coffee/0?text=",
            [("accept", json); 2],
            "",
        ),
        (
            "save",
            json!({ "search": { "text": "\"", "price": 1 }, "names": ["a", ""], "levels": { "x": -9_007_199_254_740_993_i64 },
                "more": { "any": [null, { "b": 1.0 }] } }),
            "POST",
            "/save",
            [("content-type", json); 2],
            r#"{"search":{"text":"\"","price":1},"names":["a",""],"levels":{"x":-9007199254740993},"more":{"any":[null,{"b":1.0}]}}"#,
        ),
        (
            "send",
            json!({ "text": "a+b &\n", "isNew": true, "shop": "tea" }),
            "PUT",
            "/send",
            [("content-type", "application/x-www-form-urlencoded"); 2],
            "text=a%2Bb+%26%0A&isNew=true&shop=tea",
        ),
    ] {
        let request = Request::builder().method(method).uri(target);
        let request = header.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let response =
            application().call(request.body(Body::from(body)).expect("a request")).await.expect("a response");
        assert!(response.status().is_success(), "{tool}: {response:?}");
        let by_hand = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        let by_hand: Value = serde_json::from_slice(&by_hand).expect("JSON");
        for server in &servers {
            server.call(tool, arguments.clone()).await.expect_json(&by_hand);
        }
    }
    for server in &servers {
        let wrong = json!({ "shop_path": "milk", "page": -1, "text": "x" });
        server.call("search", wrong).await.expect_failure("page");
    }
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
    let other = || {
        OpenApi::parse(description().to_json().expect("JSON"))
            .expect("a description")
            .server("https://x.example")
    };
    for (api, why) in [
        (other().forward_authorization(), "only routes of the program itself"),
        (api().forward_headers(["Host"]), "`host` says what the client's request is"),
        (api().forward_headers(["a b"]), "`a b` is not the name of a header"),
    ] {
        let error = mcp_runtime::server!().add(api).build().expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}
