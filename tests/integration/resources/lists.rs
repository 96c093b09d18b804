//! `resources/list` and `resources/templates/list`: entries, instances of templates, duplicates.

use mcp_runtime::resource::ListedResource;

use crate::prelude::*;

#[tokio::test]
async fn a_resource_is_listed_and_read() {
    #[mcp_resource(uri = "config://app", mime = "application/json")]
    fn settings() -> String {
        "{}".into()
    }
    let mut server = serve(mcp_runtime::server!().resource::<settings>());
    let entry = json!({ "uri": "config://app", "name": "settings", "mimeType": "application/json" });
    let contents = json!([{ "uri": "config://app", "mimeType": "application/json", "text": "{}" }]);
    let list = server.request("resources/list", json!({})).await;
    assert_eq!(result(&list), json!({ "resources": [entry], "ttlMs": 0, "cacheScope": "private" }));
    let read = server.read("config://app").await;
    assert_eq!(result(&read), json!({ "contents": contents, "ttlMs": 0, "cacheScope": "private" }));
    assert_eq!(server.list_templates().await, [] as [Value; 0]);
    for revision in LEGACY {
        server = server.legacy(revision);
        let list = server.request("resources/list", json!({})).await;
        assert_eq!(*list.value(), json!({ "resources": [entry] }), "{revision}");
        assert_eq!(*server.read("config://app").await.value(), json!({ "contents": contents }), "{revision}");
    }
}

/// The log
#[mcp_resource(
    uri = "logs://today",
    name = "log",
    title = "Today's log",
    mime = "text/x-log",
    icon = "https://example.org/l.png",
    audience("user", "assistant"),
    priority = 0.7,
    size = 1024,
    meta(kind = "log")
)]
fn today() -> &'static str {
    "all quiet"
}

#[tokio::test]
async fn options_appear_in_entries() {
    let server = serve(mcp_runtime::server!().resource::<today>());
    let full = json!({
        "uri": "logs://today",
        "name": "log",
        "title": "Today's log",
        "description": "The log",
        "icons": [{ "src": "https://example.org/l.png" }],
        "mimeType": "text/x-log",
        "size": 1024,
        "annotations": { "audience": ["user", "assistant"], "priority": 0.7 },
        "_meta": { "kind": "log" }
    });
    assert_eq!(server.list_resources().await, [full]);
}

#[tokio::test]
async fn the_default_uri_derives_from_the_name() {
    #[mcp_resource]
    fn plain() -> &'static str {
        "plain"
    }
    #[mcp_resource]
    fn search(query: String, page: Option<u32>) -> String {
        format!("{query} {page:?}")
    }
    let server = serve(
        mcp_runtime::server!().info(|info| info.name("my server")).resource::<plain>().resource::<search>(),
    );
    assert_eq!(server.list_resources().await[0]["uri"], "resource://my-server/plain");
    assert_eq!(server.list_templates().await[0]["uriTemplate"], "resource://my-server/search{?query,page}");
    server.read("resource://my-server/plain").await.expect_text("plain");
    server.read("resource://my-server/search?page=2&query=a%20b").await.expect_text("a b Some(2)");
    let missing = server.read("resource://my-server/search?page=2").await;
    let (code, message) = refusal(&missing);
    assert_eq!(code, -32602);
    assert!(message.contains("`query`") && message.contains("missing"), "{message}");
}

#[tokio::test]
async fn templates_appear_only_in_the_template_list() {
    /// One document
    #[mcp_resource(uri = "docs://a/{id}", mime = "text/markdown", title = "Doc")]
    fn doc(id: u32) -> String {
        format!("# {id}")
    }
    let server = serve(mcp_runtime::server!().resource::<doc>());
    let entry = json!({
        "uriTemplate": "docs://a/{id}", "name": "doc", "title": "Doc", "description": "One document",
        "mimeType": "text/markdown"
    });
    let list = server.request("resources/templates/list", json!({})).await;
    assert_eq!(result(&list), json!({ "resourceTemplates": [entry], "ttlMs": 0, "cacheScope": "private" }));
    assert_eq!(server.list_resources().await, [] as [Value; 0]);
    let server = server.legacy(Revision::V2025_03_26);
    let mut known = entry;
    known.as_object_mut().map(|known| known.remove("title"));
    assert_eq!(server.list_templates().await, [known]);
    server.read("docs://a/7").await.expect_text("# 7");
}

fn breaks() -> Vec<String> {
    panic!("secret")
}

fn ranked() -> Vec<ListedResource> {
    let priorities = [f64::NAN, f64::INFINITY, -1.0, 2.0, 0.25];
    let ranked = priorities.iter().enumerate().map(|(id, priority)| {
        let mut listed = ListedResource::from(format!("ranked://{id}"));
        listed.annotations.get_or_insert_default().priority = Some(*priority);
        listed
    });
    ranked.collect()
}

#[mcp_resource(uri = "ranked://{id}", list = ranked)]
fn rank(id: u32) -> String {
    id.to_string()
}

#[tokio::test]
async fn priorities_are_numbers_from_0_to_1() {
    let server = serve(mcp_runtime::server!().resource::<rank>());
    let listed = server.list_resources().await;
    let written: Vec<_> = listed.iter().map(|entry| entry["annotations"].clone()).collect();
    let of = |priority: f64| json!({ "priority": priority });
    assert_eq!(written, [json!({}), of(1.0), of(0.0), of(1.0), of(0.25)]);
}

#[mcp_resource(uri = "broken://{id}", list = breaks)]
fn broken(id: String) -> String {
    id
}

fn refuses() -> Result<Vec<String>, ToolError> {
    Err("the shelf is closed".into())
}

#[mcp_resource(uri = "refused://{id}", list = refuses)]
fn refused(id: String) -> String {
    id
}

async fn hangs() -> Vec<String> {
    std::future::pending().await
}

#[mcp_resource(uri = "hangs://{id}", list = hangs)]
fn hanging(id: String) -> String {
    id
}

fn works() -> [&'static str; 2] {
    ["works://1", "works://2"]
}

#[mcp_resource(uri = "works://{id}", list = works)]
fn working(id: String) -> String {
    id
}

#[tokio::test(start_paused = true)]
async fn a_lister_that_fails_leaves_out_its_instances_and_nothing_else() {
    let builder = mcp_runtime::server!()
        .resource::<broken>()
        .resource::<hanging>()
        .resource::<today>()
        .resource::<working>()
        .resource::<refused>();
    let builder = builder.limits(|limits| limits.timeout(Duration::from_secs(1)));
    let uris = async |builder: ServerBuilder| {
        let listed = serve(builder).list_resources().await;
        listed.iter().map(|entry| entry["uri"].as_str().expect("a URI").to_owned()).collect::<Vec<_>>()
    };
    let all = ["logs://today", "works://1", "works://2"];
    // the pages that follow the one on which it fails, too
    assert_eq!(uris(builder.lists(|lists| lists.page_size(1))).await, all);
    let builder = mcp_runtime::server!().resource::<refused>().resource::<working>();
    assert_eq!(uris(builder).await, all[1..]);
}

#[tokio::test]
async fn a_panic_in_the_only_lister_fails_its_list() {
    let server = serve(mcp_runtime::server!().resource::<broken>());
    let reply = server.request("resources/list", json!({})).await;
    assert_eq!(refusal(&reply).0, -32603);
    assert!(!reply.to_string().contains("secret"), "{reply}");
    server.read("broken://x").await.expect_text("x");
}
