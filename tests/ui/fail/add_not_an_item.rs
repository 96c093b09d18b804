use mcp_runtime::mcp_tool;

#[mcp_tool]
fn greet(name: String) -> String {
    name
}

fn main() {
    let _ = mcp_runtime::server!().add(greet);
}
