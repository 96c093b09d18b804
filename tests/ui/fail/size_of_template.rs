use mcp_runtime::prelude::*;

#[mcp_resource(uri = "docs://{id}", size = 1024)]
fn page(id: u64) -> String {
    id.to_string()
}

fn main() {}
