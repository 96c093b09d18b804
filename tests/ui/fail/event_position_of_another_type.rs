use mcp_runtime::{event::EventStream, prelude::*};

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(position)] since: Option<u64>) -> EventStream<Mail> {
    EventStream::iter([(since.unwrap_or(1), Mail { subject: String::new() })])
}

fn main() {}
