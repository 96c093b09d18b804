use mcp_runtime::mcp_tool;

#[mcp_tool(icon("https://a.example/i.png", sizes("48x48")))]
fn search(query: String) -> String {
    query
}

fn main() {}
