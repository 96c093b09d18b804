//! What is not a tool, in a program that has none: rustc lists the tools of a program.

mod registered_method {
    use mcp_runtime::prelude::*;

    struct Shop;

    #[mcp_service(markers = shop)]
    impl Shop {
        /// Searches.
        #[mcp_tool]
        fn search(&self, words: String) -> String {
            words
        }
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().tool::<shop::search>().run()
    }
}

mod event_as_tool {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_event]
    fn received(#[mcp(payload)] _mail: &Mail) {}

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().tool::<received>().run()
    }
}

fn main() {}
