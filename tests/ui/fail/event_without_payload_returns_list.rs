use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(folder: String) -> Vec<Mail> {
    vec![Mail { subject: folder }]
}

fn main() {}
