use mcp_runtime::prelude::*;
use mcp_runtime::client::Client;

#[mcp_prompt]
fn search(q: String) -> String {
    q
}

#[mcp_runtime::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let s = mcp_runtime::server!().discover().build()?;
    let c = Client::connect(&s).await?;
    let r = c.typed::<search>().call(("tea".into(),)).await?;
    let _ = r;
    Ok(())
}
