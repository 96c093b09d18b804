use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: String) -> ! {
    panic!("{query}")
}

fn main() {}
