//! `icon`, of tools and prompts.

mod icon_number {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon = [1])]
    fn search(query: String) -> String {
        query
    }
}

mod icon_empty {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon())]
    fn search(query: String) -> String {
        query
    }
}

mod icon_mixed {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon("https://a.example/i.png", sizes("48x48")))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_without_src {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(sizes("48x48"), theme = "dark"))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_src_constant {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = ICON))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_src_twice {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = "https://a.example/i.png", src = "https://a.example/j.png"))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_misspelt_src {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(scr = "https://a.example/i.png", sizes("any")))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_unknown {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = "https://a.example/i.png", size = "48x48"))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_option_outside {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon = "https://a.example/i.png", sizes("48x48"))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_relative {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon = "icon.png")]
    fn search(query: String) -> String {
        query
    }
}

mod icon_http {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon("https://a.example/i.png", "http://a.example/i.png"))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_src_file {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = "file:///i.png", sizes("any")))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_mime {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = "https://a.example/i.png", mime = "text/html"))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_size {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = "https://a.example/i.png", sizes("any", "48")))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_size_number {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = "https://a.example/i.png", sizes(48)))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_theme {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = "https://a.example/i.png", theme = "drak"))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_theme_word {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(icon(src = "https://a.example/i.png", theme = dark))]
    fn search(query: String) -> String {
        query
    }
}

mod icon_of_prompt {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt(icon = "https://a.example/i.png", icon(src = "https://a.example/j.png", sizes("48 x 48")))]
    fn review(code: String) -> String {
        code
    }
}

fn main() {}
