//! A server that has HTTP without axum: the features `macros` and `http`.

use mcp_runtime::prelude::*;

/// Adds two numbers.
#[mcp_tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[mcp_runtime::main]
async fn main() -> mcp_runtime::Result<()> {
    let address = std::env::args().nth(1).ok_or("the address to listen on is missing")?;
    mcp_runtime::server!().discover().serve_http(address).await
}
