use mcp_runtime::mcp_service;

#[mcp_service]
struct Weather;

fn main() {}
