use mcp_runtime::mcp_resource;

#[mcp_resource(uri = "page")]
fn page() -> String {
    String::new()
}

fn main() {
    let _ = mcp_runtime::server!().resource::<page>().build();
}
