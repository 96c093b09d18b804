//! The client: the same calls over every transport and in every revision, and what it does when servers misbehave.

mod agent;
mod authorizations;
mod catalog;
mod events;
mod exchanges;
mod hostile;
mod http;
mod malformed;
mod negotiation;
mod oauth;
mod processes;
mod programs;
mod raw_http;
mod rules;
mod server_config;
mod site;
mod skills;
mod tls;
pub(crate) mod tls_listener;
mod typed;
mod using;

use std::sync::{Arc, Mutex};

use mcp_runtime::{
    Revision, Server, ServerBuilder,
    client::{ChangeEvent, Client, ClientBuilder, Error},
    prelude::*,
};
use mcp_tests::support::{Act, HttpServer, PATIENCE, Transport, play, until, with_handshake, within};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

/// Echoes its argument
#[mcp_tool(read_only, title = "Echo!")]
async fn echo(
    /// What to return
    message: String,
) -> String {
    message
}

/// Fails
#[mcp_tool]
fn fails() -> Result<String, ToolError> {
    Err("it does not work".into())
}

/// A point
#[mcp_type]
#[derive(Debug, PartialEq)]
struct Point {
    x: i64,
    y: i64,
}

/// Mirrors a point
#[mcp_tool]
fn mirror(x: i64, y: i64) -> Json<Point> {
    Json(Point { x: y, y: x })
}

/// Reports three steps
#[mcp_tool]
async fn steps(ctx: &Context) -> &'static str {
    for step in [1.0, 2.0, 3.0] {
        ctx.progress(step).total(3.0).message("working").send();
        tokio::task::yield_now().await;
    }
    "worked"
}

/// A note
#[mcp_resource(uri = "note://one", mime = "text/markdown")]
fn note() -> &'static str {
    "noted"
}

/// A picture
#[mcp_resource(uri = "picture://{name}", mime = "image/png")]
fn picture(name: String) -> Vec<u8> {
    name.into_bytes()
}

/// Greets
#[mcp_prompt]
fn greet(
    /// Whom
    #[mcp(complete("Ada", "Alan", "Grace"))]
    name: String,
) -> String {
    format!("Greet {name}.")
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .info(|info| info.name("shop").instructions("Be brief."))
        .tool::<echo>()
        .tool::<fails>()
        .tool::<mirror>()
        .tool::<steps>()
        .resource::<note>()
        .resource::<picture>()
        .prompt::<greet>()
}

/// A connected client, and what keeps its server running.
struct Connected {
    client: Client,
    _http: Option<HttpServer>,
}

async fn connect(server: &Server, way: Transport, options: ClientBuilder) -> Result<Connected, Error> {
    let mut http = None;
    let client = match way {
        Transport::Memory => within(options.connect(server)).await?,
        Transport::Stdio => {
            let (ours, theirs) = tokio::io::duplex(4096);
            let server = server.clone();
            tokio::spawn(async move {
                let (reader, writer) = tokio::io::split(theirs);
                server.serve(reader, writer).await
            });
            within(options.connect(tokio::io::split(ours))).await?
        }
        Transport::Http => {
            let served = HttpServer::of(server).await;
            let url = format!("http://{}/mcp", served.address);
            http = Some(served);
            within(options.connect(url)).await?
        }
    };
    Ok(Connected { client, _http: http })
}

/// A client of a server of this revision that a function plays, and what sends other messages of that server.
async fn played<A: Into<Act>>(
    revision: Revision,
    capabilities: Value,
    builder: ClientBuilder,
    answer: impl FnMut(&str, &Value) -> A + Send + 'static,
) -> (Client, UnboundedSender<Value>) {
    let (streams, sender) = play(with_handshake(revision, capabilities, answer));
    (within(builder.connect(streams)).await.expect("a connection"), sender)
}

/// A builder whose client keeps its changes.
fn keeping_changes() -> (ClientBuilder, Arc<Mutex<Vec<ChangeEvent>>>) {
    let seen = Arc::<Mutex<Vec<_>>>::default();
    let kept = seen.clone();
    (Client::builder().on_change(move |event| kept.lock().unwrap().push(event)), seen)
}

/// Every transport with every revision, and with the one that is negotiated.
fn cells() -> impl Iterator<Item = (Transport, Option<Revision>)> {
    let revisions: Vec<_> = std::iter::once(None).chain(Revision::ALL.iter().copied().map(Some)).collect();
    Transport::ALL
        .into_iter()
        .flat_map(move |way| revisions.clone().into_iter().map(move |revision| (way, revision)))
}

fn pinned(revision: Option<Revision>) -> ClientBuilder {
    let builder = Client::builder();
    match revision {
        Some(revision) => builder.revision(revision),
        None => builder,
    }
}
