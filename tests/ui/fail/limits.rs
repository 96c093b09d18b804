//! Timeouts, rates, and limits of calls and results.

include!("../support/table.rs");

mistakes! {
    timeout_number: #[mcp_tool(timeout = 5)] (query: String)
    timeout_unit: #[mcp_tool(timeout = "5 seconds")] (query: String)
    timeout_zero: #[mcp_tool(timeout = "0s")] (query: String)
    prompt_with_timeout: #[mcp_prompt(timeout = "5s")] (id: u32)
    max_concurrency_string: #[mcp_tool(max_concurrency = "2")] (query: String)
    max_concurrency_zero: #[mcp_tool(max_concurrency = 0)] (query: String)
    max_result_without_unit: #[mcp_resource(uri = "log://today", max_result = "50000")] ()
    rate_in_words: #[mcp_tool(rate = "60 per minute")] (query: String)
}

mod timeout_constant {
    use mcp_runtime::mcp_tool;

    const LIMIT: &str = "5s";

    #[mcp_tool(timeout = LIMIT)]
    async fn search(query: String) -> String {
        query
    }
}

fn main() {}
