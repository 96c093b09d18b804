//! Timeouts, rates, and limits of calls and results.

mod timeout_number {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(timeout = 5)]
    async fn search(query: String) -> String {
        query
    }
}

mod timeout_constant {
    use mcp_runtime::mcp_tool;

    const LIMIT: &str = "5s";

    #[mcp_tool(timeout = LIMIT)]
    async fn search(query: String) -> String {
        query
    }
}

mod timeout_unit {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(timeout = "5 seconds")]
    async fn search(query: String) -> String {
        query
    }
}

mod timeout_zero {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(timeout = "0s")]
    async fn search(query: String) -> String {
        query
    }
}

mod timeout_on_plain_fn {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(timeout = "5s")]
    fn search(query: String) -> String {
        query
    }
}

mod prompt_with_timeout {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt(timeout = "5s")]
    async fn review(id: u32) -> String {
        id.to_string()
    }
}

mod max_concurrency_string {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(max_concurrency = "2")]
    fn search(query: String) -> String {
        query
    }
}

mod max_concurrency_zero {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(max_concurrency = 0)]
    fn search(query: String) -> String {
        query
    }
}

mod max_result_without_unit {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "log://today", max_result = "50000")]
    fn today() -> String {
        String::new()
    }
}

mod rate_in_words {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(rate = "60 per minute")]
    async fn search(query: String) -> String {
        query
    }
}

fn main() {}
