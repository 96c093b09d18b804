use mcp_runtime::mcp_prompt;

#[mcp_prompt]
fn review(id: &str) -> String {
    id.to_owned()
}

fn main() {
    let _ = mcp_runtime::server!().prompt::<review>().build();
}
