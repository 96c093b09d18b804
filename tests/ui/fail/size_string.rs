use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a", size = "1")]
fn page() -> String {
    String::new()
}

fn main() {}
