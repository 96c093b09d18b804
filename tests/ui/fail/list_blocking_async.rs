use mcp_runtime::mcp_resource;

async fn ids() -> Vec<String> {
    Vec::new()
}

#[mcp_resource(uri = "docs://{id}", list = blocking(ids))]
fn page(id: u32) -> u32 {
    id
}

fn main() {}
