//! `default` and `example`.

include!("../support/table.rs");

mistakes! {
    default_list: #[mcp_tool] (#[mcp(default(1))] value: u32)
    default_on_injected: #[mcp_tool] (#[mcp(default)] value: &Db)
    default_beside_inject: #[mcp_tool] (#[mcp(inject, default)] value: Db)
    default_wrong_type: #[mcp_tool] (#[mcp(default = 1.5)] value: u32)
    example_alone: #[mcp_tool] (#[mcp(example)] value: u32)
    example_text_for_number: #[mcp_tool] (#[mcp(example = "ten")] limit: u32)
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

fn main() {}
