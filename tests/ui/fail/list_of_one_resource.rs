use mcp_runtime::prelude::*;

fn all() -> Vec<String> {
    Vec::new()
}

#[mcp_resource(uri = "docs://one", list = all)]
fn page() -> String {
    all().concat()
}

fn main() {}
