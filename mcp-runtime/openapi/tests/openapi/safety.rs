//! What arguments and descriptions that mean harm cannot do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, http::Response};
use mcp_runtime::serde_json::{self, Value, json};
use mcp_runtime_openapi::OpenApi;

use crate::support::{Recorder, listening, one, response, serve};

#[tokio::test]
async fn no_argument_leads_to_another_path() {
    let recorder = Recorder::start().await;
    let parameters =
        json!({ "parameters": [{ "name": "id", "in": "path", "required": true, "schema": {} }] });
    let server = recorder.serve(&one("GET /users/{id}/orders", &parameters));
    for attack in [
        json!(".."),
        json!("."),
        json!(""),
        json!("../admin"),
        json!("a/../../admin"),
        json!("..\\admin"),
        json!("%2e%2e"),
        json!("%2e%2e/admin"),
        json!("..%2fadmin"),
        json!("%2E."),
        json!("a\u{0}b"),
        json!("a\r\nb"),
        json!([]),
        json!(["..", "a/.."]),
        json!(null),
        json!({}),
    ] {
        let reply = server.call("call", json!({ "id": attack })).await;
        assert!(reply.is_error(), "{attack}: {reply:?}");
    }
    assert_eq!(recorder.count(), 0);
    for (harmless, target) in [
        ("a/b", "/users/a%2Fb/orders"),
        ("//evil.example/x", "/users/%2F%2Fevil.example%2Fx/orders"),
        ("a?admin=1#x", "/users/a%3Fadmin%3D1%23x/orders"),
        ("a..b", "/users/a..b/orders"),
        ("...", "/users/.../orders"),
        ("@evil.example", "/users/%40evil.example/orders"),
        ("%00", "/users/%2500/orders"),
        ("a;b", "/users/a%3Bb/orders"),
        ("\u{2025}\u{ff0f}", "/users/%E2%80%A5%EF%BC%8F/orders"),
    ] {
        server.call("call", json!({ "id": harmless })).await.expect_ok();
        assert_eq!(recorder.last().target, target);
    }
}

#[tokio::test]
async fn parts_of_a_segment_do_not_become_one_that_leads_out() {
    let recorder = Recorder::start().await;
    let of =
        |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let server = recorder.serve(&one("GET /x/.{a}", &json!({ "parameters": [of("a")] })));
    server.call("call", json!({ "a": "." })).await.expect_failure("leads to another path");
    let two = json!({ "parameters": [of("a"), of("b")] });
    let server = recorder.serve(&one("GET /x/{a}{b}", &two));
    server.call("call", json!({ "a": ".", "b": "." })).await.expect_failure("leads to another path");
    assert_eq!(recorder.count(), 0);
}

#[tokio::test]
async fn no_argument_injects_a_header_or_is_one_of_the_connection() {
    let recorder = Recorder::start().await;
    let header = |name: &str| json!({ "name": name, "in": "header", "schema": { "type": "string" } });
    let names = [
        "X-Note",
        "Host",
        "host",
        "Authorization",
        "Cookie",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "X-Forwarded-Host",
        "X-HTTP-Method-Override",
        "Proxy-Authorization",
        "Content-Type",
        "Forwarded",
    ];
    let mut parameters: Vec<_> = names.map(header).into();
    parameters.push(json!({ "name": "c", "in": "cookie", "schema": { "type": "string" } }));
    let server = recorder.serve(&one("GET /", &json!({ "parameters": parameters })));
    let tools = server.list_tools().await;
    assert_eq!(
        tools[0]["inputSchema"]["properties"],
        json!({ "X-Note": { "type": "string" }, "c": { "type": "string" } })
    );
    for attack in ["a\r\nHost: evil.example", "a\nb", "a\rb", "a\u{0}b"] {
        server
            .call("call", json!({ "X-Note": attack }))
            .await
            .expect_failure("characters that a header cannot have");
    }
    assert_eq!(recorder.count(), 0);
    let arguments =
        json!({ "X-Note": "n", "Host": "evil.example", "Authorization": "x", "c": "a; admin=1\r\nX: y" });
    server.call("call", arguments).await.expect_ok();
    let arrived = recorder.last();
    assert_eq!(arrived.header("host"), Some(recorder.url.trim_start_matches("http://")));
    assert_eq!(arrived.header("authorization"), None);
    assert_eq!(arrived.header("cookie"), Some("c=a%3B%20admin%3D1%0D%0AX%3A%20y"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Recorder::start().await;
    let location = format!("{}/secret", other.url);
    let recorder = Recorder::answering(move || {
        Response::builder()
            .status(302)
            .header("location", &location)
            .body(Body::from("moved"))
            .expect("a response")
    });
    let recorder = recorder.await;
    let reply = recorder.serve(&one("GET /", &json!({}))).call("call", json!({})).await;
    reply.expect_failure("the API answered 302 Found, and redirects are not followed");
    assert!(!reply.value().to_string().contains("secret"), "{reply:?}");
    assert_eq!((recorder.count(), other.count()), (1, 0));
}

#[tokio::test]
async fn the_servers_of_a_description_are_not_used() {
    let (recorder, other) = (Recorder::start().await, Recorder::start().await);
    let mut description: Value =
        serde_json::from_str(&one("GET /x", &json!({ "servers": [{ "url": other.url }] }))).expect("JSON");
    description["servers"] = json!([{ "url": format!("{}/v9", other.url) }]);
    let server = recorder.serve(&description.to_string());
    server.call("call", json!({})).await.expect_ok();
    assert_eq!((recorder.last().target.as_str(), other.count()), ("/x", 0));
    let error =
        mcp_runtime::server!().add(OpenApi::parse(description.to_string()).expect("a description")).build();
    let error = error.expect_err("no server").to_string();
    assert!(error.contains("write `.server(\"https://..\")`") && error.contains("/v9"), "{error}");
}

#[tokio::test]
async fn paths_of_a_description_that_lead_elsewhere_are_refused() {
    for path in
        ["/../x", "/a/%2e%2e/x", "/a?b=c", "/a#b", "/a\\..\\b", "/a b", "/a\r\nHost: x", "/{a", "/\u{1b}[2J"]
    {
        let api = OpenApi::parse(one(&format!("GET {path}"), &json!({}))).expect("a description");
        let error =
            mcp_runtime::server!().add(api.server("http://127.0.0.1:1")).build().expect_err(path).to_string();
        assert!(error.contains("the path `"), "{path}: {error}");
        assert!(!error.contains(['\u{1b}', '\r']), "{error:?}");
    }
}

#[test]
fn references_to_files_and_urls_are_refused() {
    for reference in
        ["other.yaml#/X", "file:///etc/passwd", "http://169.254.169.254/x", "//evil.example/x", "#/nowhere"]
    {
        let parameters = json!({ "parameters": [{ "$ref": reference }] });
        let schema = json!({ "requestBody": { "content": { "application/json": { "schema": { "$ref": reference } } } } });
        for operation in [parameters, schema] {
            let api = OpenApi::parse(one("POST /", &operation)).expect("a description");
            let error =
                mcp_runtime::server!().add(api.server("http://127.0.0.1:1")).build().expect_err(reference);
            let error = error.to_string();
            assert!(
                error.contains("to another document") || error.contains("to nothing"),
                "{reference}: {error}"
            );
        }
    }
}

#[test]
fn what_a_description_says_is_escaped_in_errors() {
    let operation = json!({ "tags": ["\u{1b}]0;x\u{7}\u{202e}"], "parameters": [{ "name": "\u{1b}[2J", "in": "\u{1b}[31m" }] });
    let api =
        || OpenApi::parse(one("GET /", &operation)).expect("a description").server("http://127.0.0.1:1");
    let unknown = mcp_runtime_openapi::Route::tag("\u{1b}[1m");
    for api in [api(), api().include(unknown)] {
        let error = mcp_runtime::server!().add(api).build().expect_err("an error").to_string();
        let is_obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!error.contains(is_obeyed), "{error:?}");
    }
}

#[test]
fn a_server_is_a_url_without_credentials() {
    for url in [
        "shop",
        "ftp://x.example",
        "https://u:p@x.example",
        "https://x.example/?a=b",
        "https://x.example/#a",
        "file:///x",
    ] {
        let api = OpenApi::parse(one("GET /", &json!({}))).expect("a description").server(url);
        let error = mcp_runtime::server!().add(api).build().expect_err(url).to_string();
        assert!(error.contains("URL"), "{url}: {error}");
    }
}

#[tokio::test]
async fn time_size_and_number_of_requests_are_limited() {
    let recorder = Recorder::answering(|| response(200, "text/plain", "x".repeat(2000))).await;
    let api = |description: String| OpenApi::parse(description).expect("a description").server(&recorder.url);
    let server = serve(api(one("GET /", &json!({}))).max_response(1000));
    server.call("call", json!({})).await.expect_failure("the API answered more than 1000 bytes");

    // one that is accepted by the system, and by no one else
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let server = serve(api(one("GET /", &json!({}))).server(url).timeout(Duration::from_millis(200)));
    server.call("call", json!({})).await.expect_failure("the API did not answer within 200ms");
    drop(silent);
    server.call("call", json!({})).await.expect_failure("the API cannot be reached");
}

#[tokio::test]
async fn no_more_requests_run_at_once_than_are_allowed() {
    let (running, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let seen = most.clone();
    let routes = Router::new().fallback(move || async move {
        seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        running.fetch_sub(1, Ordering::SeqCst);
    });
    let url = listening(routes).await;
    let api = OpenApi::parse(one("GET /", &json!({}))).expect("a description").server(url).max_concurrency(2);
    let server = Arc::new(serve(api));
    let calls = (0..8).map(|_| {
        let server = server.clone();
        tokio::spawn(async move { server.call("call", json!({})).await.expect_ok().clone() })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.is_ok());
    }
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}
