use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a")]
fn page() -> Vec<String> {
    Vec::new()
}

fn main() {}
