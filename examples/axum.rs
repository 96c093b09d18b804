//! An MCP server inside an existing axum app: next to its routes, behind its middleware.
//!
//! ```sh
//! cargo run --example axum -- 127.0.0.1:8080
//! curl http://127.0.0.1:8080/health
//! ```
//!
//! The MCP endpoint is `http://127.0.0.1:8080/mcp`, and `/tools/mcp` as well; both need the header
//! `Authorization: Bearer ada-secret`.

use axum::{
    Router,
    extract::Request,
    http::{StatusCode, header::AUTHORIZATION},
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use mcp_runtime::{
    Principal,
    http::{HttpService, IntoPrincipal},
    prelude::*,
};
use subtle::ConstantTimeEq;

/// The caller that the middleware has authenticated.
#[derive(Clone)]
struct User {
    name: &'static str,
    admin: bool,
}

/// Sessions and tasks belong to this caller.
impl IntoPrincipal for User {
    fn into_principal(self) -> Option<Principal> {
        Some(Principal::new("example", self.name))
    }
}

/// Returns who is calling.
#[mcp_tool(read_only)]
fn whoami(user: &User) -> String {
    user.name.to_owned()
}

/// Empties the cache; for administrators.
#[mcp_tool]
fn clear_cache(user: &User) -> Result<&'static str, ToolError> {
    if user.admin { Ok("done") } else { Err(ToolError::new("only administrators may do this")) }
}

/// The users, by token. A real program keeps hashes of random tokens, or verifies signed ones.
const USERS: [(&str, User); 2] =
    [("ada-secret", User { name: "ada", admin: true }), ("bob-secret", User { name: "bob", admin: false })];

/// Turns a token into a `User`, or rejects the request.
async fn authenticate(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    // in constant time, so that the time until the refusal says nothing about the token
    let known = USERS.iter().find(|(secret, _)| secret.as_bytes().ct_eq(token.as_bytes()).into());
    let (_, user) = known.cloned().ok_or(StatusCode::UNAUTHORIZED)?;
    request.extensions_mut().insert(user);
    Ok(next.run(request).await)
}

pub(crate) fn service() -> mcp_runtime::Result<HttpService> {
    mcp_runtime::server!()
        .info(|info| info.name("axum"))
        .tool::<whoami>()
        .tool::<clear_cache>()
        .http(|http| http.caller_from::<User>())
        .build()?
        .into_service()
}

pub(crate) fn app(mcp: HttpService) -> Router {
    let mcp = Router::new()
        // the service is one endpoint, for any path
        .nest_service("/tools/mcp", mcp.clone())
        // the router is everything that is served over HTTP, with its paths
        .merge(mcp.into_router())
        .layer(middleware::from_fn(authenticate));
    Router::new().route("/health", get(|| async { "ok" })).merge(mcp)
}

#[mcp_runtime::main]
async fn main() -> mcp_runtime::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let mcp = service()?;
    let app = app(mcp.clone());
    let stopped = async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            // otherwise the server would wait for open listen streams
            mcp.stop();
        }
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
    Ok(())
}
