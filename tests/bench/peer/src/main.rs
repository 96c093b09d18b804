//! The server that the benchmarks drive: `stdio`, or `http PORT`.

use mcp_runtime::prelude::*;

const STATIC_1K: &str = include_str!("../static-1k.txt");

#[mcp_type]
struct Sum {
    sum: i64,
}

/// Echo the message back
#[mcp_tool]
async fn echo(
    /// Text to send back
    message: String,
) -> String {
    message
}

/// Add two integers
#[mcp_tool]
async fn add(
    /// First addend
    a: i64,
    /// Second addend
    b: i64,
) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

/// Return n bytes of text
#[mcp_tool]
async fn large(
    /// How many bytes of text to return
    n: u32,
) -> String {
    "x".repeat(n as usize)
}

#[mcp_resource(uri = "bench://static", name = "static")]
async fn fixed() -> &'static str {
    STATIC_1K
}

#[mcp_resource(uri = "bench://item/{id}")]
async fn item(id: String) -> String {
    format!("item {id}")
}

/// Greet someone
#[mcp_prompt]
async fn greet(
    /// Who to greet
    name: String,
) -> String {
    format!("Please greet {name}.")
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
