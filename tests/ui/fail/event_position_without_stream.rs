use mcp_runtime::{event::Position, prelude::*};

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(position)] since: Option<Position>) -> bool {
    since.is_none()
}

fn main() {}
