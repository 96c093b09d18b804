//! A server that has HTTP without axum: the features `macros` and `http`.

use std::io::Write as _;

use mcp_runtime::prelude::*;

/// Adds two numbers.
#[mcp_tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[mcp_runtime::main]
async fn main() -> mcp_runtime::Result<()> {
    let server = mcp_runtime::server!().discover().build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    server.serve_http_on(listener).await
}
