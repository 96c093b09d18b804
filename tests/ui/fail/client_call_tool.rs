use mcp_runtime::prelude::*;
use mcp_runtime::client::Client;

#[mcp_tool]
fn search(q: String) -> String {
    q
}

#[mcp_runtime::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let s = mcp_runtime::server!().discover().build()?;
    let c = Client::connect(&s).await?;
    c.call_tool("search", serde_json::json!({})).await?;
    Ok(())
}
