use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_tool]
fn send(#[mcp(payload)] mail: Mail) -> String {
    mail.subject
}

fn main() {}
