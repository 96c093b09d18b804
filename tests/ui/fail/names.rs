//! Names that a tool cannot have.

include!("../support/table.rs");

mistakes! {
    name_empty: #[mcp_tool(name = "")] (query: String)
    name_with_space: #[mcp_tool(name = "search catalogue")] (query: String)
    name_too_long: #[mcp_tool(name = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")] (query: String)
    name_not_ascii: #[mcp_tool(name = "größe")] (query: String)
}

fn main() {}
