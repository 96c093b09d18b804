//! An event to which clients subscribe, emitted by a tool: each subscriber gets the incidents that it asked for.
//!
//! ```sh
//! cargo run --example events -- call open '{"title": "database down", "severity": 1}'
//! cargo run --example events -- --http
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use mcp_runtime::{ServerBuilder, prelude::*};

#[mcp_type]
struct Incident {
    id: u64,
    title: String,
    /// 1 is the worst
    severity: u8,
}

/// An incident was opened.
#[mcp_event(name = "incident.opened")]
fn incident_opened(
    #[mcp(payload)] incident: &Incident,
    /// The least severity, of 1 to 4
    #[mcp(default = 4, range(1..=4))]
    severity: u8,
) -> bool {
    incident.severity <= severity
}

#[derive(Default)]
struct Incidents(AtomicU64);

/// Opens an incident.
#[mcp_tool]
async fn open(
    title: String,
    #[mcp(range(1..=4))] severity: u8,
    incidents: &Incidents,
    ctx: &Context,
) -> mcp_runtime::Result<String> {
    let id = incidents.0.fetch_add(1, Ordering::Relaxed) + 1;
    ctx.emit::<incident_opened>(&Incident { id, title, severity }).id(format!("incident-{id}")).await?;
    Ok(format!("opened incident {id}"))
}

pub(crate) fn server() -> ServerBuilder {
    mcp_runtime::server!()
        .info(|info| info.name("events"))
        .discover_from([module_path!()])
        .state(Incidents::default())
}

fn main() -> mcp_runtime::Result<()> {
    server().run()
}
