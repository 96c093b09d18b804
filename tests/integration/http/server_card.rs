//! The server card and the catalog that leads to it: what they contain, who may read them, and when there are none.

use axum::Router;
use mcp_runtime::{
    auth::{ApiKeys, Oauth},
    content::Icon,
};

use super::fixture::builder;
use crate::prelude::*;

const CARD: &str = "/mcp/server-card";
const CATALOG: &str = "/.well-known/ai-catalog.json";
const URL: &str = "https://notes.example.com/mcp";

fn published() -> ServerBuilder {
    builder(&Gate::default()).info(|info| {
        info.registry_name("io.github.me/notes")
            .public_url(URL)
            .name("notes")
            .version("1.2.0")
            .title("Notes")
            .description("Notes of a team.")
            .website("https://notes.example.com")
            .repository("https://github.com/me/notes")
            .icon(Icon::new("https://notes.example.com/icon.png").mime("image/png"))
    })
}

async fn get(path: &str, from: SocketAddr) -> HttpResponse {
    HttpRequest::new("GET").path(path).send(from).await
}

#[track_caller]
fn parsed(response: &HttpResponse) -> Value {
    assert_eq!(response.status, 200, "{}", response.text());
    serde_json::from_slice(&response.body).expect("JSON")
}

async fn card_of(builder: ServerBuilder) -> Value {
    let server = HttpServer::start(builder).await;
    parsed(&get(CARD, server.address).await)
}

#[tokio::test]
async fn a_server_with_a_registry_name_and_a_public_url_publishes_its_card_and_a_catalog_that_leads_to_it() {
    let server = HttpServer::start(published()).await;
    let card = get(CARD, server.address).await;
    assert_eq!(card.header("content-type"), Some("application/mcp-server-card+json"));
    assert_eq!(
        parsed(&card),
        json!({
            "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
            "name": "io.github.me/notes",
            "version": "1.2.0",
            "description": "Notes of a team.",
            "title": "Notes",
            "websiteUrl": "https://notes.example.com",
            "repository": { "url": "https://github.com/me/notes", "source": "github" },
            "icons": [{ "src": "https://notes.example.com/icon.png", "mimeType": "image/png" }],
            "remotes": [{
                "type": "streamable-http",
                "url": URL,
                "supportedProtocolVersions": ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
            }]
        })
    );
    let same = get("/.well-known/ard.json", server.address).await;
    assert_eq!(same.header("content-type"), Some("application/json"));
    let catalog = get(CATALOG, server.address).await;
    assert_eq!(catalog.body, same.body);
    let link = get(CARD, server.address).await.header("link").map(str::to_owned);
    assert!(link.is_some_and(|link| link.starts_with(&format!("<{CATALOG}>; rel=\"ai-catalog\""))));
    assert_eq!(catalog.header("content-type"), Some("application/ai-catalog+json"));
    assert_eq!(
        parsed(&catalog),
        json!({
            "specVersion": "0.9",
            "entries": [{
                "identifier": "urn:air:me.github.io:mcp:notes",
                "displayName": "Notes",
                "type": "application/mcp-server-card+json",
                "url": "https://notes.example.com/mcp/server-card"
            }]
        })
    );
}

#[tokio::test]
async fn what_a_request_says_of_its_host_is_not_in_the_card() {
    let server = HttpServer::start(published().http(|http| http.any_host())).await;
    let own = [get(CARD, server.address).await.body, get(CATALOG, server.address).await.body];
    for host in ["evil.example", "notes.example.com:8443", "10.1.2.3"] {
        for (path, own) in [CARD, CATALOG].into_iter().zip(&own) {
            let request = HttpRequest::new("GET").path(path).with("Host", host);
            let forwarded = request
                .header("Forwarded", "host=evil.example;proto=http")
                .header("X-Forwarded-Host", "evil.example")
                .header("X-Forwarded-Proto", "http");
            assert_eq!(&forwarded.send(server.address).await.body, own, "{host}");
        }
    }
    // hosts are checked as for the endpoint
    let server = HttpServer::start(published()).await;
    let other = HttpRequest::new("GET").path(CARD).with("Host", "evil.example").send(server.address).await;
    assert_eq!(other.status, 403);
}

#[tokio::test]
async fn pages_of_every_origin_may_read_the_card_without_a_token() {
    let keys = ApiKeys::new([("a-key-of-sixteen-characters", Principal::new("test", "ada"))]);
    let server = HttpServer::start(published().auth(keys)).await;
    for path in [CARD, CATALOG] {
        let page = HttpRequest::new("GET").path(path).header("Origin", "https://elsewhere.example");
        let preflight = HttpRequest::new("OPTIONS")
            .path(path)
            .header("Origin", "https://elsewhere.example")
            .header("Access-Control-Request-Method", "GET")
            .header("Access-Control-Request-Headers", "if-none-match");
        for (request, status) in [(page, 200), (preflight, 204), (HttpRequest::new("GET").path(path), 200)] {
            let response = request.send(server.address).await;
            assert_eq!(response.status, status, "{path}");
            for (name, value) in [
                ("access-control-allow-origin", "*"),
                ("access-control-allow-methods", "GET"),
                ("access-control-allow-headers", "Content-Type, If-None-Match"),
                ("access-control-expose-headers", "ETag"),
            ] {
                let values: Vec<_> =
                    response.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).collect();
                assert_eq!(values.len(), 1, "{path}: {values:?}");
                assert_eq!(response.header(name), Some(value), "{path}");
            }
        }
    }
    // the endpoint is as it was
    let page = HttpRequest::modern(1, "tools/list", json!({})).header("Origin", "https://elsewhere.example");
    assert_eq!(page.send(server.address).await.status, 403);
    assert_eq!(HttpRequest::modern(1, "tools/list", json!({})).send(server.address).await.status, 401);
}

#[tokio::test]
async fn a_copy_of_the_card_is_kept_for_an_hour_and_revalidated() {
    let server = HttpServer::start(published()).await;
    for path in [CARD, CATALOG] {
        let whole = get(path, server.address).await;
        assert_eq!(whole.header("cache-control"), Some("public, max-age=3600"));
        let etag = whole.header("etag").expect("an entity tag").to_owned();
        assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 10, "{etag}");
        assert_eq!(get(path, server.address).await.header("etag"), Some(&*etag), "it does not change");
        for known in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}"), "*".into()] {
            let request = HttpRequest::new("GET").path(path).header("If-None-Match", &known);
            let fresh = request.send(server.address).await;
            assert_eq!((fresh.status, &*fresh.body), (304, &b""[..]), "{known}");
            assert_eq!(fresh.header("etag"), Some(&*etag));
            assert_eq!(fresh.header("cache-control"), Some("public, max-age=3600"));
            assert_eq!(fresh.header("access-control-allow-origin"), Some("*"));
        }
        for known in ["\"other\"", "W/\"other\"", ""] {
            let request = HttpRequest::new("GET").path(path).header("If-None-Match", known);
            assert_eq!(request.send(server.address).await.body, whole.body, "{known}");
        }
    }
    let changed = HttpServer::start(published().info(|info| info.version("1.2.1"))).await;
    let [old, new] = [get(CARD, server.address).await, get(CARD, changed.address).await];
    assert_ne!(old.header("etag"), new.header("etag"));
}

#[tokio::test]
async fn head_is_get_without_a_body_and_other_methods_are_not_allowed() {
    let server = HttpServer::start(published()).await;
    let router = serve_router(published().build().unwrap().into_router().unwrap()).await;
    for at in [server.address, router] {
        for path in [CARD, CATALOG] {
            let whole = get(path, at).await;
            let mut connection = HttpConnection::open(at).await;
            connection
                .write(
                    format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        .as_bytes(),
                )
                .await;
            let head = connection.head().await;
            assert_eq!(head.status, 200);
            for name in ["content-type", "content-length", "etag", "cache-control"] {
                assert_eq!(head.header(name), whole.header(name), "{name}");
            }
            assert!(connection.is_closed().await, "a body follows");
            for method in ["POST", "PUT", "DELETE"] {
                let refused = HttpRequest::new(method).path(path).send(at).await;
                assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
            }
        }
    }
}

#[tokio::test]
async fn a_card_needs_a_name_and_a_url() {
    let plain = || builder(&Gate::default());
    for builder in [
        plain(),
        plain().info(|info| info.registry_name("io.github.me/notes")),
        plain().info(|info| info.public_url(URL)),
        plain().auth(Oauth::issuer("https://id.example.com").resource(URL)),
    ] {
        let server = HttpServer::start(builder).await;
        for path in [CARD, CATALOG] {
            assert_eq!(get(path, server.address).await.status, 404);
        }
    }
}

#[tokio::test]
async fn the_card_of_a_server_with_callers_names_the_header_that_they_must_send() {
    let named = || builder(&Gate::default()).info(|info| info.registry_name("io.github.me/notes"));
    let oauth = || Oauth::issuer("https://id.example.com").resource("https://notes.example.com/a/mcp");
    let keys = || ApiKeys::new([("a-key-of-sixteen-characters", Principal::new("test", "ada"))]);
    // the URL is that of the resource, unless the server names another
    for (builder, url) in [
        (named().auth(oauth()), "https://notes.example.com/a/mcp"),
        (named().info(|info| info.public_url(URL)).auth(oauth()), URL),
        (named().info(|info| info.public_url(URL)).auth(keys()), URL),
        (named().auth(oauth()).auth(keys()), "https://notes.example.com/a/mcp"),
    ] {
        let card = card_of(builder).await;
        assert_eq!(card["remotes"][0]["url"], url);
        let headers = card["remotes"][0]["headers"].as_array().expect("headers");
        assert_eq!(headers.len(), 1, "{headers:?}");
        let header = &headers[0];
        assert_eq!(
            (&header["name"], &header["value"], &header["isRequired"], &header["isSecret"]),
            (&json!("Authorization"), &json!("Bearer {token}"), &json!(true), &json!(true))
        );
        let token = &header["variables"]["token"];
        assert_eq!((&token["isRequired"], &token["isSecret"]), (&json!(true), &json!(true)));
        let text = card.to_string();
        assert!(!text.contains("a-key-of-sixteen") && !text.contains("id.example.com"), "{text}");
    }
    let bound = card_of(named().auth(oauth().require_dpop())).await;
    assert_eq!(bound["remotes"][0]["headers"][0]["value"], Value::Null, "the header differs by request");
    let anonymous = card_of(named().info(|info| info.public_url(URL))).await;
    assert_eq!(anonymous["remotes"][0].get("headers"), None);
}

#[tokio::test]
async fn texts_fit_into_a_card_and_a_description_is_never_missing() {
    let plain =
        || builder(&Gate::default()).info(|info| info.registry_name("io.github.me/notes").public_url(URL));
    let description = |card: &Value| card["description"].as_str().expect("a text").to_owned();
    assert_eq!(description(&card_of(plain()).await), "The MCP server io.github.me/notes");
    assert_eq!(description(&card_of(plain().info(|info| info.title("Notes"))).await), "Notes");
    let long = "Keeps notes of everything that a team decides. ".repeat(5);
    let card = card_of(plain().info(|info| info.title(&long).description(&long).website("notes"))).await;
    assert!(description(&card).ends_with('…') && description(&card).starts_with("Keeps notes of"), "{card}");
    assert_eq!(card.get("websiteUrl"), None, "it is not a URL");
    for member in ["description", "title"] {
        let length = card[member].as_str().expect("a text").chars().count();
        assert!((1..=100).contains(&length), "{member}: {length}");
    }
    let words = plain().info(|info| info.title(" \n ").description(" Two\n\nlines. "));
    let card = card_of(words).await;
    assert_eq!((description(&card).as_str(), card.get("title")), ("Two lines.", None));
}

#[tokio::test]
async fn requests_for_the_card_count_towards_the_rate_of_the_server() {
    let server = HttpServer::start(published().limits(|limits| limits.rate("2/1h"))).await;
    assert_eq!(get(CARD, server.address).await.status, 200);
    assert_eq!(get(CATALOG, server.address).await.status, 200);
    let refused = get(CARD, server.address).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
}

#[tokio::test]
async fn a_mounted_endpoint_answers_for_its_card_wherever_it_is() {
    let service = || {
        let info = published().info(|info| info.public_url("https://example.com/tools/mcp"));
        info.into_service().expect("a service")
    };
    let nested = Router::new().merge(service().metadata_router()).nest_service("/tools/mcp", service());
    let at = serve_router(nested).await;
    let card = parsed(&get("/tools/mcp/server-card", at).await);
    assert_eq!(card["remotes"][0]["url"], "https://example.com/tools/mcp");
    let catalog = parsed(&get(CATALOG, at).await);
    assert_eq!(catalog["entries"][0]["url"], "https://example.com/tools/mcp/server-card");
    let at = serve_router(Router::new().fallback_service(service())).await;
    for path in [CARD, CATALOG] {
        assert_eq!(get(path, at).await.status, 200, "{path}");
    }
    let call =
        HttpRequest::modern(1, "tools/call", json!({ "name": "echo", "arguments": { "message": "hi" } }));
    assert_eq!(call.send(at).await.status, 200);
    // at the root of a host
    let root = published().info(|info| info.public_url("https://example.com")).http(|http| http.path("/"));
    let at = HttpServer::start(root).await;
    let catalog = parsed(&get(CATALOG, at.address).await);
    assert_eq!(catalog["entries"][0]["url"], "https://example.com/server-card");
    assert_eq!(get("/server-card", at.address).await.status, 200);
}

#[test]
fn what_a_card_cannot_contain_is_an_error_of_build() {
    let problem = |builder: ServerBuilder| builder.build().expect_err("it is not valid").to_string();
    let plain = || Server::builder("notes", "1.0.0");
    let named = |name: &str| plain().info(|info| info.registry_name(name).public_url(URL));
    assert!(problem(named("notes")).contains("reverse DNS"));
    let url = "http://notes.example.com/mcp";
    let text = problem(named("com.example/notes").info(|info| info.public_url(url)));
    assert!(text.contains(url) && text.contains("public_url"), "{text}");
    let resource = Oauth::issuer("https://id.example.com").resource("http://notes.example.com/mcp");
    let text = problem(plain().info(|info| info.registry_name("com.example/notes")).auth(resource));
    assert!(text.contains("`.resource(..)`"), "{text}");
    assert!(problem(named("com.example/notes").info(|info| info.version("^1.2.3"))).contains("range"));
    let gate = named("com.example/notes").http(|http| http.health_paths(CARD, "/readyz"));
    assert!(problem(gate).contains("a path of the server card and of something else"));
}
