use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload, default)] mail: &Mail) -> bool {
    mail.subject.is_empty()
}

fn main() {}
