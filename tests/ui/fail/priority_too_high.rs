use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a", priority = 1.5)]
fn page() -> String {
    String::new()
}

fn main() {}
