//! A server with events, and a client that polls them.

use mcp_runtime::event;

use crate::prelude::*;

#[mcp_type]
#[derive(Debug, Clone)]
pub(super) struct Incident {
    pub(super) title: String,
    /// 1 is the worst
    pub(super) severity: u8,
}

pub(super) fn incident(title: &str, severity: u8) -> Incident {
    Incident { title: title.to_owned(), severity }
}

/// A new incident was opened.
#[mcp_event(name = "incident.created", meta(team = "ops"))]
pub(super) fn incident_created(
    #[mcp(payload)] incident: &Incident,
    /// The least severity
    #[mcp(default = 4, range(1..=4))]
    severity: u8,
) -> bool {
    assert!(incident.title != "panic", "a bug");
    incident.severity <= severity
}

#[mcp_type]
pub(super) struct Summary {
    title: String,
    seen_by: Option<String>,
}

/// An incident, in short.
#[mcp_event(name = "incident.short")]
pub(super) async fn incident_short(
    #[mcp(payload)] incident: &Incident,
    only: Option<String>,
    viewer: Option<&Principal>,
) -> Result<Option<Summary>, ToolError> {
    tokio::task::yield_now().await;
    if incident.title == "broken" {
        return Err(ToolError::new("the directory is down"));
    }
    let is_wanted = only.is_none_or(|only| incident.title.contains(&only));
    let seen_by = viewer.map(|viewer| viewer.subject().to_owned());
    Ok(is_wanted.then(|| Summary { title: incident.title.clone(), seen_by }))
}

/// Everything was reset.
#[mcp_event(deliver(poll))]
pub(super) fn reset(#[mcp(payload)] _incident: &Incident) {}

/// Opens an incident.
#[mcp_tool]
async fn open(title: String, severity: u8, ctx: &Context) -> mcp_runtime::Result<String> {
    ctx.emit::<incident_created>(&Incident { title, severity }).await
}

pub(super) fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<open>()
        .add(event::of::<incident_created>())
        .add(event::of::<incident_short>())
        .add(event::of::<reset>())
}

pub(super) fn serve() -> (Server, ServerHandle) {
    let server = builder().build().unwrap();
    let handle = server.handle();
    (server, handle)
}

pub(super) async fn connect(server: &Server, transport: Transport) -> Client {
    Client::connect(server, transport, Revision::LATEST, json!({}), no_requests).await
}

/// A client that polls one event.
pub(super) struct Poller {
    client: Client,
    name: &'static str,
    arguments: Value,
    pub(super) cursor: Value,
}

impl Poller {
    /// Begins a subscription, which must have no events.
    pub(super) async fn begin(
        server: &Server,
        transport: Transport,
        name: &'static str,
        arguments: Value,
    ) -> Self {
        let client = connect(server, transport).await;
        let mut poller = Self { client, name, arguments, cursor: Value::Null };
        let polled = poller.poll(json!({})).await;
        assert_eq!(polled["events"], json!([]), "{polled}");
        assert_eq!((&polled["truncated"], &polled["hasMore"]), (&json!(false), &json!(false)), "{polled}");
        poller
    }

    /// Polls once, with more params.
    pub(super) async fn poll(&mut self, more: Value) -> Value {
        let mut params = json!({ "name": self.name, "arguments": self.arguments, "cursor": self.cursor });
        for (key, value) in more.as_object().expect("params") {
            params[key] = value.clone();
        }
        let polled = self.client.reply("events/poll", params).await;
        assert!(polled.get("error").is_none(), "{polled}");
        assert_eq!(polled["resultType"], "complete");
        self.cursor = polled["cursor"].clone();
        assert!(self.cursor.is_string(), "{polled}");
        polled
    }

    /// What the next poll has, by the titles of the incidents.
    pub(super) async fn titles(&mut self) -> Vec<String> {
        titles(&self.poll(json!({})).await)
    }
}

/// The titles of the incidents in the result of a poll.
pub(super) fn titles(polled: &Value) -> Vec<String> {
    let events = polled["events"].as_array().expect("events");
    events.iter().map(|event| event["data"]["title"].as_str().expect("a title").to_owned()).collect()
}
