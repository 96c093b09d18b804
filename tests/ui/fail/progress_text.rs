use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(ctx: &Context) -> u32 { ctx.progress("50%").send(); 1 }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
