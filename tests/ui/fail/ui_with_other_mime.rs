use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "ui://charts/page.html", mime = "text/html", ui(prefers_border))]
fn page() -> &'static str {
    "<!doctype html>"
}

fn main() {}
