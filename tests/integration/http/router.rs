//! A server inside a user's axum application.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::prelude::*;

#[derive(Clone)]
struct Principal(String);

#[derive(Clone)]
struct Tenant(u32);

/// Returns the principal and the tenant
#[mcp_tool]
async fn serves(principal: &Principal, tenant: Option<&Tenant>) -> String {
    format!("{} {:?}", principal.0, tenant.map(|t| t.0))
}

async fn identify(mut request: Request, next: Next) -> Response {
    let (user, tenant) = {
        let header =
            |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        (header("x-user"), header("x-tenant"))
    };
    if let Some(user) = user {
        request.extensions_mut().insert(Arc::new(Principal(user)));
    }
    if let Some(tenant) = tenant.and_then(|t| t.parse().ok()) {
        request.extensions_mut().insert(Tenant(tenant));
    }
    next.run(request).await
}

fn builder() -> ServerBuilder {
    let builder = Server::builder("router", "1").tool::<serves>();
    builder.http(|http| http.from_request::<Principal>().from_request::<Tenant>())
}

fn server() -> Server {
    builder().build().expect("a server")
}

fn call() -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({"name": "serves"}))
}

#[tokio::test]
async fn a_server_works_next_to_other_routes_and_under_layers() {
    let app =
        Router::new().route("/health", get(async || "well")).merge(server().into_router().expect("a router"));
    let at = serve_router(app.layer(middleware::from_fn(identify))).await;
    assert_eq!(HttpRequest::new("GET").path("/health").send(at).await.text(), "well");
    let reply = call().header("X-User", "ada").header("X-Tenant", "7").send(at).await.json();
    assert_eq!(text_of(&reply), "ada Some(7)");
    let reply = call().header("X-User", "ada").send(at).await.json();
    assert_eq!(text_of(&reply), "ada None");
    // the extension is missing: a private error, not a panic
    let reply = call().send(at).await.json();
    assert_eq!((&reply["result"]["isError"], text_of(&reply)), (&json!(true), "tool 'serves' failed"));
    assert_eq!(call().with("Host", "evil.example").send(at).await.status, 403);
}

#[tokio::test]
async fn a_server_is_merged_into_a_router_with_any_state_and_served_without_one() {
    #[derive(Clone)]
    struct AppState(&'static str);

    let app: Router<AppState> = Router::new()
        .route("/state", get(async |State(state): State<AppState>| state.0))
        .merge(server().into_router().expect("a router"))
        .merge(builder().http(|http| http.path("/two").without_health()).into_router().expect("a router"))
        .merge(server().into_service().expect("a service").metadata_router());
    let at = serve_router(app.with_state(AppState("well"))).await;
    assert_eq!(HttpRequest::new("GET").path("/state").send(at).await.text(), "well");
    for path in ["/mcp", "/two"] {
        assert_eq!(call().path(path).send(at).await.status, 200);
    }
    // the type is inferred
    let router = server().into_router().expect("a router");
    let request = Request::get("/healthz").body(Body::empty()).expect("a request");
    assert_eq!(router.oneshot(request).await.expect("a response").status(), 200);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    let router = server().into_router().expect("a router");
    let serving = spawn(async move { axum::serve(listener, router).await });
    assert_eq!(call().send(at).await.status, 200);
    serving.abort();
}

#[tokio::test]
async fn a_port_alone_is_one_of_the_loopback_interface() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let text = format!("127.0.0.1:{port}");
    let address = taken.local_addr().expect("an address");
    let built = server();
    for error in [
        builder().serve_http(port).await,
        built.clone().serve_http(port).await,
        built.clone().serve_http(&*text).await,
        built.clone().serve_http(text.clone()).await,
        built.clone().serve_http(("127.0.0.1", port)).await,
        built.serve_http(address).await,
    ] {
        assert!(error.expect_err("it is taken").to_string().contains("cannot listen"));
    }
    // another port can be had, and the task may be moved to another thread
    drop(spawn(server().serve_http(0)));
}

#[tokio::test]
async fn a_server_can_be_nested() {
    let nested = Router::new().nest("/api", server().into_router().expect("a router"));
    let nested = nested.layer(middleware::from_fn(identify));
    let at = serve_router(nested).await;
    let reply = call().header("X-User", "bob").path("/api/mcp").send(at).await.json();
    assert_eq!(text_of(&reply), "bob None");
    assert_eq!(call().send(at).await.status, 404);
}

#[tokio::test]
async fn the_endpoint_of_http_sse_is_right_below_any_prefix() {
    let router = || {
        let builder = Server::builder("sse", "1").http(|http| http.legacy_sse("/sse"));
        builder.build().and_then(Server::into_router).expect("a router")
    };
    let app = Router::new()
        .merge(router())
        .nest("/one", Router::new().nest("/two", router()))
        .nest_service("/service", router())
        .nest("/{tenant}/x", router());
    let at = serve_router(app).await;
    for path in ["/sse", "/one/two/sse", "/service/sse", "/acme/x/sse"] {
        // reads the path from the first event and posts to it
        let mut client = HttpSse::open(at, path, &[]).await;
        assert_eq!(client.initialize(&json!({})).await["result"]["protocolVersion"], "2024-11-05");
    }
}

#[tokio::test]
async fn a_service_is_one_endpoint_at_any_path() {
    let service = server().into_service().expect("a service");
    let app = Router::new().nest_service("/tools/mcp", service).layer(middleware::from_fn(identify));
    let at = serve_router(app).await;
    let reply = call().header("X-User", "ada").path("/tools/mcp").send(at).await.json();
    assert_eq!(text_of(&reply), "ada None");
    for path in ["/mcp", "/tools/mcp/", "/tools/mcp/mcp/x", "/tools"] {
        let status = call().header("X-User", "ada").path(path).send(at).await.status;
        assert_eq!(status, if path.starts_with("/tools/mcp") { 200 } else { 404 }, "{path}");
    }
    let elsewhere = call().path("/tools/mcp").with("Host", "evil.example").send(at).await;
    assert_eq!(elsewhere.status, 403, "hosts are checked there as well");
}

#[tokio::test]
async fn a_graceful_shutdown_ends_listen_streams() {
    let service = server().into_service().expect("a service");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let app = service.clone().into_router();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move {
        stopped.await.expect("told to stop");
        service.stop();
    });
    let serving = spawn(async move { serving.await });
    let listen = HttpRequest::modern(
        1,
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    let mut modern = EventStream::open(&listen, at).await.expect("a stream");
    modern.message().await;
    let session = HttpRequest::initialize("2025-06-18").send(at).await.session();
    let mut legacy =
        EventStream::open(&HttpRequest::standalone_stream(&session), at).await.expect("a stream");
    stop.send(()).expect("a server");
    assert_eq!(modern.message().await["id"], 1, "its result");
    while legacy.next().await.is_some() {}
    drop((modern, legacy));
    serving.await.expect("no panic").expect("no error");
}
