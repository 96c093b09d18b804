//! A program that depends on the runtime by another name, and says so in its manifest only.

use std::fmt;

use mcp::{prelude::*, testing::TestServer};
use serde_json::json;

/// A sum and its parts.
#[mcp_type]
#[derive(Debug)]
struct Sum {
    parts: Vec<i64>,
    sum: i64,
}

/// A type that needs the derives themselves.
#[mcp_type]
#[serde(transparent)]
struct Name(String);

#[mcp_error]
#[derive(Debug)]
enum Refused {
    #[mcp(public)]
    Empty,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is nothing to add")
    }
}

impl std::error::Error for Refused {}

/// Adds numbers.
#[mcp_tool]
fn add(parts: Vec<i64>, name: Option<Name>) -> Result<Json<Sum>, Refused> {
    let _ = name.map(|name| name.0);
    if parts.is_empty() {
        return Err(Refused::Empty);
    }
    Ok(Json(Sum { sum: parts.iter().sum(), parts }))
}

#[mcp::main]
async fn serve() -> mcp::Result<()> {
    let server = TestServer::new(mcp::server!().tool::<add>())?;
    let reply = server.call("add", json!({ "parts": [1, 2], "name": "a" })).await;
    assert_eq!(reply.value()["structuredContent"], json!({ "parts": [1, 2], "sum": 3 }));
    server.call("add", json!({ "parts": [] })).await.expect_failure("there is nothing to add");
    Ok(())
}

#[test]
fn the_attributes_find_the_runtime_by_the_name_that_the_manifest_gives_it() -> mcp::Result<()> {
    serve()
}
