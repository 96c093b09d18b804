//! `ui`, of tools and of pages.

mod ui_bare {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(ui)]
    fn chart() {}
}

mod ui_unknown {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(ui(uri = "ui://charts/page.html"))]
    fn chart() {}
}

mod ui_beside_meta {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(ui(resource = "ui://charts/page.html"), meta(ui(visibility = ["app"])))]
    fn chart() {}
}

mod ui_resource_not_a_page {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(ui(resource = "https://example.org/page.html"))]
    fn chart() {}
}

mod ui_resource_template {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(ui(resource = "ui://charts/{kind}"))]
    fn chart() {}
}

mod ui_visibility_string {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(ui(visibility = "app"))]
    fn chart() {}
}

mod ui_visibility_unknown {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(ui(resource = "ui://charts/page.html", visibility(model, user)))]
    fn chart() {}
}

mod ui_on_prompt {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt(ui(resource = "ui://charts/page.html"))]
    fn chart() -> String {
        String::new()
    }
}

mod ui_without_uri {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(ui(prefers_border))]
    fn page() -> &'static str {
        "<!doctype html>"
    }
}

mod ui_on_other_scheme {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://charts/page.html", ui(prefers_border))]
    fn page() -> &'static str {
        "<!doctype html>"
    }
}

mod ui_with_other_mime {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "ui://charts/page.html", mime = "text/html", ui(prefers_border))]
    fn page() -> &'static str {
        "<!doctype html>"
    }
}

mod ui_csp_unknown {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "ui://charts/page.html", ui(csp(scripts("https://example.org"))))]
    fn page() -> &'static str {
        "<!doctype html>"
    }
}

mod ui_csp_not_an_origin {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "ui://charts/page.html", ui(csp(connect("api.example.org"))))]
    fn page() -> &'static str {
        "<!doctype html>"
    }
}

mod ui_permission_unknown {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "ui://charts/page.html", ui(permissions(clipboard)))]
    fn page() -> &'static str {
        "<!doctype html>"
    }
}

mod ui_domain_url {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "ui://charts/page.html", ui(domain = "https://app.example.org"))]
    fn page() -> &'static str {
        "<!doctype html>"
    }
}

fn main() {}
