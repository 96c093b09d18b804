use mcp_runtime::prelude::*;
use mcp_runtime::client::{Client, ElicitAnswer};

#[mcp_tool]
fn search(q: String) -> String {
    q
}

#[mcp_runtime::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let s = mcp_runtime::server!().discover().build()?;
    let c = Client::builder().on_elicit(|_| ElicitAnswer::Accept(serde_json::json!({}))).connect(&s).await?;
    println!("{:?}", c.tools().await?.len());
    Ok(())
}
