use mcp_runtime::mcp_tool;

#[mcp_tool(icon("https://a.example/i.png", "http://a.example/i.png"))]
fn search(query: String) -> String {
    query
}

fn main() {}
