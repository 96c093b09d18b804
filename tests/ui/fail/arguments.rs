//! Types that cannot be arguments.

include!("../support/table.rs");

mistakes! {
    argument_unknown_type: #[mcp_tool] (query: Querry)
    argument_of_foreign_type: #[mcp_tool] (until: std::time::Instant)
    argument_provided_by_server: #[mcp_tool] (ctx: Context)
    argument_optional_principal: #[mcp_tool] (who: Option<mcp_runtime::Principal>)
}

mod argument_without_derives {
    use mcp_runtime::mcp_tool;

    struct Query {
        text: String,
    }

    #[mcp_tool]
    fn search(query: Query) -> String {
        query.text
    }
}

mod argument_nested_without_derives {
    use mcp_runtime::mcp_tool;

    struct Line {
        text: String,
    }

    #[mcp_tool]
    fn search(lines: Vec<Line>) -> String {
        lines.into_iter().map(|line| line.text).collect()
    }
}

mod argument_shared {
    use std::sync::Arc;

    use mcp_runtime::prelude::*;

    struct Store;

    #[mcp_tool]
    fn search(store: Arc<Store>) -> usize {
        Arc::strong_count(&store)
    }
}

mod argument_claims {
    use mcp_runtime::prelude::*;
    use mcp_runtime::auth::Claims;
    #[mcp_type]
    struct Plan { plan: String }

    #[mcp_tool]
    fn search(claims: Claims<Plan>) -> String { claims.0.plan.clone() }
}

mod inject_without_from_context {
    use mcp_runtime::mcp_tool;

    struct Tx;

    #[mcp_tool]
    fn search(#[mcp(inject)] value: Tx) -> String {
        let _ = value;
        String::new()
    }
}

mod argument_not_data {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(filter: Box<dyn Fn(u32) -> bool>) -> bool {
        filter(1)
    }
}

fn main() {}
