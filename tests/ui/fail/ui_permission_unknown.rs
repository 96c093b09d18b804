use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "ui://charts/page.html", ui(permissions(clipboard)))]
fn page() -> &'static str {
    "<!doctype html>"
}

fn main() {}
