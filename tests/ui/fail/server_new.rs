use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(words: String) -> String {
    words
}

fn main() -> mcp_runtime::Result<()> {
    let server = mcp_runtime::Server::new();
    server.tool::<search>().run()
}
