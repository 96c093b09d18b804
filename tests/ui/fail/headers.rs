//! `header`.

mod header_alone {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(header)] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod header_not_a_token {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(header = "My Region")] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod duplicate_headers {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(header = "Region")] first: String, #[mcp(header = "REGION")] second: String) -> String {
        first + &second
    }
}

mod header_on_float {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(header = "Ratio")] value: f64) -> String {
        let _ = value;
        String::new()
    }
}

mod header_on_unbounded_integer {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(header = "Count")] value: u64) -> String {
        let _ = value;
        String::new()
    }
}

mod header_range_too_wide {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(header = "Count", range(0..=9007199254740992))] value: u64) -> String {
        let _ = value;
        String::new()
    }
}

fn main() {}
