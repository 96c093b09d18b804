use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://{id}", list = "ids")]
fn page(id: u32) -> u32 {
    id
}

fn main() {}
