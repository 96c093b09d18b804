use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://{id}")]
fn page(#[mcp(header = "Id")] id: u32) -> u32 {
    id
}

fn main() {}
