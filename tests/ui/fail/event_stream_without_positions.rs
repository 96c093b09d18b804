use mcp_runtime::{event::EventStream, prelude::*};

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(folder: String) -> EventStream<Mail> {
    EventStream::iter([Mail { subject: folder }])
}

fn main() {}
