use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://{id}")]
fn doc(#[mcp(title = "Number")] id: u32) -> String {
    id.to_string()
}

fn main() {}
