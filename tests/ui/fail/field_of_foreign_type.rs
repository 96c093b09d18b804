use mcp_runtime::prelude::*;

#[mcp_type]
enum Step {
    Wait { until: std::time::Instant },
    Stop,
}

#[mcp_tool]
fn plan(steps: Vec<Step>) -> usize {
    steps.len()
}

fn main() {}
