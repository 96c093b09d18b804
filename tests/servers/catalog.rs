//! The `catalog` server: one item for each behaviour that is tested over real pipes.

use mcp_runtime::{
    ProtocolError,
    content::{Audio, ResourceLink},
    prelude::*,
};

/// Echoes
#[mcp_tool]
async fn echo(message: String) -> String {
    message
}

/// Takes arguments that models get wrong
#[mcp_tool(title = "Order", read_only, icon = "https://example.org/i.png", meta(n = 1))]
fn order(
    #[mcp(range(1..=100), default = 10)] limit: u32,
    ids: Vec<i64>,
    #[mcp(header = "Region")] region: Option<String>,
) -> Json<Vec<i64>> {
    Json(ids.into_iter().filter(|id| *id < i64::from(limit)).chain(region.map(|_| 0)).collect())
}

/// Refuses unknown keys
#[mcp_tool(strict)]
fn exact(n: u8) -> u8 {
    n
}

/// Takes any value
#[mcp_tool]
fn anything(value: Option<serde_json::Value>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Fails in the given way
#[mcp_tool]
async fn fail(how: String) -> Result<(), ToolError> {
    match how.as_str() {
        "public" => Err(ToolError::new("m")),
        "private" => Err(ToolError::private("secret of the error")),
        "protocol" => Err(ProtocolError::new(1001, "own").with_data(serde_json::json!([1])).into()),
        "panic" => panic!("secret of the panic"),
        _ => Ok(()),
    }
}

/// Returns blocks of several kinds
#[mcp_tool]
fn blocks() -> (&'static str, Audio, ResourceLink) {
    ("text", Audio::new([1_u8, 2, 3], "audio/wav"), ResourceLink::new("docs://a", "a"))
}

/// Takes too long
#[mcp_tool(timeout = "20ms")]
async fn slow() {
    std::future::pending::<()>().await;
}

/// Not registered
#[mcp_tool]
fn unregistered() {}

/// Not registered
#[mcp_prompt]
fn unregistered_prompt() -> &'static str {
    ""
}

/// Not registered, on purpose
/// A service that no server offers.
struct Unregistered;

#[mcp_service]
impl Unregistered {
    #[mcp_tool]
    fn never_offered(&self) {}
}

#[mcp_tool(unregistered)]
fn left_out() {}

/// Settings
#[mcp_resource(uri = "config://app", mime = "application/json", cache(ttl = "1s"))]
fn config() -> String {
    "{}".into()
}

#[mcp_resource(uri = "docs://a/{id}")]
fn doc(id: u32) -> Option<Vec<u8>> {
    u8::try_from(id).ok().map(|id| vec![id])
}

/// Writes
#[mcp_prompt]
fn write(topic: String, #[mcp(complete("long", "short"))] length: Option<u32>) -> String {
    format!("{topic} {length:?}")
}

fn main() -> mcp_runtime::Result<()> {
    // what is not registered here is for the report of unregistered items
    unregistered();
    unregistered_prompt();
    Unregistered.never_offered();
    left_out();
    mcp_runtime::server!()
        .info(|info| info.name("catalog").version("1.0.0"))
        .tool::<echo>()
        .tool::<order>()
        .tool::<exact>()
        .tool::<anything>()
        .tool::<fail>()
        .tool::<blocks>()
        .tool::<slow>()
        .resource::<config>()
        .resource::<doc>()
        .prompt::<write>()
        .run()
}
