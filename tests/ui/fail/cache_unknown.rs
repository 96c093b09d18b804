use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://a", cache(ttl = "60s", privat))]
fn page() -> String {
    String::new()
}

fn main() {}
