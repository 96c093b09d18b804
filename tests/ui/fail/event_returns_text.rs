use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload)] mail: &Mail) -> String {
    mail.subject.clone()
}

fn main() {}
