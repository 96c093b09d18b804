//! Options of `#[mcp_tool]` that are unknown, duplicated or have a value of another kind.

include!("../support/table.rs");

mistakes! {
    option_unknown: #[mcp_tool(titel = "Search")] (query: String)
    option_unknown_far: #[mcp_tool(colour = "red")] (query: String)
    option_abbreviated: #[mcp_tool(desc = "Adds.")] ()
    option_of_parameter: #[mcp_tool(range(1..=2))] (query: String)
    option_of_resource: #[mcp_tool(uri = "a://b")] (query: String)
    option_duplicate: #[mcp_tool(title = "a", title = "b")] (query: String)
    option_literal: #[mcp_tool("search")] (query: String)
    option_missing_comma: #[mcp_tool(read_only strict)] (query: String)
    option_without_parentheses_value: #[mcp_tool(title "Search")] (query: String)
    option_without_value: #[mcp_tool(title)] (query: String)
    option_empty_value: #[mcp_tool(title = )] (query: String)
    option_number_for_string: #[mcp_tool(title = 5)] (query: String)
    option_string_for_flag: #[mcp_tool(read_only = "yes")] (query: String)
    title_empty: #[mcp_tool(title = "")] ()
    read_only_destructive: #[mcp_tool(read_only, destructive)] ()
    crate_string: #[mcp_tool(crate = "mcp_runtime")] (query: String)
    output_string: #[mcp_tool(output("Report"))] (query: String)
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

mod options_on_function {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    #[mcp(default = 1)]
    fn search(query: String) -> String {
        query
    }
}

fn main() {}
