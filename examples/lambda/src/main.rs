//! The program that Lambda starts: `cargo lambda build --release`, with `MCP_HOST` and `MCP_SERVER_KEYS` in the environment.

use lambda_http::{Error, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let host = std::env::var("MCP_HOST")?;
    run(mcp_example_lambda::router(&host)?).await
}
