use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

struct Mailbox;

#[mcp_service]
impl Mailbox {
    #[mcp_event]
    fn received(&self, #[mcp(payload)] _mail: &Mail) {}
}

fn main() {}
