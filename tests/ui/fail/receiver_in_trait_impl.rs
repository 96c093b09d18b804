use mcp_runtime::prelude::*;

trait A { fn a(&self) -> u32; }

struct S;

impl A for S {
    #[mcp_tool]
    fn a(&self) -> u32 { 1 }
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
