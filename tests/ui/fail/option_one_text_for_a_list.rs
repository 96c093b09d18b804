use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(words: String) -> String {
    words
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().http(|http| http.allowed_hosts("mcp.example.com")).run()
}
