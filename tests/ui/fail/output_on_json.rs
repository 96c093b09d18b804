use mcp_runtime::prelude::*;

#[mcp_type]
struct Report {
    lines: u8,
}

#[mcp_tool(output = Report)]
fn report() -> Json<Report> {
    Json(Report { lines: 1 })
}

fn main() {}
