//! Names that a tool cannot have.

mod name_empty {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(name = "")]
    fn search(query: String) -> String {
        query
    }
}

mod name_with_space {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(name = "search catalogue")]
    fn search(query: String) -> String {
        query
    }
}

mod name_too_long {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(name = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")]
    fn search(query: String) -> String {
        query
    }
}

mod name_not_ascii {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(name = "größe")]
    fn search(query: String) -> String {
        query
    }
}

mod name_of_function_not_ascii {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn größe() -> u32 {
        1
    }
}

fn main() {}
