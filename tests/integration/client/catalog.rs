//! A host in place of an endpoint: which catalogs and cards are read, what is followed, and what other origins get.

use mcp_runtime::client::{Client, Error};
use mcp_tests::support::HttpServer;
use serde_json::{Value, json};

use super::{
    builder,
    site::{Log, Seen, respond, serve},
    within,
};

const CATALOG: &str = "/.well-known/ai-catalog.json";
const CARD: &str = "application/mcp-server-card+json";

/// A site without MCP that has these documents, and answers everything else with that status.
async fn site(
    status: u16,
    documents: impl Fn(&str) -> Option<Value> + Clone + Send + Sync + 'static,
) -> (String, Log) {
    let (url, log) = serve(move |seen| match documents(&seen.path).filter(|_| seen.method == "GET") {
        Some(document) => respond(200, &[], document.to_string()),
        None => respond(status, &[("content-type", "text/html")], "<h1>hello</h1>"),
    })
    .await;
    (url.trim_end_matches("/mcp").to_owned(), log)
}

fn catalog(entries: &Value) -> Value {
    json!({ "specVersion": "1.0", "entries": entries })
}

fn entry(url: &str) -> Value {
    json!({ "identifier": "urn:air:example.com:mcp:shop", "type": CARD, "url": url })
}

fn card(endpoint: &str) -> Value {
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "com.example/shop",
        "version": "1.0.0",
        "description": "A shop.",
        "remotes": [{ "type": "sse", "url": "http://127.0.0.1:1/sse" }, { "type": "streamable-http", "url": endpoint }]
    })
}

/// A site whose catalog and card lead to an endpoint.
async fn site_of(status: u16, endpoint: &str) -> (String, Log) {
    let endpoint = endpoint.to_owned();
    site(status, move |path| match path {
        CATALOG => Some(catalog(&json!([entry("/card.json")]))),
        "/card.json" => Some(card(&endpoint)),
        _ => None,
    })
    .await
}

fn reason(connected: Result<Client, Error>) -> String {
    match connected {
        Err(Error::NotConnected { reason }) => reason,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("it is connected"),
    }
}

#[tokio::test]
async fn a_host_that_publishes_a_card_is_connected_to_by_its_name() {
    within(async {
        // the address is known before the URL in the card is
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{host}/mcp");
        let published = builder().info(|info| info.registry_name("com.example/shop").public_url(url));
        let router = published.build().unwrap().into_router().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        for host in [host.clone(), format!("{host}/")] {
            let client = Client::connect(host).await.expect("a client");
            assert_eq!(client.server_info().0, "shop");
            client.ping().await.expect("an answer");
        }
        let wrong = Client::connect(format!("{host}/other")).await.expect_err("no endpoint");
        assert!(matches!(wrong, Error::Http { status: 404, .. }), "{wrong:?}");
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_of_another_origin_is_followed_only_if_asked_and_gets_no_header_of_the_first() {
    within(async {
        let server = builder().http(|http| {
            http.caller(|parts| {
                let names = ["authorization", "x-api-key", "cookie"];
                assert!(names.iter().all(|name| !parts.headers.contains_key(*name)), "{:?}", parts.headers);
                None
            })
        });
        let server = HttpServer::start(server).await;
        let endpoint = format!("http://{}/mcp", server.address);
        for status in [200, 301, 403, 404, 405] {
            let (host, requests) = site_of(status, &endpoint).await;
            let options = || {
                Client::builder()
                    .bearer_token("a-secret")
                    .header("x-api-key", "a-secret")
                    .headers_with(|headers| drop(headers.insert("cookie", "a=secret".parse().unwrap())))
            };
            let refused = reason(options().connect(&host).await);
            assert!(
                refused.contains(&endpoint) && refused.contains("follow_origins()"),
                "{status}: {refused}"
            );
            let client = options().follow_origins().connect(&host).await.expect("a client");
            assert_eq!(client.call("echo", json!({ "message": "hi" })).await.unwrap().text(), "hi");
            // and documents are requested without them
            for Seen { method, path, headers, .. } in requests.all() {
                assert_eq!(headers.contains_key("authorization"), method == "POST", "{method} {path}");
                assert_eq!(headers.contains_key("cookie"), method == "POST", "{method} {path}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn credentials_in_the_url_of_the_host_are_not_for_another_origin() {
    within(async {
        let server = builder().http(|http| {
            http.caller(|parts| {
                assert!(!parts.headers.contains_key("authorization"), "{:?}", parts.headers);
                None
            })
        });
        let server = HttpServer::start(server).await;
        let (host, requests) = site_of(404, &format!("http://{}/mcp", server.address)).await;
        let host = host.replace("http://", "http://ada:secret@");
        let client = Client::builder().follow_origins().connect(&host).await.expect("a client");
        client.ping().await.expect("an answer");
        let mut documents = requests.all();
        documents.retain(|seen| seen.method == "GET");
        assert_eq!(documents.len(), 2);
        assert!(documents.iter().all(|seen| seen.header("authorization").is_none()));
    })
    .await;
}

#[tokio::test]
async fn a_card_of_another_origin_is_not_requested_unless_asked_also_if_the_catalog_is_at_its_other_path() {
    within(async {
        let server = HttpServer::start(builder()).await;
        let endpoint = format!("http://{}/mcp", server.address);
        let (elsewhere, asked) = site(404, move |path| (path == "/card").then(|| card(&endpoint))).await;
        let url = format!("{elsewhere}/card");
        let (host, _) =
            site(404, move |path| (path == "/.well-known/ard.json").then(|| catalog(&json!([entry(&url)]))))
                .await;
        let refused = reason(Client::connect(&host).await);
        assert!(refused.contains(&elsewhere) && refused.contains("the server card"), "{refused}");
        assert!(asked.all().is_empty());
        Client::builder().follow_origins().connect(&host).await.expect("a client");
        let asked = asked.all();
        assert!(asked.len() == 1 && asked[0].header("accept").unwrap().starts_with(CARD), "{asked:?}");
    })
    .await;
}

#[tokio::test]
async fn a_catalog_leads_to_no_address_that_its_host_may_not_name() {
    within(async {
        for endpoint in [
            "http://10.0.0.1/mcp",
            "http://169.254.169.254/mcp",
            "https://169.254.169.254/mcp",
            "https://[::ffff:10.0.0.1]/mcp",
            "http://example.com/mcp",
            "ftp://127.0.0.1/mcp",
            "https://ada:secret@127.0.0.1/mcp",
            "file:///etc/passwd",
        ] {
            let (host, _) = site_of(404, endpoint).await;
            let refused = reason(Client::builder().follow_origins().connect(&host).await);
            assert!(refused.contains("cannot be used"), "{endpoint}: {refused}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_catalog_that_leads_nowhere_says_why() {
    within(async {
        let cases: Vec<(Value, &str)> = vec![
            (catalog(&json!([])), "names no MCP server"),
            (
                catalog(
                    &json!([{ "identifier": "a", "type": "application/a2a-agent-card+json", "url": "/a" }]),
                ),
                "names no MCP server",
            ),
            (catalog(&json!([entry("/a"), entry("/b")])), "names 2 MCP servers"),
            (catalog(&json!([entry("/missing")])), "cannot be read"),
            (
                catalog(&json!([{ "type": CARD, "data": { "remotes": [] } }])),
                "no endpoint of Streamable HTTP",
            ),
            (
                catalog(&json!([{ "type": CARD, "data": card("https://{tenant}.example.com/mcp") }])),
                "variables",
            ),
        ];
        for (document, expected) in cases {
            let (host, _) = site(404, move |path| (path == CATALOG).then(|| document.clone())).await;
            let refused = reason(Client::connect(&host).await);
            assert!(refused.contains(expected) && refused.contains("does not answer MCP"), "{refused}");
        }
        // a page for every path is not a catalog, and then the first error stands
        for status in [200, 404, 405] {
            let (host, _) = site(status, |_| None).await;
            let error = Client::connect(&host).await.expect_err("no endpoint");
            assert!(!error.to_string().contains("catalog"), "{error}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_answers_or_is_busy_or_wants_a_token_is_not_looked_up() {
    within(async {
        for status in [401, 429, 500, 503] {
            let (host, requests) = site_of(status, "http://127.0.0.1:1/mcp").await;
            assert!(Client::connect(&host).await.is_err());
            assert!(requests.to(CATALOG).is_empty(), "{status}: {:?}", requests.all());
        }
        let (host, requests) = site_of(404, "http://127.0.0.1:1/mcp").await;
        assert!(Client::connect(format!("{host}/mcp")).await.is_err());
        assert!(Client::connect(format!("{host}/?tenant=acme")).await.is_err());
        assert!(requests.to(CATALOG).is_empty());
    })
    .await;
}
