use mcp_runtime::prelude::*;

#[mcp_type]
struct Mail {
    subject: String,
}

#[mcp_tool]
fn received(mail: Mail) -> String {
    mail.subject
}

async fn receive(ctx: &Context) -> mcp_runtime::Result<()> {
    ctx.emit::<received>(&Mail { subject: String::new() }).await?;
    Ok(())
}

fn main() {}
