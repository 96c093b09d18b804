//! Types that cannot be arguments.

mod argument_unknown_type {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: Querry) -> String {
        String::new()
    }
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

mod argument_of_foreign_type {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn wait(until: std::time::Instant) -> bool {
        until > std::time::Instant::now()
    }
}

mod argument_not_data {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(filter: Box<dyn Fn(u32) -> bool>) -> bool {
        filter(1)
    }
}

mod argument_shared {
    use std::sync::Arc;

    use mcp_runtime::prelude::*;

    struct Db;

    #[mcp_tool]
    fn search(db: Arc<Db>) -> usize {
        Arc::strong_count(&db)
    }
}

mod argument_provided_by_server {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(ctx: Context) -> String {
        ctx.revision().to_string()
    }
}

mod argument_optional_principal {
    use mcp_runtime::prelude::*;
    use mcp_runtime::Principal;

    #[mcp_tool]
    fn search(who: Option<Principal>) -> String { format!("{}", who.is_some()) }
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

fn main() {}
