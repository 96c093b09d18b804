use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a", mime_type = "text/plain")]
fn page() -> String {
    String::new()
}

fn main() {}
