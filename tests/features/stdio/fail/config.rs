use mcp_runtime::prelude::*;

/// What the program is configured with.
#[mcp_config]
struct Greeting {
    /// How it begins
    start: String,
}

fn main() {
    println!("{}", Greeting { start: "Hello".to_owned() }.start);
}
