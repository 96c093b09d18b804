//! What a tool or prompt cannot return.

include!("../support/functions.rs");

mistakes! {
    return_borrowed: #[mcp_tool] [fn search() -> &str]
    return_borrowed_option: #[mcp_tool] [fn search(db: &Db) -> Option<&str>]
    return_borrowed_from_state: #[mcp_tool] [fn search(db: &Db) -> &str]
    return_lifetime: #[mcp_tool] [fn search(query: String) -> std::borrow::Cow<'_, str>]
    return_impl_trait: #[mcp_tool] [fn search(query: String) -> impl std::fmt::Display]
    return_never: #[mcp_tool] [fn search(query: String) -> !]
    output_boxed_future: #[mcp_tool] [fn search(q: String) -> std::pin::Pin<Box<dyn Future<Output = String> + Send>>]
    return_not_a_result: #[mcp_tool] [fn search() -> std::time::Duration]
    resource_returns_content_list: #[mcp_resource(uri = "docs://a")] [fn search() -> Vec<String>]
    prompt_returns_struct: #[mcp_prompt] [fn review() -> std::time::Duration]
}

mod return_list_of_structs {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Hit {
        id: u32,
    }

    #[mcp_tool]
    fn search() -> Vec<Hit> {
        vec![Hit { id: 1 }]
    }
}

mod return_json_without_derives {
    use mcp_runtime::{Json, mcp_tool};

    struct Found {
        id: u32,
    }

    #[mcp_tool]
    fn search() -> Json<Found> {
        Json(Found { id: 1 })
    }

    const _: fn(Found) -> u32 = |hit| hit.id;
}

mod return_error_not_an_error {
    use mcp_runtime::mcp_tool;

    struct Broken;

    #[mcp_tool]
    fn search() -> Result<String, Broken> {
        Err(Broken)
    }
}

mod return_boxed_error {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search() -> Result<String, Box<dyn std::error::Error>> {
        Err("none".into())
    }
}

mod tool_error_of_error {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn read() -> Result<String, ToolError> {
        std::fs::read_to_string("notes").map_err(|error| ToolError::new(error))
    }
}

mod output_on_json {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Summary {
        lines: u8,
    }

    #[mcp_tool(output = Summary)]
    fn report() -> Json<Summary> {
        Json(Summary { lines: 1 })
    }
}

mod output_on_text {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Report {
        lines: u8,
    }

    #[mcp_tool(output = Report)]
    fn report() -> Result<String, ToolError> {
        Ok(Report { lines: 1 }.lines.to_string())
    }
}

mod output_without_derives {
    use mcp_runtime::{ToolResult, mcp_tool};

    struct Finding {
        id: u32,
    }

    #[mcp_tool(output = Finding)]
    fn search() -> ToolResult {
        ToolResult::default()
    }

    const _: fn(Finding) -> u32 = |hit| hit.id;
}

mod future_not_send {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    async fn search(query: String) -> String {
        let shared = std::rc::Rc::new(query);
        std::future::ready(()).await;
        shared.to_string()
    }
}

fn main() {}
