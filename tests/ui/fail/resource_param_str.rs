use mcp_runtime::prelude::*;

#[mcp_resource(uri = "notes://{id}")]
fn note(id: &str) -> String {
    id.to_owned()
}

fn main() {}
