use mcp_runtime::mcp_tool;

struct Broken;

#[mcp_tool]
fn search() -> Result<String, Broken> {
    Err(Broken)
}

fn main() {}
