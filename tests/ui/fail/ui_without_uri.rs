use mcp_runtime::mcp_resource;

#[mcp_resource(ui(prefers_border))]
fn page() -> &'static str {
    "<!doctype html>"
}

fn main() {}
