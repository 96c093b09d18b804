//! Lists, calls and reads any server:
//!
//! ```text
//! cargo run --example client -- 'npx -y @modelcontextprotocol/server-everything'
//! cargo run --example client -- https://example.com/mcp call echo '{"message":"hi"}'
//! cargo run --example client -- SERVER read URI
//! ```
//!
//! `MCP_TOKEN` is sent to servers over HTTP as a bearer token.

#![allow(clippy::print_stdout)]

use std::error::Error;

use mcp_runtime::{
    client::{Client, ElicitAnswer},
    serde_json,
};

#[mcp_runtime::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().ok_or("name a server: a command line in quotes, or a URL")?;
    let mut builder = Client::builder()
        .info("example-client", "1.0.0")
        .on_log(|log| eprintln!("{}: {}", log.level, log.data))
        .on_progress(|update| eprintln!("{}", update.progress))
        .on_elicit(|form| async move {
            eprintln!("declined: {}", form.message);
            ElicitAnswer::Decline
        });
    if let Ok(token) = std::env::var("MCP_TOKEN") {
        builder = builder.bearer_token(&token);
    }
    let server = builder.connect(target).await?;
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("call"), Some(tool)) => {
            let json = arguments.next().unwrap_or_else(|| "{}".to_owned());
            let arguments: serde_json::Value = serde_json::from_str(&json)?;
            println!("{}", server.call(tool, arguments).await?.ok()?.text());
        }
        (Some("read"), Some(uri)) => println!("{}", server.read(uri).await?.text()?),
        _ => {
            let (name, version) = server.server_info();
            println!("{name} {version}, {}", server.revision().map_or("", |revision| revision.as_str()));
            if server.supports("tools") {
                server.tools().await?.iter().for_each(|tool| println!("tool {}", tool.name()));
            }
            if server.supports("resources") {
                server.resources().await?.iter().for_each(|resource| println!("resource {}", resource.uri()));
            }
            if server.supports("prompts") {
                server.prompts().await?.iter().for_each(|prompt| println!("prompt {}", prompt.name()));
            }
        }
    }
    server.close().await;
    Ok(())
}
