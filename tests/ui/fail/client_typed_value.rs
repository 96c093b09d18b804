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
    let r: String = c.typed(search).call(("tea".into(),)).await?;
    println!("{r}");
    Ok(())
}
