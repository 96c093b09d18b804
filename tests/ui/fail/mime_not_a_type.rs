use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a", mime = "json")]
fn page() -> String {
    String::new()
}

fn main() {}
