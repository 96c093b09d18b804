use mcp_runtime::mcp_tool;

#[mcp_tool(icon(scr = "https://a.example/i.png", sizes("any")))]
fn search(query: String) -> String {
    query
}

fn main() {}
