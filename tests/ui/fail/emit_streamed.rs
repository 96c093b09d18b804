use mcp_runtime::{event::EventStream, prelude::*};

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(folder: String) -> EventStream<Mail> {
    EventStream::iter([(1_u64, Mail { subject: folder })])
}

async fn receive(ctx: &Context) -> mcp_runtime::Result<()> {
    ctx.emit::<received>(&Mail { subject: String::new() }).await?;
    Ok(())
}

fn main() {}
