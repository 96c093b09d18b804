//! What a tool or prompt cannot return.

mod return_borrowed {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search() -> &str {
        "nothing"
    }
}

mod return_borrowed_option {
    use mcp_runtime::mcp_tool;

    struct Db {
        name: Option<String>,
    }

    #[mcp_tool]
    fn name(db: &Db) -> Option<&str> {
        db.name.as_deref()
    }
}

mod return_borrowed_from_state {
    use mcp_runtime::mcp_tool;

    struct Db {
        name: String,
    }

    #[mcp_tool]
    fn name(db: &Db) -> &str {
        &db.name
    }
}

mod return_lifetime {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: String) -> std::borrow::Cow<'_, str> {
        query.into()
    }
}

mod return_impl_trait {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: String) -> impl std::fmt::Display {
        query
    }
}

mod return_never {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: String) -> ! {
        panic!("{query}")
    }
}

mod output_boxed_future {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(q: String) -> std::pin::Pin<Box<dyn Future<Output = String> + Send>> { Box::pin(async move { q }) }
}

mod return_not_a_result {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search() -> std::time::Duration {
        std::time::Duration::ZERO
    }
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

mod prompt_returns_struct {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt]
    fn review() -> std::time::Duration {
        std::time::Duration::ZERO
    }
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
