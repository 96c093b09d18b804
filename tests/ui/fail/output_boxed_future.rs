use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(q: String) -> std::pin::Pin<Box<dyn Future<Output = String> + Send>> { Box::pin(async move { q }) }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
