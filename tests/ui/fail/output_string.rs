use mcp_runtime::mcp_tool;

#[mcp_tool(output("Report"))]
fn search(query: String) -> String {
    query
}

fn main() {}
