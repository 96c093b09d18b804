use mcp_runtime::prelude::*;
use mcp_runtime::Principal;

#[mcp_tool]
fn search(q: String) -> String {
    q
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().auth(|token: &str| (token == "x").then(|| Principal::new("a", "b"))).run()
}
