//! Layers of tower-http around the server, in the order of the page on transports.

use axum::{
    Router,
    extract::Request,
    http::{Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use tower_http::{
    compression::CompressionLayer,
    cors::{AllowHeaders, CorsLayer},
    limit::RequestBodyLimitLayer,
    timeout::TimeoutLayer,
    trace::TraceLayer,
};

use crate::prelude::*;

/// Repeats a text.
#[mcp_tool]
fn echo(text: String) -> String {
    text
}

/// Reports progress, and ends when it is released.
#[mcp_tool]
async fn talk(gate: &Gate, ctx: &Context) -> &'static str {
    ctx.progress(1.0).send();
    gate.wait().await;
    "talked"
}

/// Sends nothing.
#[mcp_tool]
async fn silent(gate: &Gate) {
    let _inside = gate.enter();
    std::future::pending::<()>().await;
}

const PAGE: &str = "https://app.example.com";

/// The middleware of the page on authentication.
async fn sign_in(request: Request, next: Next) -> Response {
    if request.method() != Method::OPTIONS && !request.headers().contains_key(header::AUTHORIZATION) {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response();
    }
    next.run(request).await
}

fn server(gate: &Gate) -> Router {
    let server = Server::builder("layered", "1").tool::<echo>().tool::<talk>().tool::<silent>();
    let server = server.state(gate.clone()).http(|http| http.allowed_origins([PAGE]));
    server.into_router().expect("a router")
}

fn call(tool: &str, arguments: &Value) -> HttpRequest {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "t" } });
    HttpRequest::modern(1, "tools/call", params).header("Authorization", "Bearer ada")
}

fn preflight() -> HttpRequest {
    HttpRequest::new("OPTIONS")
        .header("Origin", PAGE)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "authorization, mcp-method")
}

/// The head of the response to one request.
async fn head(request: HttpRequest, at: SocketAddr) -> HttpResponse {
    let mut connection = HttpConnection::open(at).await;
    connection.send(&request).await;
    connection.head().await
}

#[tokio::test]
async fn preflights_pass_the_documented_middleware() {
    let app = server(&Gate::default()).layer(middleware::from_fn(sign_in));
    let at = serve_router(app).await;
    let response = preflight().send(at).await;
    assert_eq!((response.status, response.header("access-control-allow-origin")), (204, Some(PAGE)));
    assert_eq!(response.header("access-control-allow-headers"), Some("authorization, mcp-method"));
    let called = call("echo", &json!({ "text": "a" })).header("Origin", PAGE).send(at).await;
    assert_eq!((called.status, called.header("access-control-allow-origin")), (200, Some(PAGE)));
    let refused = HttpRequest::post("{}").header("Origin", PAGE).send(at).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, None));
}

#[tokio::test]
async fn the_layers_of_the_page_keep_calls_and_streams_as_they_are() {
    let (gate, responses, ends) =
        (Gate::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, count_end) = (responses.clone(), ends.clone());
    let trace = TraceLayer::new_for_http()
        .on_response(move |_: &Response, _: Duration, _: &tracing::Span| {
            count.fetch_add(1, Ordering::SeqCst);
        })
        .on_eos(move |_: Option<&axum::http::HeaderMap>, _: Duration, _: &tracing::Span| {
            count_end.fetch_add(1, Ordering::SeqCst);
        });
    let cors = CorsLayer::new()
        .allow_origin([PAGE.parse().expect("an origin")])
        .allow_methods([Method::POST, Method::GET, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(["mcp-session-id".parse().expect("a name"), header::WWW_AUTHENTICATE]);
    // the last one is outermost
    let app = server(&gate)
        .layer(RequestBodyLimitLayer::new(2000))
        .layer(middleware::from_fn(sign_in))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(200)))
        .layer(CompressionLayer::new())
        .layer(cors)
        .layer(trace);
    let at = serve_router(app).await;

    // JSON is compressed, and a page reads it
    let long = || json!({ "text": "long ".repeat(100) });
    let compressed = call("echo", &long()).header("Accept-Encoding", "gzip").header("Origin", PAGE);
    let compressed = head(compressed, at).await;
    assert_eq!((compressed.status, compressed.header("content-encoding")), (200, Some("gzip")));
    assert_eq!(compressed.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(responses.load(Ordering::SeqCst), 1);

    // a page reads the 401 of the middleware, too, and its preflight does not reach the server
    let refused = HttpRequest::post("{}").header("Origin", PAGE).send(at).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some(PAGE)));
    let exposed = refused.header("access-control-expose-headers").expect("names");
    assert!(exposed.contains("www-authenticate") && exposed.contains("mcp-session-id"), "{exposed}");
    let response = preflight().send(at).await;
    assert_eq!((response.status, response.header("access-control-allow-origin")), (200, Some(PAGE)));
    // the server refuses a page that it does not know, whatever the layer allows
    let other = call("echo", &long()).header("Origin", "https://evil.example.com").send(at).await;
    assert_eq!(other.status, 403);

    // an event stream is not compressed, and its events are not held back
    let stream = call("talk", &json!({})).header("Accept-Encoding", "gzip");
    let mut stream = EventStream::open(&stream, at).await.expect("a stream");
    assert_eq!(stream.message().await["method"], "notifications/progress");
    // a call that has sent nothing is cut off, and cancelled
    assert_eq!(call("silent", &json!({})).send(at).await.status, 408);
    gate.until_ended(1, 0).await;
    // a stream that has begun is not, though it is older
    gate.open(1);
    assert_eq!(text_of(&stream.message().await), "talked");
    assert!(soon(|| ends.load(Ordering::SeqCst) > 0).await);

    let large = json!({ "text": "x".repeat(3000) });
    assert_eq!(call("echo", &large).send(at).await.status, 413);
    let mut connection = HttpConnection::open(at).await;
    connection.write(&call("echo", &large).chunked(500)).await;
    let status = connection.head().await.status;
    assert!([400, 413].contains(&status), "{status}");
}
