//! Types with `#[mcp_type]`.

mod type_on_function {
    use mcp_runtime::mcp_type;

    #[mcp_type]
    fn search() {}
}

mod type_union {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    union U { a: u32, b: f32 }

    #[mcp_tool]
    fn search(u: U) -> u32 {
        let _ = u;
        1
    }
}

mod type_unknown_option {
    use mcp_runtime::mcp_type;

    #[mcp_type(rename_all = "lowercase")]
    struct Query {
        text: String,
    }

    const _: fn(Query) -> String = |query| query.text;
}

mod type_unknown_option_of_an_argument {
    use mcp_runtime::{mcp_tool, mcp_type};

    #[mcp_type(rename = "query")]
    struct Query {
        text: String,
    }

    #[mcp_tool]
    fn search(query: Query) -> String {
        query.text
    }
}

mod type_attribute_above {
    use mcp_runtime::mcp_type;

    #[serde(rename_all = "lowercase")]
    #[mcp_type]
    struct Query {
        text: String,
    }

    const _: fn(Query) -> String = |query| query.text;
}

mod type_derive_above {
    use mcp_runtime::mcp_type;

    #[derive(serde::Serialize)]
    #[mcp_type]
    struct Lookup {
        text: String,
    }

    const _: fn(Lookup) -> String = |query| query.text;
}

mod type_derives_twice {
    use mcp_runtime::mcp_type;

    #[mcp_type]
    #[derive(Debug, serde::Serialize)]
    struct Query {
        text: String,
    }

    const _: fn(Query) -> String = |query| query.text;
}

fn main() {}
