//! Events to which clients subscribe: one that a tool emits, and one that reads the history that there is. Run it with
//! `EVENTS_KEY=a-key-of-your-own cargo run --example events -- --http`

use std::sync::Mutex;

use mcp_runtime::{
    Principal, ServerBuilder,
    auth::ApiKeys,
    event::{EventStream, Position},
    prelude::*,
};

#[mcp_type]
#[derive(Clone)]
struct Incident {
    title: String,
    /// 1 is the worst
    severity: u8,
}

#[derive(Default)]
struct Incidents(Mutex<Vec<Incident>>);

/// An incident was opened: the tool emits it, and this decides who gets it.
#[mcp_event(name = "incident.opened")]
fn incident_opened(#[mcp(payload)] incident: &Incident, #[mcp(default = 4)] severity: u8) -> bool {
    incident.severity <= severity
}

/// All incidents, in order: nothing is emitted, and each subscriber reads on where it was.
#[mcp_event(name = "incident.history")]
fn history(#[mcp(position)] since: Option<Position>, all: &Incidents) -> EventStream<Incident> {
    let read: usize = since.and_then(|since| since.parse().ok()).unwrap_or_default();
    let incidents = all.0.lock().unwrap();
    let new: Vec<_> = (1_usize..).zip(incidents.iter().cloned()).skip(read).collect();
    EventStream::iter(new).begins_at(0_usize)
}

/// Opens an incident.
#[mcp_tool]
async fn open(title: String, severity: u8, all: &Incidents, ctx: &Context) -> mcp_runtime::Result<String> {
    let incident = Incident { title, severity };
    all.0.lock().unwrap().push(incident.clone());
    let id = ctx.emit::<incident_opened>(&incident).await?;
    Ok(format!("opened an incident, which subscribers know as {id}"))
}

/// With a key, which callers over HTTP need then, clients such as ChatGPT subscribe by webhook.
pub(crate) fn server(key: Option<String>) -> ServerBuilder {
    let builder = mcp_runtime::server!().info(|info| info.name("events"));
    let builder = builder.discover_from([module_path!()]).state(Incidents::default());
    let Some(key) = key else { return builder };
    builder.auth(ApiKeys::new([(key, Principal::new("events", "subscriber"))]))
}

fn main() -> mcp_runtime::Result<()> {
    server(std::env::var("EVENTS_KEY").ok()).run()
}
