use mcp_runtime::prelude::*;

#[mcp_tool]
fn read() -> Result<String, ToolError> {
    std::fs::read_to_string("notes").map_err(|error| ToolError::new(error))
}

fn main() {}
