use mcp_runtime::mcp_tool;

#[mcp_tool(icon(src = "https://a.example/i.png", src = "https://a.example/j.png"))]
fn search(query: String) -> String {
    query
}

fn main() {}
