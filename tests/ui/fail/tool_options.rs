//! Options of `#[mcp_tool]` that are unknown, duplicated or have a value of another kind.

mod option_unknown {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(titel = "Search")]
    fn search(query: String) -> String {
        query
    }
}

mod option_unknown_far {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(colour = "red")]
    fn search(query: String) -> String {
        query
    }
}

mod option_abbreviated {
    use mcp_runtime::prelude::*;

    #[mcp_tool(desc = "Adds.")]
    fn add() {}
}

mod option_of_parameter {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(range(1..=2))]
    fn search(query: String) -> String {
        query
    }
}

mod option_of_resource {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(uri = "a://b")]
    fn search(query: String) -> String {
        query
    }
}

mod option_duplicate {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(title = "a", title = "b")]
    fn search(query: String) -> String {
        query
    }
}

mod option_literal {
    use mcp_runtime::mcp_tool;

    #[mcp_tool("search")]
    fn search(query: String) -> String {
        query
    }
}

mod option_missing_comma {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(read_only strict)]
    fn search(query: String) -> String {
        query
    }
}

mod option_without_parentheses_value {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(title "Search")]
    fn search(query: String) -> String {
        query
    }
}

mod option_without_value {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(title)]
    fn search(query: String) -> String {
        query
    }
}

mod option_empty_value {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(title = )]
    fn search(query: String) -> String {
        query
    }
}

mod option_number_for_string {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(title = 5)]
    fn search(query: String) -> String {
        query
    }
}

mod option_string_for_flag {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(read_only = "yes")]
    fn search(query: String) -> String {
        query
    }
}

mod options_on_function {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    #[mcp(default = 1)]
    fn search(query: String) -> String {
        query
    }
}

mod title_empty {
    use mcp_runtime::prelude::*;

    #[mcp_tool(title = "")]
    fn untitled() {}
}

mod read_only_destructive {
    use mcp_runtime::prelude::*;

    #[mcp_tool(read_only, destructive)]
    fn wipe() {}
}

mod blocking_on_async_fn {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(blocking)]
    async fn search(query: String) -> String {
        query
    }
}

mod crate_string {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(crate = "mcp_runtime")]
    fn search(query: String) -> String {
        query
    }
}

mod output_string {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(output("Report"))]
    fn search(query: String) -> String {
        query
    }
}

mod registered_tool {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(titel = "Search")]
    fn search(query: String) -> String {
        query
    }

    fn start() {
        let _ = mcp_runtime::server!().tool::<search>().build();
    }
}

fn main() {}
