//! Functions that are added to a server as values.

mod tool_by_value {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(q: String) -> String {
        q
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().tool(search).run()
    }
}

mod add_not_an_item {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn greet(name: String) -> String {
        name
    }

    fn start() {
        let _ = mcp_runtime::server!().add(greet);
    }
}

fn main() {}
