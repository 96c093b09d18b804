use mcp_runtime::{event::EventStream, prelude::*};

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload)] _mail: &Mail) -> EventStream<Mail> {
    EventStream::iter([(1_u64, Mail { subject: String::new() })])
}

fn main() {}
