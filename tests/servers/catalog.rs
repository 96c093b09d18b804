//! The `catalog` server: one item for each behaviour that is tested over real pipes.

use mcp_runtime::prelude::*;

/// Echoes
#[mcp_tool]
async fn echo(message: String) -> String {
    message
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

fn main() -> mcp_runtime::Result<()> {
    // what is not registered here is for the report of unregistered items
    unregistered();
    unregistered_prompt();
    Unregistered.never_offered();
    left_out();
    mcp_runtime::server!()
        .info(|info| info.name("catalog").version("1.0.0"))
        .tool::<echo>()
        .tool::<exact>()
        .tool::<anything>()
        .run()
}
