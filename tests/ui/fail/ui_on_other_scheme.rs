use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "docs://charts/page.html", ui(prefers_border))]
fn page() -> &'static str {
    "<!doctype html>"
}

fn main() {}
