//! Rules of one argument, and of several.

include!("../support/table.rs");

mistakes! {
    range_alone: #[mcp_tool] (#[mcp(range)] value: u32)
    range_single: #[mcp_tool] (#[mcp(range(5))] value: u32)
    range_without_bounds: #[mcp_tool] (#[mcp(range(..))] value: u32)
    range_empty: #[mcp_tool] (#[mcp(range(5..=1))] value: u32)
    range_on_string: #[mcp_tool] (#[mcp(range(1..=5))] value: String)
    range_on_injected: #[mcp_tool] (#[mcp(range(1..=5))] value: &Db)
    length_empty: #[mcp_tool] (#[mcp(length(5..=1))] value: String)
    length_negative: #[mcp_tool] (#[mcp(length(-1..5))] value: String)
    length_on_number: #[mcp_tool] (#[mcp(length(1..=5))] value: u32)
    pattern_list: #[mcp_tool] (#[mcp(pattern("^a$"))] value: String)
    pattern_on_number: #[mcp_tool] (#[mcp(pattern = "^a$")] value: u32)
    one_of_alone: #[mcp_tool] (#[mcp(one_of)] value: String)
    one_of_path: #[mcp_tool] (#[mcp(one_of(FIRST))] value: String)
    one_of_duplicate: #[mcp_tool] (#[mcp(one_of("a", "a"))] value: String)
    one_of_strings_for_number: #[mcp_tool] (#[mcp(one_of("a", "b"))] value: u32)
}

mod rule_returns_a_bool {
    use mcp_runtime::prelude::*;

    #[mcp_rule]
    fn check(first: &u32, last: &u32) -> bool {
        first <= last
    }

    #[mcp_tool(validate = check)]
    fn book(first: u32, last: u32) -> u32 {
        last - first
    }
}

mod rule_takes_a_value {
    use mcp_runtime::prelude::*;

    #[mcp_rule]
    fn check(first: u32, last: &u32) -> Result<(), String> {
        if first <= *last { Ok(()) } else { Err("the last is before the first".into()) }
    }

    #[mcp_tool(validate = check)]
    fn book(first: u32, last: u32) -> u32 {
        last - first
    }
}

mod validate_not_a_rule {
    use mcp_runtime::prelude::*;

    fn is_ordered(first: &u32, last: &u32) -> Result<(), String> {
        if first <= last { Ok(()) } else { Err("the last is before the first".into()) }
    }

    #[mcp_tool(validate = is_ordered)]
    fn book(first: u32, last: u32) -> u32 {
        last - first
    }

    fn start() {
        let _result = is_ordered(&1, &2);
    }
}

fn main() {}
