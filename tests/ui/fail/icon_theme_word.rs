use mcp_runtime::mcp_tool;

#[mcp_tool(icon(src = "https://a.example/i.png", theme = dark))]
fn search(query: String) -> String {
    query
}

fn main() {}
