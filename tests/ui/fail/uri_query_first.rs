use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://x{?q}/y")]
fn page(q: Option<u32>) -> Option<u32> {
    q
}

fn main() {}
