//! Parameters that borrow, or have no plain name.

include!("../support/table.rs");

mistakes! {
    param_str: #[mcp_tool] (query: &str)
    param_optional_str: #[mcp_tool] (query: Option<&str>)
    param_vec_of_str: #[mcp_tool] (query: Vec<&str>)
    param_tuple_with_str: #[mcp_tool] (query: (u32, &str))
    param_slice: #[mcp_tool] (query: &[u32])
    param_cow: #[mcp_tool] (query: std::borrow::Cow<'_, str>)
    param_impl_trait: #[mcp_tool] (query: impl ToString)
    param_reference_to_impl_trait: #[mcp_tool] (query: &impl ToString)
    param_mut: #[mcp_tool] (db: &mut Db)
    param_static: #[mcp_tool] (db: &'static Db)
    param_double_reference: #[mcp_tool] (db: &&Db)
    param_pattern: #[mcp_tool] ((first, second): (u32, u32))
    param_wildcard: #[mcp_tool] (_: String)
    param_option_as_attribute: #[mcp_tool] (#[description("words to look for")] query: String)
    param_with_serde_attribute: #[mcp_tool] (#[serde(default)] limit: u32)
    argument_unused: #[mcp_tool] (_query: String)
    duplicate_wire_names: #[mcp_tool] (first: String, #[mcp(name = "first")] second: String)
    param_twice: #[mcp_tool] (#[mcp(name = "a")] _number: u8, #[mcp(name = "b")] _number: u8)
    param_self_type: #[mcp_tool] (q: Self)
    param_placeholder: #[mcp_tool] (words: Vec<_>)
}

mod param_state_that_borrows {
    use mcp_runtime::mcp_tool;

    struct Db<'a>(&'a str);

    #[mcp_tool]
    fn search(db: &Db<'_>) -> String {
        db.0.to_owned()
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
