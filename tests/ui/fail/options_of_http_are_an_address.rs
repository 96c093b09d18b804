use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(words: String) -> String {
    words
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().http("0.0.0.0:8080").run()
}
