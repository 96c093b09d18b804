use mcp_runtime::prelude::*;

fn timing() {}

#[mcp_tool(layers(timing))]
fn search(q: String) -> String {
    q
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
