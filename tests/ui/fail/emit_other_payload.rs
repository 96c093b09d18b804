use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_event]
fn received(#[mcp(payload)] _mail: &Mail) {}

async fn receive(ctx: &Context) -> mcp_runtime::Result<()> {
    ctx.emit::<received>(&"a mail".to_owned()).await?;
    Ok(())
}

fn main() {}
