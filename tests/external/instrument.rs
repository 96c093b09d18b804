//! `#[tracing::instrument]` above and below the macros.

use mcp_runtime::prelude::*;
use tracing::instrument;

struct Db;

/// Above.
#[instrument(skip_all)]
#[mcp_tool]
async fn above(
    /// Words
    #[mcp(length(1..))]
    query: String,
    db: &Db,
) -> Result<String, ToolError> {
    let _: &Db = db;
    Ok(query)
}

/// Below.
#[mcp_tool]
#[instrument(skip(db), fields(words = query.len()))]
async fn below(
    /// Words
    #[mcp(length(1..))]
    query: String,
    db: &Db,
) -> Result<String, ToolError> {
    let _: &Db = db;
    Ok(query)
}

#[instrument]
#[mcp_tool]
fn plain(#[mcp(default = 1)] value: u32) -> u32 {
    value
}

struct Weather;

#[mcp_service]
impl Weather {
    #[instrument(skip(self))]
    #[mcp_tool]
    async fn above(&self, #[mcp(default = 1)] value: u32) -> u32 {
        value
    }

    #[mcp_tool]
    #[instrument(skip(self))]
    async fn below(&self, #[mcp(default = 1)] value: u32) -> u32 {
        value
    }
}

#[test]
fn functions_may_have_an_instrument_above_and_below() {
    assert_eq!(plain(1), 1);
    mcp_runtime::server!()
        .tool::<above>()
        .tool::<below>()
        .tool::<plain>()
        .service_as("eu", Weather)
        .state(Db)
        .build()
        .expect("a server");
}
