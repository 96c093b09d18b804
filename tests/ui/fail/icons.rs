//! `icon`, of tools and prompts.

include!("../support/table.rs");

mistakes! {
    icon_number: #[mcp_tool(icon = [1])] (query: String)
    icon_empty: #[mcp_tool(icon())] (query: String)
    icon_mixed: #[mcp_tool(icon("https://a.example/i.png", sizes("48x48")))] (query: String)
    icon_without_src: #[mcp_tool(icon(sizes("48x48"), theme = "dark"))] (query: String)
    icon_src_constant: #[mcp_tool(icon(src = ICON))] (query: String)
    icon_src_twice: #[mcp_tool(icon(src = "https://a.example/i.png", src = "https://a.example/j.png"))] (query: String)
    icon_misspelt_src: #[mcp_tool(icon(scr = "https://a.example/i.png", sizes("any")))] (query: String)
    icon_unknown: #[mcp_tool(icon(src = "https://a.example/i.png", size = "48x48"))] (query: String)
    icon_option_outside: #[mcp_tool(icon = "https://a.example/i.png", sizes("48x48"))] (query: String)
    icon_relative: #[mcp_tool(icon = "icon.png")] (query: String)
    icon_http: #[mcp_tool(icon("https://a.example/i.png", "http://a.example/i.png"))] (query: String)
    icon_src_file: #[mcp_tool(icon(src = "file:///i.png", sizes("any")))] (query: String)
    icon_mime: #[mcp_tool(icon(src = "https://a.example/i.png", mime = "text/html"))] (query: String)
    icon_size: #[mcp_tool(icon(src = "https://a.example/i.png", sizes("any", "48")))] (query: String)
    icon_size_number: #[mcp_tool(icon(src = "https://a.example/i.png", sizes(48)))] (query: String)
    icon_theme: #[mcp_tool(icon(src = "https://a.example/i.png", theme = "drak"))] (query: String)
    icon_theme_word: #[mcp_tool(icon(src = "https://a.example/i.png", theme = dark))] (query: String)
    icon_of_prompt: #[mcp_prompt(icon = "https://a.example/i.png", icon(src = "https://a.example/j.png", sizes("48 x 48")))] (code: String)
}

fn main() {}
