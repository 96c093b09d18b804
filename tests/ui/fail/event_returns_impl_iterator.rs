use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(folder: String) -> impl Iterator<Item = Mail> {
    std::iter::once(Mail { subject: folder })
}

fn main() {}
