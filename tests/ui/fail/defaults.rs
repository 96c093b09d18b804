//! `default` and `example`.

mod default_list {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(default(1))] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod default_on_injected {
    use mcp_runtime::mcp_tool;

    struct Db;

    #[mcp_tool]
    fn search(#[mcp(default)] value: &Db) -> String {
        let _ = value;
        String::new()
    }
}

mod default_beside_inject {
    use mcp_runtime::mcp_tool;

    struct Db;

    #[mcp_tool]
    fn search(#[mcp(inject, default)] value: Db) -> String {
        let _ = value;
        String::new()
    }
}

mod default_wrong_type {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(default = 1.5)] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod default_without_default {
    use mcp_runtime::{mcp_tool, mcp_type};

    #[mcp_type]
    struct Query {
        text: String,
    }

    #[mcp_tool]
    fn search(#[mcp(default)] query: Query) -> String {
        query.text
    }
}

mod default_not_serializable {
    use mcp_runtime::mcp_tool;

    #[derive(serde::Deserialize, schemars::JsonSchema, Default)]
    struct Lookup {
        text: String,
    }

    #[mcp_tool]
    fn search(#[mcp(default)] lookup: Lookup) -> String {
        lookup.text
    }
}

mod example_alone {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(example)] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod example_text_for_number {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(#[mcp(example = "ten")] limit: u32) -> u32 {
        limit
    }
}

fn main() {}
