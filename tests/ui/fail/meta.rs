//! `meta`, `tags`, `scopes` and `requires`.

include!("../support/table.rs");

mistakes! {
    meta_flat: #[mcp_tool(meta = "m")] (query: String)
    meta_without_value: #[mcp_tool(meta(model))] (query: String)
    meta_expression: #[mcp_tool(meta(model = 1 + 1))] (query: String)
    meta_duplicate: #[mcp_tool(meta(a = 1, a = 2))] (query: String)
    tags_number: #[mcp_tool(tags(1))] (query: String)
    tags_beside_meta: #[mcp_tool(tags("a"), meta(tags = ["b"]))] ()
    scopes_empty: #[mcp_tool(scopes())] (query: String)
    scopes_with_space: #[mcp_tool(scopes("read write"))] ()
    requires_bare: #[mcp_tool(requires)] ()
    requires_empty: #[mcp_tool(requires())] ()
    requires_unknown: #[mcp_tool(requires(elicitation, samplng))] ()
    requires_duplicate: #[mcp_tool(requires(roots, sampling, roots))] ()
}

fn main() {}
