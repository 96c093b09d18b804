use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "log://today", max_result = "50000")]
fn today() -> String {
    String::new()
}

fn main() {}
