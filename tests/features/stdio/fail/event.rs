use mcp_runtime::prelude::*;

#[mcp_type]
struct Deploy {
    version: String,
}

/// A version was deployed.
#[mcp_event]
fn deployed(#[mcp(payload)] deploy: &Deploy, major: bool) -> bool {
    !major || deploy.version.ends_with(".0.0")
}

fn main() {
    let _ = mcp_runtime::server!().discover().build();
}
