use mcp_runtime::tool::ToolDef;

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().add(ToolDef::builder("x")).run()
}
