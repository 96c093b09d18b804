use mcp_runtime::prelude::*;
use mcp_runtime::client::Client;

#[mcp_tool]
fn search(q: String) -> String {
    q
}

#[mcp_runtime::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let c = Client::connect(mcp_runtime::server!().discover()).await?;
    println!("{:?}", c.tools().await?.len());
    Ok(())
}
