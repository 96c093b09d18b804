use mcp_runtime::prelude::*;

fn main() {
    #[mcp_tool]
    let search = |query: String| query;
    let _ = search(String::new());
}
