use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "notes://${id}")]
fn note(id: String) -> String {
    id
}

fn main() {}
