use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(ctx: Context) -> String {
    ctx.revision().to_string()
}

fn main() {}
