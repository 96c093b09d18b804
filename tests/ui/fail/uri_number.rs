use mcp_runtime::mcp_resource;

#[mcp_resource(uri = 5)]
fn page() -> String {
    String::new()
}

fn main() {}
