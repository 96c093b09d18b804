use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a", audience("model"))]
fn page() -> String {
    String::new()
}

fn main() {}
