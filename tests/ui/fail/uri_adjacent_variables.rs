use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://{a}{b}")]
fn page(a: String, b: String) -> String {
    a + &b
}

fn main() {}
