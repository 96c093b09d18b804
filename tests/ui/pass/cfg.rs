//! `#[cfg]` on functions, parameters and methods reaches everything generated for them.

#![deny(warnings)]
#![allow(clippy::non_minimal_cfg)]

use mcp_runtime::prelude::*;

struct Db;
struct Weather;

#[mcp_tool]
fn first(
    #[cfg(any())] gone: Missing,
    a: u32,
    #[cfg(all())] b: u32,
    #[cfg(any())]
    #[mcp(default = Missing)]
    also_gone: Missing,
    #[cfg(all())]
    #[cfg(not(any()))]
    c: u32,
    #[cfg(any())] state: &Missing,
    #[cfg(all())] db: &Db,
) -> u32 {
    let _: &Db = db;
    a + b + c
}

#[cfg(any())]
#[mcp_tool]
fn second() -> Missing {}

#[mcp_tool]
#[cfg(any())]
fn third() -> Missing {}

#[cfg(all())]
#[mcp_tool]
fn third() {}

#[mcp_service]
impl Weather {
    #[cfg(any())]
    #[mcp_tool]
    fn forecast(&self) -> Missing {}

    #[mcp_tool]
    #[cfg(all())]
    fn forecast(&self, #[cfg(any())] gone: Missing, city: String) -> String {
        city
    }

    #[mcp_prompt]
    #[cfg(any())]
    fn gone(&self) -> Missing {}
}

pub(crate) fn main() {
    assert_eq!(first(1, 2, 3, &Db), 6);
    mcp_runtime::server!()
        .tool::<first>()
        .tool::<third>()
        .service(Weather)
        .state(Db)
        .build()
        .expect("a server");
}
