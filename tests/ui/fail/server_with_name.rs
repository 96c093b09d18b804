fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!("search", "1.0.0").discover().run()
}
