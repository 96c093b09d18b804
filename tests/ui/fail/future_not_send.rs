use mcp_runtime::mcp_tool;

#[mcp_tool]
async fn search(query: String) -> String {
    let shared = std::rc::Rc::new(query);
    std::future::ready(()).await;
    shared.to_string()
}

fn main() {}
