use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "ui://charts/page.html", ui(domain = "https://app.example.org"))]
fn page() -> &'static str {
    "<!doctype html>"
}

fn main() {}
