use mcp_runtime::mcp_tool;

#[mcp_tool(titel = "Search")]
fn search(query: String) -> String {
    query
}

fn main() {
    let _ = mcp_runtime::server!().tool::<search>().build();
}
