use mcp_runtime::mcp_tool;

#[mcp_tool]
extern "C" fn search(count: u32) -> u32 {
    count
}

fn main() {}
