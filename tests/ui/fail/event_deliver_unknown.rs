use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event(deliver(poll, stream))]
fn received(#[mcp(payload)] _mail: &Mail) {}

fn main() {}
