//! Rules of one argument, and of several.

mod range_alone {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(range)] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod range_single {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(range(5))] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod range_without_bounds {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(range(..))] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod range_empty {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(range(5..=1))] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod range_on_string {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(range(1..=5))] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod range_on_injected {
    use mcp_runtime::mcp_tool;

    struct Db;

    #[mcp_tool]
    fn search(#[mcp(range(1..=5))] value: &Db) -> String {
        let _ = value;
        String::new()
    }
}

mod length_empty {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(length(5..=1))] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod length_negative {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(length(-1..5))] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod length_on_number {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(length(1..=5))] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod pattern_list {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(pattern("^a$"))] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod pattern_on_number {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(pattern = "^a$")] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod one_of_alone {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(one_of)] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod one_of_path {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(one_of(FIRST))] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod one_of_duplicate {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(one_of("a", "a"))] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod one_of_strings_for_number {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(one_of("a", "b"))] value: u32) -> String {
        let _ = value;
        String::new()
    }
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
