use mcp_runtime::{event::Position, prelude::*};

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload)] mail: &Mail, #[mcp(position)] since: Option<Position>) -> bool {
    mail.subject.is_empty() && since.is_none()
}

fn main() {}
