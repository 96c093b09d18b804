use mcp_runtime::prelude::*;
#[derive(Tool)]
struct Search { q: String }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
