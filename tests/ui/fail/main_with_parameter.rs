#[mcp_runtime::main]
async fn main(_: u32) {}
