//! rmcp's part of the benchmarks: `stdio`, or `http PORT`. Each in the fastest form that rmcp has: pipes, routers in a
//! field, over HTTP without sessions and with replies in JSON.

use std::{error::Error, sync::Arc};

use axum::{Router, serve::ListenerExt};
use rmcp::{
    Json, ServerHandler, ServiceExt,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{Implementation, ServerCapabilities, ServerConfig},
    tool, tool_handler, tool_router,
    transport::{
        stdio_pipes,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoParams {
    /// Text to send back
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct AddParams {
    /// First addend
    a: i64,
    /// Second addend
    b: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Clone)]
struct Bench {
    tool_router: Arc<ToolRouter<Self>>,
}

#[tool_router]
impl Bench {
    fn new() -> Self {
        Self { tool_router: Arc::new(Self::tool_router()) }
    }

    /// Echo the message back
    #[tool]
    async fn echo(&self, Parameters(EchoParams { message }): Parameters<EchoParams>) -> String {
        message
    }

    /// Add two integers
    #[tool]
    async fn add(&self, Parameters(AddParams { a, b }): Parameters<AddParams>) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("rmcp", "1.0.0"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stdio"] => {
            Bench::new().serve(stdio_pipes()).await?.waiting().await?;
        }
        ["http", port] => {
            let config = StreamableHttpServerConfig::default()
                .with_legacy_session_mode(false)
                .with_json_response(true);
            let bench = Bench::new();
            let sessions = Arc::new(LocalSessionManager::default());
            let service = StreamableHttpService::new(move || Ok(bench.clone()), sessions, config);
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
            let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
            axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
        }
        _ => return Err("usage: stdio | http PORT".into()),
    }
    Ok(())
}
