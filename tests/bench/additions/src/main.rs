//! The server that `tests/bench/additions.py` drives: one tool, and what `ADDITIONS` names, `jwt` and `spans`. It writes a
//! line to stdout, a token if it verifies some.

use mcp_runtime::{
    Principal,
    auth::Oauth,
    prelude::*,
    serde_json::{Map, json},
    testing::TestIssuer,
};
use tracing_subscriber::util::SubscriberInitExt;

const RESOURCE: &str = "https://mcp.example.com/mcp";

/// Echo the message back
#[mcp_tool]
async fn echo(message: String) -> String {
    message
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> mcp_runtime::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_default();
    let additions = std::env::var("ADDITIONS").unwrap_or_default();
    let mut server = mcp_runtime::server!().tool::<echo>();
    let issuer = TestIssuer::start().await?;
    let mut token = String::new();
    if additions.contains("jwt") {
        // claims with which the token has 1 KiB
        let claims = Map::from_iter([("groups".to_owned(), json!(vec!["engineering"; 34]))]);
        token = issuer.token(&Principal::new(issuer.url(), "ada").with_claims(claims), RESOURCE);
        server = server.auth(Oauth::issuer(issuer.url()).resource(RESOURCE));
    }
    if additions.contains("spans") {
        // keeps its spans, and does nothing with them
        tracing_subscriber::registry().init();
        server = server.telemetry(|telemetry| telemetry.metrics());
    }
    println!("{token}");
    server.serve_http(address).await
}
