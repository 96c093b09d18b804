//! A server that uses every part of the protocol, and requests for all of it. The conformance tests validate its
//! results against the schemas, the matrix of the integration tests compares them between transports.

use mcp_runtime::{
    ServerBuilder, ToolResult,
    client_request::{CreateMessage, ModelHint, ModelPreferences, SamplingMessage},
    content::{
        Audio, Content, Embedded, Icon, Image, Message, ResourceContents, ResourceLink, Role, Text, Theme,
    },
    context::LogLevel,
    prelude::*,
    prompt::PromptResult,
    resource::{ListedResource, ResourceResult},
};
use serde_json::{Value, json};

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
fn every_option(city: String, #[mcp(default = 3)] days: u8) -> Json<Weather> {
    Json(Weather { degrees: f64::from(days), city })
}

fn icon() -> Icon {
    Icon::new("https://example.com/light.png").mime("image/png").sizes(["48x48"]).theme(Theme::Light)
}

/// Every kind of block
#[mcp_tool]
fn blocks() -> Vec<Content> {
    vec![
        Text::new("text")
            .annotated(|hints| {
                hints.audience([Role::User]).priority(0.5).last_modified("2026-01-01T00:00:00Z")
            })
            .into(),
        Image::new(b"png".to_vec(), "image/png").meta("k", 1).into(),
        Audio::new(b"wav".to_vec(), "audio/wav").into(),
        ResourceLink::new("test://link", "link")
            .title("A link")
            .description("Leads somewhere")
            .size(3)
            .mime("text/plain")
            .icon(icon())
            .annotated(|hints| hints.priority(1.0))
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

/// Requests elicitation, sampling and roots
#[mcp_tool]
async fn asks(ctx: &Context) -> String {
    let request = CreateMessage {
        messages: vec![
            SamplingMessage::user("Hi"),
            SamplingMessage::assistant("Hello"),
            SamplingMessage::user("And?"),
        ],
        system_prompt: Some("Be brief.".into()),
        max_tokens: 5,
        model_preferences: Some(ModelPreferences {
            hints: vec![ModelHint { name: "m".into() }],
            ..ModelPreferences::default()
        }),
        meta: [("k".to_owned(), json!(1))].into_iter().collect(),
        ..CreateMessage::default()
    };
    let (order, model, roots) = tokio::join!(
        ctx.elicit::<Order>("order", "What would you like?").meta("k", 1),
        ctx.sample("model", request),
        ctx.roots("roots"),
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
        ListedResource::new("test://bytes/one", "one").title("One").description("1").mime("a/b").size(1);
    let full = full.icon(icon()).annotated(|hints| {
        hints.audience([Role::Assistant]).priority(0.5).last_modified("2026-01-01T00:00:00Z")
    });
    vec![full.meta("k", 1), "test://bytes/two".into()]
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

pub(crate) fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .discover_in(module_path!())
        .info(|info| {
            info.title("Everything")
                .website("https://example.com")
                .description("All that there is")
                .icon("https://example.com/icon.png")
                .icon(icon())
                .instructions("Use it.")
        })
        .telemetry(|telemetry| telemetry.client_logging())
        .lists(|lists| lists.page_size(2))
}

/// Requests for every kind of result: its definition in the schemas, or `Error`; method; params.
pub(super) fn requests() -> [(&'static str, &'static str, Value); 17] {
    [
        ("ListToolsResult", "tools/list", json!({})),
        ("ListResourcesResult", "resources/list", json!({})),
        ("ListResourceTemplatesResult", "resources/templates/list", json!({})),
        ("ListPromptsResult", "prompts/list", json!({})),
        ("CallToolResult", "tools/call", json!({ "name": "every_option", "arguments": { "city": "Kiel" } })),
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
    ]
}
