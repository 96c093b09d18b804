use mcp_runtime::mcp_tool;

#[mcp_tool(ui(resource = "https://example.org/page.html"))]
fn chart() {}

fn main() {}
