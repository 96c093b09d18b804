//! Prints the first five resources of a server: `cargo run --example list_resources -- npx -y SERVER`.

#![allow(clippy::print_stdout)]

use mcp_runtime::client::{Client, Error};

#[mcp_runtime::main]
async fn main() -> Result<(), Error> {
    let server = Client::connect(std::env::args().skip(1).collect::<Vec<_>>().join(" ")).await?;
    for resource in server.resources().await?.iter().take(5) {
        println!("{} {}", resource.uri(), resource.title());
    }
    Ok(())
}
