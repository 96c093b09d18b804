#[mcp_runtime::main]
async fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().serve_http("127.0.0.1:3000").await
}
