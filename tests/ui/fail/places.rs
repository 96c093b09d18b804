//! Attributes on what is not a function, or where a function cannot be an item.

mod tool_on_struct {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    struct Search;
}

mod tool_on_module {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    mod search {}
}

mod tool_on_impl {
    use mcp_runtime::mcp_tool;

    struct Weather;

    #[mcp_tool]
    impl Weather {
        #[mcp_tool]
        fn forecast(&self, #[mcp(default)] city: String) -> String {
            city
        }
    }
}

mod tool_on_closure {
    use mcp_runtime::prelude::*;

    fn start() {
        #[mcp_tool]
        let search = |query: String| query;
        let _ = search(String::new());
    }
}

mod derive_tool {
    use mcp_runtime::prelude::*;
    #[derive(Tool)]
    struct Search { q: String }
}

mod twice {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    #[mcp_tool]
    fn search(query: String) -> String {
        query
    }
}

mod tool_and_prompt {
    use mcp_runtime::{mcp_prompt, mcp_tool};

    #[mcp_tool]
    #[mcp_prompt]
    fn search(query: String) -> String {
        query
    }
}

mod associated_function {
    use mcp_runtime::mcp_tool;

    struct Weather;

    impl Weather {
        #[mcp_tool]
        fn forecast(city: String) -> String {
            city
        }
    }
}

mod tool_in_trait {
    use mcp_runtime::prelude::*;

    trait Search {
        #[mcp_tool]
        fn search(&self, query: String) -> String;
    }
}

mod receiver_in_trait_impl {
    use mcp_runtime::prelude::*;

    trait A { fn a(&self) -> u32; }

    struct S;

    impl A for S {
        #[mcp_tool]
        fn a(&self) -> u32 { 1 }
    }
}

mod receiver_outside_service {
    use mcp_runtime::mcp_tool;

    struct Weather;

    impl Weather {
        #[mcp_tool]
        fn forecast(&self, city: String) -> String {
            city
        }
    }
}

fn main() {}
