//! A client without the transports of servers, the command line and the attributes: the feature `client`. With the
//! argument `serve` it is the server that it calls.

use std::{io::Write as _, process::Command};

use mcp_runtime::{
    Server,
    client::Client,
    serde_json::json,
    tool::{ToolCall, ToolDef},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        let add = ToolDef::builder("add").handler(|call: ToolCall| async move {
            let number = |name: &str| call.arguments.get(name).and_then(|value| value.as_i64()).unwrap_or(0);
            (number("a") + number("b")).to_string()
        });
        let server = Server::builder("feature-client", "1.0.0").add(add).build()?;
        server.serve(tokio::io::stdin(), tokio::io::stdout()).await?;
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve");
    let client = Client::connect(command).await?;
    let sum = client.call("add", json!({ "a": 1, "b": 2 })).await?.ok()?;
    let (name, _) = client.server_info();
    writeln!(std::io::stdout(), "{name} {}", sum.text())?;
    client.close().await;
    Ok(())
}
