//! Raw identifiers lose their `r#` on the wire.

#![deny(warnings)]

use mcp_runtime::prelude::*;

#[mcp_tool]
fn r#match(r#type: String, r#fn: Option<u32>) -> String {
    format!("{type}{:?}", r#fn)
}

#[mcp_resource(uri = "docs://{type}")]
fn r#loop(r#type: String) -> String {
    r#type
}

#[mcp_prompt]
fn r#move(r#type: String) -> String {
    r#type
}

pub(crate) fn main() {
    assert_eq!(r#match("a".into(), None), "aNone");
    mcp_runtime::server!()
        .tool::<r#match>()
        .resource::<r#loop>()
        .prompt::<r#move>()
        .build()
        .expect("a server");
}
