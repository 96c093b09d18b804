use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a", scopes("read"), cache(ttl = "60s", public))]
fn page() -> String {
    String::new()
}

fn main() {}
