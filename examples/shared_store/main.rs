//! A custom store that all replicas share: an SQLite file, for the processes of one machine.
//!
//! ```sh
//! export MCP_SERVER_KEYS=$(openssl rand -hex 32)
//! cargo run --example shared_store -- --http 127.0.0.1:8001 &
//! cargo run --example shared_store -- --http 127.0.0.1:8002 &
//! ```

mod sqlite;

use mcp_runtime::prelude::*;
use sqlite::Sqlite;

/// Withdraw an amount, once, after the user has agreed.
#[mcp_tool]
async fn withdraw(amount: u32, ctx: &Context) -> Result<String, ToolError> {
    let agreed: bool = ctx.elicit("agreed", format!("Withdraw {amount}?")).await?;
    if !agreed {
        return Ok("nothing was withdrawn".into());
    }
    // of all retries, at any replica, only one passes this line
    ctx.consume_once().await?;
    Ok(format!("{amount} were withdrawn"))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Sqlite::open(&std::env::temp_dir().join("mcp-shared-store.sqlite"))?;
    Ok(mcp_runtime::server!().discover().shared(store).run()?)
}
