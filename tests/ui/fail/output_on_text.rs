use mcp_runtime::prelude::*;

#[mcp_type]
struct Report {
    lines: u8,
}

#[mcp_tool(output = Report)]
fn report() -> Result<String, ToolError> {
    Ok(Report { lines: 1 }.lines.to_string())
}

fn main() {}
