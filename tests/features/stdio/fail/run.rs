fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().run()
}
