use mcp_runtime::prelude::*;

/// Greet someone.
#[mcp_tool]
fn greet(
    /// Name of the person to greet
    name: String,
    /// Number of greetings
    #[mcp(default = 1, range(1..=5))]
    times: usize,
) -> String {
    format!("Hello, {name}! ").repeat(times).trim_end().to_owned()
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
