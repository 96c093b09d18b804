//! The user's own lint levels and deprecations reach what is generated, and cause no warnings there.

#![deny(warnings)]

use mcp_runtime::prelude::*;

#[deprecated = "use `search`"]
#[mcp_tool]
#[allow(dead_code)]
fn find(query: String) -> String {
    query
}

#[allow(deprecated)]
mod old {
    use super::*;

    #[deprecated]
    pub(crate) struct Query;

    #[mcp_tool]
    #[expect(unused_variables, reason = "kept for its name")]
    pub(crate) fn search(query: String, db: &Query) -> String {
        String::new()
    }
}

#[mcp_tool]
#[expect(non_snake_case)]
fn Search(Query: String) -> String {
    Query
}

#[mcp_tool]
#[must_use]
#[inline]
fn pure(query: String) -> String {
    query
}

pub(crate) fn main() {
    #[allow(deprecated)]
    {
        assert_eq!(find("a".into()), "a");
        mcp_runtime::server!()
            .tool::<find>()
            .tool::<old::search>()
            .tool::<Search>()
            .tool::<pure>()
            .state(old::Query)
            .build()
            .expect("a server");
    }
}
