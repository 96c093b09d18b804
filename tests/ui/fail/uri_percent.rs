use mcp_runtime::prelude::*;

#[mcp_resource(uri = "docs://100%")]
fn page() -> String {
    String::new()
}

fn main() {}
