//! An MCP server inside an axum app, for callers with an access token of an OAuth authorization server.
//!
//! ```sh
//! cargo run --example protected -- 127.0.0.1:8080 https://id.example.com
//! ```
//!
//! The MCP endpoint is `http://127.0.0.1:8080/mcp`. Clients find the authorization server by themselves, and ask for more
//! scopes when a call needs them. Only the lines of `auth` and `.auth(auth)` are about that.

use axum::{Router, routing::get};
use mcp_runtime::{Principal, auth::Oauth, prelude::*};

/// Returns who is calling.
#[mcp_tool(read_only)]
fn whoami(caller: &Principal) -> String {
    caller.subject().to_owned()
}

/// Returns the text of all notes.
#[mcp_tool(read_only, scopes("notes:read"))]
fn read_notes() -> &'static str {
    "buy milk"
}

/// Deletes all notes. They cannot be restored.
#[mcp_tool(destructive, idempotent, scopes("notes:read", "notes:write"))]
fn delete_notes() -> &'static str {
    "done"
}

/// `origin` is that of the URL under which clients reach the app.
pub(crate) fn app(origin: &str, issuer: &str) -> mcp_runtime::Result<Router> {
    let auth = Oauth::issuer(issuer).resource(format!("{origin}/mcp")).scopes(["notes:read", "notes:write"]);
    let mcp = mcp_runtime::server!()
        .info(|info| info.name("protected"))
        .tool::<whoami>()
        .tool::<read_notes>()
        .tool::<delete_notes>()
        .auth(auth)
        .into_router()?;
    Ok(Router::new().route("/health", get(|| async { "ok" })).merge(mcp))
}

#[mcp_runtime::main]
async fn main() -> mcp_runtime::Result<()> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let issuer = args.next().ok_or("the second argument is the URL of the authorization server")?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    let origin = format!("http://{}", listener.local_addr()?);
    eprintln!("listening on {origin}");
    axum::serve(listener, app(&origin, &issuer)?).await?;
    Ok(())
}
