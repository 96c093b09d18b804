//! Row X4: every kind of reply, in every revision, is valid against that revision's own schema, and has nothing newer
//! in it.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use mcp_runtime::{
    Audio, Icon, ResourceResult, Revision, Role, Server, ServerBuilder, Theme, prelude::*,
    testing::TestServer,
};
use mcp_tests::outside::skip;
use serde_json::{Value, json};

use crate::{schemas::Schema, suite::Suite};

#[mcp_type]
struct Weather {
    city: String,
    degrees: f64,
}

/// Everything that a tool may say of itself
#[mcp_tool(
    title = "All of it",
    read_only,
    destructive = false,
    icon = "https://example.com/icon.png",
    icon(src = "https://example.com/dark.svg", mime = "image/svg+xml", sizes("any", "48x48"), theme = "dark"),
    meta(model = "m", tags = ["a"])
)]
fn all_of_it(city: String, #[mcp(default = 3)] days: u8) -> Json<Weather> {
    Json(Weather { degrees: f64::from(days), city })
}

fn icon() -> Icon {
    Icon::new("https://example.com/light.png").mime("image/png").sizes(["48x48"]).theme(Theme::Light)
}

/// Every kind of block
#[mcp_tool]
fn blocks() -> Vec<Content> {
    vec![
        Text::new("text").audience([Role::User]).priority(0.5).last_modified("2026-01-01T00:00:00Z").into(),
        Image::new(b"png".to_vec(), "image/png").meta("k", 1).into(),
        Audio::new(b"wav".to_vec(), "audio/wav").into(),
        ResourceLink::new("test://link", "link")
            .title("A link")
            .description("Leads somewhere")
            .size(3)
            .mime("text/plain")
            .icon(icon())
            .priority(1.0)
            .meta("k", 1)
            .into(),
        Embedded::new(ResourceContents::text("embedded").uri("test://embedded").meta("k", 1))
            .meta("k", 1)
            .into(),
        Embedded::blob("test://blob", "image/png", b"png".to_vec()).into(),
    ]
}

/// A list
#[mcp_tool]
fn list() -> Json<Vec<u8>> {
    Json(vec![1, 2])
}

/// Fails
#[mcp_tool]
fn fails() -> Result<(), ToolError> {
    Err(ToolError::new("no"))
}

/// Reports
#[mcp_tool]
fn reports(ctx: &Context) -> ToolResult {
    ctx.progress(1.0).total(2.0).message("half").meta("k", 1).send();
    ctx.log(LogLevel::Warning, "careful").logger("test").meta("k", 1).send();
    ToolResult::text("done").meta("k", "v")
}

#[mcp_type]
#[serde(rename_all = "lowercase")]
enum Size {
    #[schemars(title = "Not much")]
    Small,
    #[schemars(title = "A lot")]
    Large,
}

#[mcp_type]
#[serde(default)]
struct Order {
    name: String,
    count: u8,
    size: Size,
    gift: bool,
}

impl Default for Order {
    fn default() -> Self {
        Self { name: "tea".into(), count: 1, size: Size::Small, gift: false }
    }
}

/// Asks user, model and client
#[mcp_tool]
async fn asks(ctx: &Context) -> String {
    let (order, model, roots) = tokio::join!(
        ctx.elicit::<Order>("order", "What would you like?").meta("k", 1),
        ctx.sample("model")
            .system("Be brief.")
            .user("Hi")
            .assistant("Hello")
            .user("And?")
            .max_tokens(5)
            .model("m")
            .meta("k", 1),
        ctx.roots("roots").meta("k", 1),
    );
    format!("{} {} {}", order.is_ok(), model.is_ok(), roots.is_ok())
}

/// A text
#[mcp_resource(
    uri = "test://text",
    title = "Text",
    mime = "text/markdown",
    icon = "https://example.com/icon.png",
    audience = "user",
    priority = 0.5,
    size = 4,
    meta(k = 1),
    cache(ttl = "60s", public)
)]
fn text() -> &'static str {
    "text"
}

/// Text with everything that it can have
#[mcp_resource(uri = "test://meta")]
fn with_meta() -> ResourceResult {
    ResourceResult::new([ResourceContents::text("x").meta("k", 1)]).meta("k", 1)
}

fn instances() -> Vec<ListedResource> {
    let full =
        ListedResource::new("test://bytes/one").name("one").title("One").description("1").mime("a/b").size(1);
    let full =
        full.icon(icon()).audience([Role::Assistant]).priority(0.5).last_modified("2026-01-01T00:00:00Z");
    vec![full.meta("k", 1), ListedResource::new("test://bytes/two")]
}

/// Bytes
#[mcp_resource(
    uri = "test://bytes/{name}",
    title = "Bytes",
    icon(src = "https://example.com/icon.png", theme = "light"),
    priority = 0.5,
    meta(k = 1),
    list = instances
)]
fn bytes(#[mcp(complete("one", "two"))] name: String) -> Vec<u8> {
    name.into_bytes()
}

/// Every kind of message
#[mcp_prompt(title = "Messages", icon = "https://example.com/icon.png", meta(k = 1))]
fn messages(
    /// A topic
    #[mcp(title = "What about", complete("tea", "coffee"))]
    topic: String,
) -> PromptResult {
    let mut all: Vec<Message> = blocks().into_iter().map(Message::user).collect();
    all.push(Message::assistant(topic));
    PromptResult::new(all).description("Made for the test").meta("k", 1)
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .discover_in(module_path!())
        .title("Everything")
        .website("https://example.com")
        .description("All that there is")
        .icon("https://example.com/icon.png")
        .icon(icon())
        .instructions("Use it.")
        .logging()
        .page_size(2)
}

/// The definition of a request of ours, by its method.
fn request_of(method: &str) -> &'static str {
    match method {
        "elicitation/create" => "ElicitRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "roots/list" => "ListRootsRequest",
        other => panic!("nobody asks `{other}`"),
    }
}

/// The result of the handshake.
async fn hello(server: &Server, revision: Revision) -> Value {
    let params = json!({
        "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": { "name": "t", "version": "1" }
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let mut written = Vec::new();
    server.serve(format!("{request}\n").as_bytes(), &mut written).await.expect("it is served");
    let reply: Value = serde_json::from_slice(&written).expect("one reply");
    reply["result"].clone()
}

/// Everything that the server says in a revision: what it ought to be, and what it is.
async fn said(revision: Revision) -> Vec<(&'static str, Value)> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&asked);
    let built = builder().build().expect("a server");
    let server = TestServer::of(&built)
        .answering(json!({ "elicitation": {}, "sampling": {}, "roots": {} }), move |method, params| {
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            keep.lock().expect("unpoisoned").push((request_of(method), request));
            match method {
                "elicitation/create" => Ok(json!({ "action": "decline" })),
                _ => Err("no".to_owned()),
            }
        })
        .legacy(revision);
    let mut said = Vec::new();
    let requests = [
        ("ListToolsResult", "tools/list", json!({})),
        ("ListResourcesResult", "resources/list", json!({})),
        ("ListResourceTemplatesResult", "resources/templates/list", json!({})),
        ("ListPromptsResult", "prompts/list", json!({})),
        ("CallToolResult", "tools/call", json!({ "name": "all_of_it", "arguments": { "city": "Kiel" } })),
        ("CallToolResult", "tools/call", json!({ "name": "blocks" })),
        ("CallToolResult", "tools/call", json!({ "name": "list" })),
        ("CallToolResult", "tools/call", json!({ "name": "fails" })),
        (
            "CallToolResult",
            "tools/call",
            json!({ "name": "reports", "_meta": {
            "progressToken": 7, "io.modelcontextprotocol/logLevel": "info"
        } }),
        ),
        ("ReadResourceResult", "resources/read", json!({ "uri": "test://text" })),
        ("ReadResourceResult", "resources/read", json!({ "uri": "test://bytes/x" })),
        ("ReadResourceResult", "resources/read", json!({ "uri": "test://meta" })),
        ("GetPromptResult", "prompts/get", json!({ "name": "messages", "arguments": { "topic": "tea" } })),
        (
            "CompleteResult",
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "messages" }, "argument": { "name": "topic", "value": "t" } }),
        ),
        ("Error", "tools/call", json!({ "name": "nothing" })),
        ("Error", "resources/read", json!({ "uri": "test://nothing" })),
        ("CallToolResult", "tools/call", json!({ "name": "asks" })),
    ];
    if !revision.is_modern() {
        said.push(("InitializeResult", hello(&built, revision).await));
    }
    said.push(if revision.is_modern() {
        ("DiscoverResult", server.request("server/discover", json!({})).await.value().clone())
    } else {
        ("EmptyResult", server.request("ping", json!({})).await.value().clone())
    });
    let mut requests = VecDeque::from(requests);
    while let Some((what, method, params)) = requests.pop_front() {
        let reply = server.request(method, params).await;
        if let Some(cursor) = reply.value().get("nextCursor").filter(|_| reply.error().is_none()) {
            requests.push_front((what, method, json!({ "cursor": cursor })));
        }
        let value = match (what, reply.error()) {
            ("Error", Some(error)) => {
                json!({ "code": error.code, "message": error.message, "data": error.data })
            }
            ("Error", None) => panic!("{method} went well: {reply}"),
            (_, Some(error)) => panic!("{method}: {error:?}"),
            (_, None) => reply.value().clone(),
        };
        let asks = value["resultType"] == "input_required";
        said.push((if asks { "InputRequiredResult" } else { what }, value));
        for notification in reply.notifications().iter().filter(|message| message.get("id").is_none()) {
            said.push(match notification["method"].as_str() {
                Some("notifications/progress") => ("ProgressNotification", notification.clone()),
                Some("notifications/message") => ("LoggingMessageNotification", notification.clone()),
                other => panic!("unexpected {other:?}"),
            });
        }
    }
    if !revision.is_modern() {
        said.append(&mut asked.lock().expect("unpoisoned"));
    }
    said
}

#[tokio::test]
async fn x4_every_kind_of_reply_is_valid_in_its_own_revision_and_has_nothing_newer() {
    let suite = match Suite::install() {
        Ok(suite) => suite,
        Err(missing) => return skip("schemas", &missing),
    };
    let schemas = Schema::all(&suite);
    let revisions: Vec<_> = schemas.iter().map(|(revision, _)| *revision).collect();
    assert_eq!(revisions, Revision::ALL[1..], "the suite's schemas are not what they were");
    let mut wrong = BTreeMap::new();
    for (revision, schema) in schemas {
        let mut kinds = Vec::new();
        for (what, value) in said(revision).await {
            // an error is the member of a reply; its definition has another name, or none, in some revisions
            if what == "Error" && !schema.has(what) {
                assert!(value["code"].is_i64() && value["message"].is_string(), "{value}");
                continue;
            }
            kinds.push(what);
            for complaint in schema.complaints(what, &value) {
                wrong
                    .entry((revision, what))
                    .or_insert_with(Vec::new)
                    .push(format!("{complaint} in {value}"));
            }
        }
        let asks: &[&str] = match revision {
            Revision::V2026_07_28 => &["InputRequiredResult"],
            Revision::V2025_03_26 => &["CreateMessageRequest", "ListRootsRequest"],
            _ => &["CreateMessageRequest", "ListRootsRequest", "ElicitRequest"],
        };
        for expected in
            asks.iter().chain(&["ProgressNotification", "LoggingMessageNotification", "CompleteResult"])
        {
            assert!(kinds.contains(expected), "{revision}: nothing said is a {expected}: {kinds:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn x4_the_first_revision_has_none_of_what_came_later() {
    // members that 2025-03-26 and later revisions brought; the first revision has no schema to validate with
    let later = [
        "annotations\":{\"readOnlyHint",
        "\"title\"",
        "\"icons\"",
        "\"websiteUrl\"",
        "\"outputSchema\"",
        "\"structuredContent\"",
        "\"resource_link\"",
        "\"audio\"",
        "\"lastModified\"",
        "\"completions\"",
        "\"resultType\"",
        "\"ttlMs\"",
        "\"cacheScope\"",
        "\"execution\"",
    ];
    for (what, value) in said(Revision::V2024_11_05).await {
        let text = value.to_string();
        for member in later {
            assert!(!text.contains(member), "{what} has {member}: {text}");
        }
        if what == "ProgressNotification" {
            assert!(value["params"].get("message").is_none(), "{value}");
        }
    }
}
