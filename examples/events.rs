//! An event to which clients subscribe, and which a tool emits. Run it with
//! `EVENTS_KEY=a-key-of-your-own cargo run --example events -- --http`

use mcp_runtime::{Principal, ServerBuilder, auth::ApiKeys, prelude::*};

#[mcp_type]
struct Incident {
    title: String,
    /// 1 is the worst
    severity: u8,
}

/// An incident was opened: the tool emits it, and this decides who gets it.
#[mcp_event(name = "incident.opened")]
fn incident_opened(#[mcp(payload)] incident: &Incident, #[mcp(default = 4)] severity: u8) -> bool {
    incident.severity <= severity
}

/// Opens an incident.
#[mcp_tool]
async fn open(title: String, severity: u8, ctx: &Context) -> mcp_runtime::Result<String> {
    let id = ctx.emit::<incident_opened>(&Incident { title, severity }).await?;
    Ok(format!("opened an incident, which subscribers know as {id}"))
}

/// With a key, which callers over HTTP need then, clients such as ChatGPT subscribe by webhook.
pub(crate) fn server(key: Option<String>) -> ServerBuilder {
    let builder = mcp_runtime::server!().info(|info| info.name("events"));
    let builder = builder.discover_from([module_path!()]);
    let Some(key) = key else { return builder };
    builder.auth(ApiKeys::new([(key, Principal::new("events", "subscriber"))]))
}

fn main() -> mcp_runtime::Result<()> {
    server(std::env::var("EVENTS_KEY").ok()).run()
}
