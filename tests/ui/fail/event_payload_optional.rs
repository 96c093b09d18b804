use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload)] mail: Option<&Mail>) -> bool {
    mail.is_some()
}

fn main() {}
