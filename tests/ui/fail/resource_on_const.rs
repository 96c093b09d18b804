use mcp_runtime::mcp_resource;

#[mcp_resource]
const PAGE: &str = "page";

fn main() {}
