use mcp_runtime::prelude::*;

#[mcp_resource(uri = "docs://büro")]
fn page() -> String {
    String::new()
}

fn main() {}
