//! A server whose tools are those of another one, under a prefix, beside a tool of its own.
//!
//! ```sh
//! cargo run --example everything -- --http 127.0.0.1:9000
//! cargo run --example remote -- --http 127.0.0.1:8080
//! ```

use mcp_runtime::{ServerBuilder, prelude::*};
use mcp_runtime_remote::Remote;

/// The token of the other server, which this server has and its callers never see.
pub(crate) struct Token(pub(crate) String);

/// Says hello.
#[mcp_tool]
fn hello(name: String) -> String {
    format!("Hello, {name}!")
}

pub(crate) fn server(url: &str, token: Token) -> ServerBuilder {
    let other = Remote::new("other", url).except(["*_debug"]).bearer(|token: &Token| token.0.clone());
    mcp_runtime::server!().tool::<hello>().state(token).add(other).transform(|item| {
        match item.name().starts_with("other_") {
            true => item.meta("com.example/from", "another server"),
            false => item,
        }
    })
}

fn main() -> mcp_runtime::Result<()> {
    let url = std::env::var("OTHER_URL").unwrap_or_else(|_| "http://127.0.0.1:9000/mcp".to_owned());
    let token = std::env::var("OTHER_TOKEN").unwrap_or_default();
    server(&url, Token(token)).run()
}
