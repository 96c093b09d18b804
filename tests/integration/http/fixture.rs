//! The server of the HTTP tests.

use crate::prelude::*;

/// Echoes its argument
#[mcp_tool]
async fn echo(message: String) -> String {
    message
}

/// Reports three steps, one of them backwards
#[mcp_tool]
async fn steps(ctx: &Context) -> String {
    for at in [10.0, 50.0, 50.0, 20.0, 100.0] {
        ctx.progress(at).total(100.0).send();
        tokio::task::yield_now().await;
    }
    "done".into()
}

/// Reports progress without yielding
#[mcp_tool]
fn burst(ctx: &Context) -> &'static str {
    ctx.progress(1.0).send();
    ctx.progress(2.0).send();
    "done"
}

/// Runs until it is released
#[mcp_tool]
async fn hold(gate: &Gate, ctx: &Context) -> &'static str {
    ctx.progress(1.0).send();
    gate.pass().await
}

/// Takes arguments that are mirrored in headers
#[mcp_tool]
async fn routed(
    #[mcp(header = "Region")] region: Option<String>,
    #[mcp(header = "Shard")] shard: Option<u32>,
    #[mcp(header = "Dry")] dry: Option<bool>,
) -> String {
    format!("{region:?} {shard:?} {dry:?}")
}

/// Returns the caller, and what the client has declared
#[mcp_tool]
async fn whoami(ctx: &Context) -> String {
    let caller = ctx.caller().map_or("anonymous", |caller| caller.subject());
    let client = ctx.client().map_or_else(|| "unknown".to_owned(), |client| client.name);
    format!("{caller} {client} {}", ctx.client_capabilities())
}

/// A text
#[mcp_resource(uri = "test://text")]
fn text() -> &'static str {
    "text"
}

/// Greets
#[mcp_prompt]
fn greet(name: String) -> String {
    format!("Greet {name}.")
}

/// A builder with all of the above.
pub(super) fn builder(gate: &Gate) -> ServerBuilder {
    Server::builder("http-test", "1.0.0").discover_in(module_path!()).state(gate.clone())
}

/// The server that most tests use.
pub(super) async fn plain() -> HttpServer {
    HttpServer::start(builder(&Gate::default())).await
}
