//! MCP Apps: how lists, reads and capabilities of each revision present tools with pages to hosts.

use mcp_runtime::content::ResourceContents;

use crate::prelude::*;

const PAGE: &str = "text/html;profile=mcp-app";

/// Shows a chart
#[mcp_tool(
    ui(resource = "ui://charts/page.html", visibility(model, app)),
    meta(team = "charts"),
    tags("fine")
)]
fn chart(ctx: &Context) -> &'static str {
    if ctx.client_supports_ui() { "the chart is shown" } else { "1, 2, 3" }
}

/// Has a page and no other options
#[mcp_tool(ui(resource = "ui://charts/page.html"))]
fn plain() {}

/// For the page alone
#[mcp_tool(ui(visibility(app)))]
fn refresh() {}

/// Its page
#[mcp_resource(
    uri = "ui://charts/page.html",
    ui(
        csp(
            connect("https://api.example.org", "wss://api.example.org"),
            resource("https://*.example.org"),
            frame("https://frame.example.org"),
            base_uri("https://base.example.org")
        ),
        permissions(camera, microphone, geolocation, clipboard_write),
        prefers_border,
        domain = "charts.example.org"
    ),
    meta(version = 1)
)]
fn page() -> &'static str {
    "<!doctype html>"
}

/// Sets the metadata in each read
#[mcp_resource(uri = "ui://charts/own.html", ui(prefers_border = false))]
fn own() -> Vec<ResourceContents> {
    vec![
        ResourceContents::text("own").meta("ui", json!({ "domain": "own" })),
        ResourceContents::text("more").meta("n", 1),
        ResourceContents::text("other").uri("ui://charts/data").mime("text/csv"),
    ]
}

/// One page for each kind
#[mcp_resource(uri = "ui://charts/kinds/{kind}", ui(prefers_border), list = kinds)]
fn kind(kind: String) -> Vec<u8> {
    kind.into_bytes()
}

fn kinds() -> Vec<&'static str> {
    vec!["ui://charts/kinds/bar"]
}

/// Shows one of the kinds
#[mcp_tool(ui(resource = "ui://charts/kinds/bar"))]
fn bars() {}

#[mcp_resource(uri = "docs://text")]
fn text() -> &'static str {
    "text"
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<chart>()
        .tool::<plain>()
        .tool::<refresh>()
        .tool::<bars>()
        .resource::<page>()
        .resource::<own>()
        .resource::<kind>()
        .resource::<text>()
}

fn asked() -> Value {
    json!({
        "csp": {
            "connectDomains": ["https://api.example.org", "wss://api.example.org"],
            "resourceDomains": ["https://*.example.org"],
            "frameDomains": ["https://frame.example.org"],
            "baseUriDomains": ["https://base.example.org"]
        },
        "permissions": { "camera": {}, "microphone": {}, "geolocation": {}, "clipboardWrite": {} },
        "prefersBorder": true,
        "domain": "charts.example.org"
    })
}

fn shows_pages() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": [PAGE] } } })
}

/// A client of that revision with these capabilities.
fn client(revision: Revision, capabilities: Value) -> TestServer {
    let never = |method: &str, _: &Value| panic!("asked for `{method}`");
    serve(builder()).answering(capabilities, never).legacy(revision)
}

#[tokio::test]
async fn tools_name_their_page() {
    for &revision in Revision::ALL {
        let tools = client(revision, json!({})).list_tools().await;
        assert_eq!(client(revision, shows_pages()).list_tools().await, tools, "for every client");
        let meta = |name| named(&tools, name).get("_meta").cloned();
        if revision < Revision::V2025_06_18 {
            assert!(tools.iter().all(|tool| tool.get("_meta").is_none()), "{revision:?}: {tools:?}");
            continue;
        }
        let page = "ui://charts/page.html";
        assert_eq!(
            meta("chart"),
            Some(json!({
                "team": "charts",
                "tags": ["fine"],
                "ui": { "resourceUri": page, "visibility": ["model", "app"] },
                "ui/resourceUri": page
            }))
        );
        assert_eq!(meta("plain"), Some(json!({ "ui": { "resourceUri": page }, "ui/resourceUri": page })));
        assert_eq!(meta("refresh"), Some(json!({ "ui": { "visibility": ["app"] } })));
        assert_eq!(meta("bars").unwrap()["ui"], json!({ "resourceUri": "ui://charts/kinds/bar" }));
    }
}

#[tokio::test]
async fn page_metadata_is_in_lists_and_in_reads() {
    for &revision in Revision::ALL {
        let server = client(revision, json!({}));
        let listed = server.list_resources().await;
        let mut expected = json!({
            "uri": "ui://charts/page.html", "name": "page", "description": "Its page", "mimeType": PAGE
        });
        let mut contents =
            json!([{ "uri": "ui://charts/page.html", "mimeType": PAGE, "text": "<!doctype html>" }]);
        if revision >= Revision::V2025_06_18 {
            expected["_meta"] = json!({ "version": 1, "ui": asked() });
            contents[0]["_meta"] = json!({ "ui": asked() });
        }
        assert_eq!(named(&listed, "page"), &expected, "{revision:?}");
        let read = server.read("ui://charts/page.html").await;
        assert_eq!(read.value()["contents"], contents, "{revision:?}");
        assert_eq!(named(&listed, "text").get("_meta"), None);
    }
}

#[tokio::test]
async fn metadata_of_a_read_overrides_the_attribute() {
    let server = serve(builder());
    assert_eq!(
        result(&server.read("ui://charts/own.html").await)["contents"],
        json!([
            { "uri": "ui://charts/own.html", "mimeType": PAGE, "text": "own", "_meta": { "ui": { "domain": "own" } } },
            {
                "uri": "ui://charts/own.html",
                "mimeType": PAGE,
                "text": "more",
                "_meta": { "n": 1, "ui": { "prefersBorder": false } }
            },
            { "uri": "ui://charts/data", "mimeType": "text/csv", "text": "other" }
        ])
    );
}

#[tokio::test]
async fn templates_can_be_pages() {
    let server = serve(builder());
    let ui = json!({ "ui": { "prefersBorder": true } });
    let templates = server.list_templates().await;
    assert_eq!(
        templates,
        [json!({
            "uriTemplate": "ui://charts/kinds/{kind}",
            "name": "kind",
            "description": "One page for each kind",
            "mimeType": PAGE,
            "_meta": ui
        })]
    );
    let listed = server.list_resources().await;
    let bar = named(&listed, "ui://charts/kinds/bar");
    assert_eq!((&bar["mimeType"], &bar["_meta"]), (&json!(PAGE), &ui));
    assert_eq!(
        result(&server.read("ui://charts/kinds/bar").await)["contents"],
        json!([{ "uri": "ui://charts/kinds/bar", "mimeType": PAGE, "blob": "YmFy", "_meta": ui }])
    );
}

#[tokio::test]
async fn the_extension_is_declared_to_legacy_and_modern_clients() {
    for &revision in Revision::ALL {
        let capabilities = client(revision, json!({})).capabilities().await;
        assert_eq!(capabilities["extensions"], shows_pages()["extensions"], "{revision:?}");
        let other = serve(mcp_runtime::server!().resource::<text>()).legacy(revision);
        assert_eq!(other.capabilities().await.get("extensions"), None, "{revision:?}");
    }
}

#[tokio::test]
async fn functions_can_query_whether_the_client_shows_pages() {
    for &revision in Revision::ALL {
        let said = async |capabilities| {
            let reply = client(revision, capabilities).call("chart", json!({})).await;
            reply.expect_ok().text()
        };
        assert_eq!(said(shows_pages()).await, "the chart is shown");
        assert_eq!(said(json!({})).await, "1, 2, 3");
        let other = json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["text/x"] } } });
        assert_eq!(said(other).await, "1, 2, 3");
    }
    assert_eq!(chart(&Context::for_test()), "1, 2, 3");
}

mod missing {
    use mcp_runtime::prelude::*;

    #[mcp_tool(ui(resource = "ui://charts/pgae.html"))]
    pub(super) fn misspelt() {}

    #[mcp_tool(ui(resource = "ui://else/where"))]
    pub(super) fn elsewhere() {}

    #[mcp_resource(uri = "ui://charts/raw", mime = "text/html")]
    pub(super) fn raw() -> &'static str {
        ""
    }

    #[mcp_tool(ui(resource = "ui://charts/raw"))]
    pub(super) fn shows_raw() {}
}

#[test]
fn a_missing_page_is_a_build_error() {
    let error = build_error(builder().tool::<missing::misspelt>().tool::<missing::elsewhere>());
    for part in [
        "tool `misspelt` shows `ui://charts/pgae.html`, and no resource has that URI",
        "did you mean `ui://charts/page.html`?",
        "tool `elsewhere` shows `ui://else/where`",
        "register one with `uri = \"ui://else/where\"`",
    ] {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
    assert_eq!(error.matches("apps/mod.rs:").count(), 2, "{error}");
    let error = build_error(mcp_runtime::server!().tool::<missing::shows_raw>().resource::<missing::raw>());
    assert!(error.contains("whose MIME type is `text/html`") && error.contains("remove `mime`"), "{error}");
}

struct Board;

#[mcp_service]
impl Board {
    #[mcp_tool(ui(resource = "ui://board/page.html"))]
    fn show(&self) {}

    #[mcp_tool(ui(resource = "ui://charts/page.html"))]
    fn chart(&self) {}

    #[mcp_resource(uri = "ui://board/page.html")]
    fn page(&self) -> &'static str {
        "board"
    }
}

#[tokio::test]
async fn prefixes_of_services_and_mounts_apply_to_pages() {
    let inner = mcp_runtime::server!().service_as("eu", Board).resource::<page>();
    let server = serve(mcp_runtime::server!().service_as("us", Board).resource::<page>().mount("in", inner));
    let tools = server.list_tools().await;
    for (tool, page) in [
        ("us_show", "ui://us/board/page.html"),
        ("us_chart", "ui://charts/page.html"),
        ("in_eu_show", "ui://in_eu/board/page.html"),
        ("in_eu_chart", "ui://in/charts/page.html"),
    ] {
        assert_eq!(named(&tools, tool)["_meta"]["ui"]["resourceUri"], page);
        server.read(page).await.expect_ok();
    }
}

#[tokio::test]
async fn tools_made_at_run_time_have_pages() {
    let tool = |page: &str| {
        let tool = ToolDef::builder("made").ui(page).meta(json!({ "ui": { "visibility": ["app"] } }));
        tool.handler(|_: ToolCall| async { "made" })
    };
    let server = builder().build().unwrap();
    server.handle().add(tool("ui://charts/page.html")).unwrap();
    let tools = TestServer::of(&server).list_tools().await;
    assert_eq!(
        named(&tools, "made")["_meta"]["ui"],
        json!({ "resourceUri": "ui://charts/page.html", "visibility": ["app"] })
    );
    let refused = builder().build().unwrap().handle().add(tool("ui://charts/none.html"));
    let error = format!("{:?}", refused.unwrap_err());
    assert!(error.contains("tool `made` shows `ui://charts/none.html`"), "{error}");
}
