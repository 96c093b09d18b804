use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a", cache(public))]
fn page() -> String {
    String::new()
}

fn main() {}
