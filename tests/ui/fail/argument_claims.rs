use mcp_runtime::prelude::*;
use mcp_runtime::auth::Claims;
#[derive(serde::Deserialize)]
struct Plan { plan: String }

#[mcp_tool]
fn search(claims: Claims<Plan>) -> String { claims.0.plan.clone() }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
