//! A server without items, in a program that has some.

use mcp_runtime::prelude::*;

/// Not registered
#[mcp_tool]
fn unregistered() {}

/// Not registered
#[mcp_prompt]
fn unregistered_prompt() -> &'static str {
    ""
}

/// A service that no server offers.
struct Unregistered;

#[mcp_service]
impl Unregistered {
    #[mcp_tool]
    fn never_offered(&self) {}
}

/// Not registered, on purpose
#[mcp_tool(unregistered)]
fn left_out() {}

fn main() -> mcp_runtime::Result<()> {
    unregistered();
    unregistered_prompt();
    Unregistered.never_offered();
    left_out();
    mcp_runtime::server!().run()
}
