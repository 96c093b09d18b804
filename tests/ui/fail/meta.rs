//! `meta`, `tags`, `scopes` and `requires`.

mod meta_flat {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(meta = "m")]
    fn search(query: String) -> String {
        query
    }
}

mod meta_without_value {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(meta(model))]
    fn search(query: String) -> String {
        query
    }
}

mod meta_expression {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(meta(model = 1 + 1))]
    fn search(query: String) -> String {
        query
    }
}

mod meta_duplicate {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(meta(a = 1, a = 2))]
    fn search(query: String) -> String {
        query
    }
}

mod tags_number {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(tags(1))]
    fn search(query: String) -> String {
        query
    }
}

mod tags_beside_meta {
    use mcp_runtime::prelude::*;

    #[mcp_tool(tags("a"), meta(tags = ["b"]))]
    fn tagged() {}
}

mod scopes_empty {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(scopes())]
    fn search(query: String) -> String {
        query
    }
}

mod scopes_with_space {
    use mcp_runtime::prelude::*;

    #[mcp_tool(scopes("read write"))]
    fn secret() {}
}

mod requires_bare {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(requires)]
    fn ask() {}
}

mod requires_empty {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(requires())]
    fn ask() {}
}

mod requires_unknown {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(requires(elicitation, samplng))]
    fn ask() {}
}

mod requires_duplicate {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(requires(roots, sampling, roots))]
    fn ask() {}
}

fn main() {}
