use mcp_runtime::mcp_prompt;

#[mcp_prompt(timeout = "5s")]
async fn review(id: u32) -> String {
    id.to_string()
}

fn main() {}
