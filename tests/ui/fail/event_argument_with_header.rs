use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload)] _mail: &Mail, #[mcp(header = "Folder")] folder: String) -> bool {
    folder.is_empty()
}

fn main() {}
