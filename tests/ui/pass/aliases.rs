//! Types are found by traits, not by their names.

#![deny(warnings)]

use mcp_runtime::prelude::*;

type Maybe = Option<u32>;
type Text = String;
type Reply<T> = Result<Json<T>, ToolError>;

#[mcp_tool]
fn count(query: Text, limit: Maybe) -> Reply<u32> {
    Ok(Json(limit.unwrap_or(1) + query.len() as u32))
}

#[mcp_tool]
async fn fallible(query: Text) -> anyhow::Result<Text> {
    Ok(query)
}

pub(crate) fn main() {
    assert!(count("a".into(), None).is_ok());
    mcp_runtime::server!().tool::<count>().tool::<fallible>().build().expect("a server");
}
