#[mcp_runtime::main]
async fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().http(|http| http.max_body(1 << 20).path("/mcp")).serve_stdio().await
}
