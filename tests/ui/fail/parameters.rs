//! Parameters that borrow, or have no plain name.

mod param_str {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: &str) -> String {
        query.to_owned()
    }
}

mod param_optional_str {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: Option<&str>) -> String {
        query.unwrap_or_default().to_owned()
    }
}

mod param_vec_of_str {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: Vec<&str>) -> String {
        query.concat()
    }
}

mod param_tuple_with_str {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: (u32, &str)) -> String {
        query.1.to_owned()
    }
}

mod param_slice {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: &[u32]) -> String {
        query.len().to_string()
    }
}

mod param_cow {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: std::borrow::Cow<'_, str>) -> String {
        query.into_owned()
    }
}

mod param_impl_trait {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: impl ToString) -> String {
        query.to_string()
    }
}

mod param_reference_to_impl_trait {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: &impl ToString) -> String {
        query.to_string()
    }
}

mod param_mut {
    use mcp_runtime::mcp_tool;

    struct Db;

    #[mcp_tool]
    fn search(db: &mut Db) -> String {
        let _: &mut Db = db;
        String::new()
    }
}

mod param_static {
    use mcp_runtime::mcp_tool;

    struct Db;

    #[mcp_tool]
    fn search(db: &'static Db) -> String {
        let _: &'static Db = db;
        String::new()
    }
}

mod param_double_reference {
    use mcp_runtime::mcp_tool;

    struct Db;

    #[mcp_tool]
    fn search(db: &&Db) -> String {
        let _: &Db = db;
        String::new()
    }
}

mod param_state_that_borrows {
    use mcp_runtime::mcp_tool;

    struct Db<'a>(&'a str);

    #[mcp_tool]
    fn search(db: &Db<'_>) -> String {
        db.0.to_owned()
    }
}

mod param_pattern {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search((first, second): (u32, u32)) -> u32 {
        first + second
    }
}

mod param_pattern_of_state {
    use mcp_runtime::mcp_tool;

    struct Db {
        name: String,
    }

    #[mcp_tool]
    fn name(Db { name }: &Db) -> String {
        name.clone()
    }
}

mod param_extractor {
    use mcp_runtime::prelude::*;

    struct Db;
    struct State<T>(T);

    #[mcp_tool]
    fn search(State(db): State<Db>) -> String {
        let Db = db;
        String::new()
    }
}

mod param_wildcard {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(_: String) -> String {
        String::new()
    }
}

mod param_option_as_attribute {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[description("words to look for")] query: String) -> String {
        query
    }
}

mod param_with_serde_attribute {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(#[serde(default)] limit: u32) -> u32 {
        limit
    }
}

mod argument_unused {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(_query: String) -> u32 {
        1
    }
}

mod duplicate_wire_names {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(first: String, #[mcp(name = "first")] second: String) -> String {
        first + &second
    }
}

mod param_twice {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn add(#[mcp(name = "a")] _number: u8, #[mcp(name = "b")] _number: u8) {}
}

mod param_self_type {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(q: Self) -> u32 { 1 }
}

mod param_placeholder {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    async fn search(words: Vec<_>) -> usize {
        words.len()
    }
}

mod param_str_by_value {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: str) -> String {
        query.len().to_string()
    }
}

mod param_dyn_by_value {
    use mcp_runtime::prelude::*;

    trait Catalogue: Send + Sync {
        fn count(&self) -> usize;
    }

    #[mcp_tool]
    fn search(catalogue: dyn Catalogue) -> usize {
        catalogue.count()
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().tool::<search>().run()
    }
}

fn main() {}
