use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(q: String) -> String {
    q
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().tool(search).run()
}
