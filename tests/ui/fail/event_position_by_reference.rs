use mcp_runtime::{event::{EventStream, Position}, prelude::*};

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(position)] since: Option<&Position>) -> EventStream<Mail> {
    EventStream::iter([(1_u64, Mail { subject: since.map(ToString::to_string).unwrap_or_default() })])
}

fn main() {}
