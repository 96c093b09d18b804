//! `ui`, of tools and of pages.

include!("../support/table.rs");

mistakes! {
    ui_bare: #[mcp_tool(ui)] ()
    ui_unknown: #[mcp_tool(ui(uri = "ui://charts/page.html"))] ()
    ui_beside_meta: #[mcp_tool(ui(resource = "ui://charts/page.html"), meta(ui(visibility = ["app"])))] ()
    ui_resource_not_a_page: #[mcp_tool(ui(resource = "https://example.org/page.html"))] ()
    ui_resource_template: #[mcp_tool(ui(resource = "ui://charts/{kind}"))] ()
    ui_visibility_string: #[mcp_tool(ui(visibility = "app"))] ()
    ui_visibility_unknown: #[mcp_tool(ui(resource = "ui://charts/page.html", visibility(model, user)))] ()
    ui_on_prompt: #[mcp_prompt(ui(resource = "ui://charts/page.html"))] ()
    ui_without_uri: #[mcp_resource(ui(prefers_border))] ()
    ui_on_other_scheme: #[mcp_resource(uri = "docs://charts/page.html", ui(prefers_border))] ()
    ui_with_other_mime: #[mcp_resource(uri = "ui://charts/page.html", mime = "text/html", ui(prefers_border))] ()
    ui_csp_unknown: #[mcp_resource(uri = "ui://charts/page.html", ui(csp(scripts("https://example.org"))))] ()
    ui_csp_not_an_origin: #[mcp_resource(uri = "ui://charts/page.html", ui(csp(connect("api.example.org"))))] ()
    ui_permission_unknown: #[mcp_resource(uri = "ui://charts/page.html", ui(permissions(clipboard)))] ()
    ui_domain_url: #[mcp_resource(uri = "ui://charts/page.html", ui(domain = "https://app.example.org"))] ()
}

fn main() {}
