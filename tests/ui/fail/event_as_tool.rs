use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload)] _mail: &Mail) {}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().tool::<received>().run()
}
