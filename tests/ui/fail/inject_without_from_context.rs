use mcp_runtime::mcp_tool;

struct Db;

#[mcp_tool]
fn search(#[mcp(inject)] value: Db) -> String {
    let _ = value;
    String::new()
}

fn main() {}
