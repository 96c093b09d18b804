//! Descriptions of APIs, and arguments of calls of one: whatever bytes they are,
//!
//! - a description is refused, or becomes a server;
//! - a request has the method, path and host of its operation, one `tenant`, which the program has fixed, and no header but those
//!   that the operation has. Its parts have the sizes that the guide names.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::Request,
    http::request::Parts,
};
use mcp_runtime::testing::TestServer;
use mcp_runtime_openapi::OpenApi;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Builds a server of the description that bytes are, and lists its tools.
///
/// # Panics
/// A schema that is published is not one of an object.
pub(crate) fn descriptions(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(api) = OpenApi::parse(text) else { return };
    let api = api.server("https://api.example.com").allow_all();
    let Ok(server) = TestServer::new(mcp_runtime::server!().add(api)) else { return };
    for tool in runtime().block_on(server.list_tools()) {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
    }
}

/// How the argument `p` is sent, beside a `tenant` in the same place, which is fixed.
const SHAPES: [(&str, &str); 14] = [
    ("path", "simple"),
    ("path", "label"),
    ("path", "matrix"),
    ("query", "form"),
    ("query", "spaceDelimited"),
    ("query", "pipeDelimited"),
    ("query", "deepObject"),
    ("header", "simple"),
    ("cookie", "form"),
    ("application/json", ""),
    ("application/x-www-form-urlencoded", "form"),
    ("application/x-www-form-urlencoded", "deepObject"),
    ("multipart/form-data", "form"),
    ("multipart/form-data", "file"),
];

type Arrived = Arc<Mutex<Option<(Parts, Bytes)>>>;

/// A server with one operation, which keeps the request that arrives.
fn serve(place: &str, style: &str, explode: bool, arrived: &Arrived) -> TestServer {
    let keep = arrived.clone();
    let routes = Router::new().fallback(move |request: Request| async move {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, 8 << 20).await.expect("a body");
        *keep.lock().expect("the request") = Some((head, body));
    });
    let mut operation = json!({ "operationId": "call" });
    if place.contains('/') {
        let p = if style == "file" { json!({ "type": "string", "format": "binary" }) } else { json!({}) };
        let schema = json!({ "type": "object", "properties": { "p": p, "tenant": { "type": "string" } } });
        let encoding = json!({ "p": { "style": style, "explode": explode } });
        let encoding = if style.is_empty() || style == "file" { json!({}) } else { encoding };
        operation["requestBody"] =
            json!({ "required": true, "content": { place: { "schema": schema, "encoding": encoding } } });
    } else {
        let required = place == "path";
        operation["parameters"] = json!([
            { "name": "p", "in": place, "required": required, "style": style, "explode": explode, "allowReserved": true, "schema": {} },
            { "name": "tenant", "in": place, "required": required, "schema": { "type": "string" } },
        ]);
    }
    let path = if place == "path" { "/a/{p}/{tenant}/z" } else { "/a/z" };
    let description = json!({ "openapi": "3.1.0", "paths": { path: { "post": operation } } });
    let api = OpenApi::routes(routes, &description).expect("a description");
    TestServer::new(mcp_runtime::server!().add(api).transform(|item| item.fix("tenant", "own")))
        .expect("a server")
}

/// Calls an operation with the arguments that bytes are; the first says how they are sent.
///
/// # Panics
/// An argument has changed another part of the request.
pub(crate) fn api_requests(data: &[u8]) {
    let Some((kind, arguments)) = data.split_first() else { return };
    let Ok(p) = serde_json::from_slice::<Value>(arguments) else { return };
    let Some((place, style)) = SHAPES.into_iter().cycle().nth(usize::from(kind / 2)) else { return };
    let arrived = Arrived::default();
    let server = serve(place, style, kind % 2 == 1, &arrived);
    let reply = runtime().block_on(server.call("call", json!({ "p": p })));
    let Some((head, body)) = arrived.lock().expect("the request").take() else {
        assert!(reply.is_error() || reply.error().is_some(), "{reply:?}");
        return;
    };
    check(place, &head, &body);
}

fn check(place: &str, head: &Parts, body: &[u8]) {
    assert_eq!((head.method.as_str(), head.uri.host()), ("POST", None));
    assert!(head.uri.to_string().len() <= 64 << 10 && body.len() <= 4 << 20);
    let segments: Vec<&str> = head.uri.path().split('/').skip(1).collect();
    match (place, segments.as_slice()) {
        ("path", ["a", p, "own", "z"]) => {
            let p = decoded(p);
            assert!(!matches!(p.as_str(), "" | "." | ".."), "{p:?}");
        }
        (_, segments) => assert!(place != "path" && segments == ["a", "z"], "{segments:?}"),
    }
    let pairs = |text: &str, between: &str| -> Vec<(String, String)> {
        let pairs = text.split(between).filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(k, v)| (decoded(k), decoded(v)))
            .collect()
    };
    let query = head.uri.query().unwrap_or_default();
    check_tenants(place == "query", &pairs(query, "&"));
    for name in head.headers.keys() {
        let known = ["accept", "content-type", "user-agent"];
        let own = if place == "header" { ["p", "tenant"] } else { ["cookie", "cookie"] };
        assert!(known.contains(&name.as_str()) || own.contains(&name.as_str()), "{name}");
    }
    let header = |name: &str| head.headers.get(name).map_or("", |value| value.to_str().expect("text"));
    assert_eq!(header("tenant"), if place == "header" { "own" } else { "" });
    check_tenants(place == "cookie", &pairs(header("cookie"), "; "));
    let text = String::from_utf8_lossy(body);
    match place {
        "application/json" => {
            let value: Value = serde_json::from_slice(body).expect("JSON");
            let members = value.as_object().expect("an object");
            assert!(
                value["tenant"] == "own" && members.keys().all(|name| name == "p" || name == "tenant"),
                "{text}"
            );
        }
        "application/x-www-form-urlencoded" => check_tenants(true, &pairs(&text, "&")),
        "multipart/form-data" => {
            let boundary = header("content-type").split_once("boundary=").expect("a boundary").1;
            let parts: Vec<&str> = text.split(&format!("--{boundary}")[..]).collect();
            let ["", parts @ .., "--\r\n"] = parts.as_slice() else { panic!("{text}") };
            let named = parts.iter().map(|part| {
                let (lines, content) = part.split_once("\r\n\r\n").expect("a head");
                let name =
                    lines.split("; name=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a name");
                assert!(lines.lines().count() <= 3, "{lines}");
                (name.to_owned(), content.trim_end_matches("\r\n").to_owned())
            });
            check_tenants(true, &named.collect::<Vec<_>>());
        }
        _ => assert!(body.is_empty(), "{text}"),
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let escaped = hex.filter(|_| *byte == b'%');
        bytes.push(escaped.unwrap_or(*byte));
        rest = after.get(if escaped.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One of the pairs, however a server reads names, is the tenant that is fixed; none where nothing is sent.
fn check_tenants(is_there: bool, pairs: &[(String, String)]) {
    let tenants: Vec<_> =
        pairs.iter().filter(|(name, _)| name.trim().eq_ignore_ascii_case("tenant")).collect();
    let own = ("tenant".to_owned(), "own".to_owned());
    assert_eq!(tenants, if is_there { vec![&own] } else { Vec::new() }, "{pairs:?}");
    assert!(is_there || pairs.is_empty(), "{pairs:?}");
}
