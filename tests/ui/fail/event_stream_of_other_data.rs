use mcp_runtime::{event::EventStream, prelude::*};

#[mcp_type]
struct Mail {
    subject: String,
}

struct Draft;

#[mcp_event]
fn received(folder: String) -> EventStream<Draft> {
    let _mail = Mail { subject: folder };
    todo!()
}

fn main() {}
