use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: String) -> String {
    query
}

struct Find {}

fn main() {
    let _ = mcp_runtime::server!().tool::<search>().tool::<Find>().build();
}
