use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "ui://charts/page.html", ui(csp(scripts("https://example.org"))))]
fn page() -> &'static str {
    "<!doctype html>"
}

fn main() {}
