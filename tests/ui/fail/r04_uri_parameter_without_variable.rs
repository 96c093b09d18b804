use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://{id}")]
fn page(id: u32, page: u32) -> u32 {
    id + page
}

fn main() {}
