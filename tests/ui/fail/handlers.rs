//! Items made at run time.

mod handler_not_async {
    use mcp_runtime::tool::{ToolCall, ToolDef};

    fn start() {
        let _ = ToolDef::builder("echo").handler(|call: ToolCall| call.arg::<String>("text"));
    }
}

mod handler_async_closure {
    use mcp_runtime::prelude::*;
    use mcp_runtime::tool::{ToolCall, ToolDef};

    fn start() -> mcp_runtime::Result<()> {
        let prefix = String::from("a");
        let t = ToolDef::builder("x").handler(async move |call: ToolCall| Ok::<_, ToolError>(format!("{prefix}{}", call.arguments)));
        mcp_runtime::server!().add(t).run()
    }
}

mod handler_blocking_async {
    use mcp_runtime::prelude::*;
    use mcp_runtime::tool::{ToolCall, ToolDef};

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().add(ToolDef::builder("x").blocking_handler(|_: ToolCall| async { Ok::<_, ToolError>("a") })).run()
    }
}

fn main() {}
