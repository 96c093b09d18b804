use mcp_runtime::mcp_tool;

struct Tx;

#[mcp_tool(blocking)]
fn search(#[mcp(inject)] tx: Tx) -> String {
    drop(tx);
    String::new()
}

fn main() {}
