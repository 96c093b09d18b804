use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload)] mail: &Mail, #[mcp(payload)] other: &Mail) -> bool {
    mail.subject == other.subject
}

fn main() {}
