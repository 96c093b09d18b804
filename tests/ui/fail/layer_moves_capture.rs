use mcp_runtime::prelude::*;
use mcp_runtime::layer::{LayeredCall, Next};

#[mcp_tool]
fn search(q: String) -> String {
    q
}

fn main() -> mcp_runtime::Result<()> {
    let name = String::from("x");
    mcp_runtime::server!().discover().layer(|call: LayeredCall, next: Next| async move { eprintln!("{name}"); next.run(&call).await }).run()
}
