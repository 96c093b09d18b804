//! A server that calls another API as its caller: the operations of a drive, for callers of its authorization server.
//!
//! ```sh
//! export ISSUER=https://id.example.com DRIVE=https://drive.example.com DRIVE_SECRET=..
//! cargo run --example exchange -- list
//! cargo run --example exchange -- --http
//! ```
//!
//! Each call gets a token of the drive for its caller. The token with which the caller came goes to the authorization server
//! alone.

use mcp_runtime::{ServerBuilder, auth::Oauth, config::Secret, prelude::*};
use mcp_runtime_exchange::TokenExchange;
use mcp_runtime_openapi::OpenApi;

const DRIVE: &str = r#"
openapi: 3.1.0
info: { title: Drive, version: "1" }
paths:
  /files:
    get:
      operationId: listFiles
      summary: List the names of the caller's files
      responses: { "200": { content: { application/json: { schema: { type: array, items: { type: string } } } } } }
"#;

/// Says how long the token of the drive is.
#[mcp_tool(read_only)]
async fn token_length(ctx: &Context, exchange: &TokenExchange) -> Result<usize, ToolError> {
    Ok(exchange.for_caller(ctx).await?.expose().len())
}

pub(crate) fn server(
    issuer: &str,
    drive: &str,
    secret: Secret<String>,
) -> mcp_runtime::Result<ServerBuilder> {
    let exchange = TokenExchange::issuer(issuer, "mcp", secret).audience(drive);
    let for_files = exchange.clone();
    let files = OpenApi::parse(DRIVE)?.server(drive).headers(move |context| {
        let exchange = for_files.clone();
        async move {
            let token = exchange.for_caller(&context).await?;
            Ok(vec![("authorization", format!("Bearer {}", token.expose()))])
        }
    });
    Ok(mcp_runtime::server!()
        .info(|info| info.name("drive"))
        .tool::<token_length>()
        .state(exchange)
        .add(files))
}

fn main() -> mcp_runtime::Result<()> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("the variable `{name}` is not set"));
    let (issuer, drive) = (variable("ISSUER")?, variable("DRIVE")?);
    let auth = Oauth::issuer(issuer.as_str()).resource("http://127.0.0.1:8080/mcp");
    server(&issuer, &drive, variable("DRIVE_SECRET")?.into())?.auth(auth).run()
}
