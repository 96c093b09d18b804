use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event(name = "mail received")]
fn received(#[mcp(payload)] _mail: &Mail) {}

fn main() {}
