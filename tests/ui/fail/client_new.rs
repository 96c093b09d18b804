use mcp_runtime::client::Client;
use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(words: String) -> String {
    words
}

#[mcp_runtime::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::new("https://example.com/mcp").await?;
    println!("{:?}", client.tools().await?.len());
    Ok(())
}
