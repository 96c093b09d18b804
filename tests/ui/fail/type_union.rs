use mcp_runtime::prelude::*;

#[mcp_type]
union U { a: u32, b: f32 }

#[mcp_tool]
fn search(u: U) -> u32 {
    let _ = u;
    1
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
