use mcp_runtime::{Json, mcp_tool};

struct Hit {
    id: u32,
}

#[mcp_tool]
fn search() -> Json<Hit> {
    Json(Hit { id: 1 })
}

const _: fn(Hit) -> u32 = |hit| hit.id;

fn main() {}
