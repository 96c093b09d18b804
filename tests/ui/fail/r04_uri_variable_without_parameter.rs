use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://{id}/{page}")]
fn page(id: u32) -> String {
    id.to_string()
}

fn main() {}
