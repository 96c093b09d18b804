use mcp_runtime::mcp_resource;

async fn ids() -> Vec<String> {
    let id = std::rc::Rc::new(1);
    std::future::ready(()).await;
    vec![format!("docs://{id}")]
}

#[mcp_resource(uri = "docs://{id}", list = ids)]
fn page(id: u32) -> u32 {
    id
}

fn main() {}
