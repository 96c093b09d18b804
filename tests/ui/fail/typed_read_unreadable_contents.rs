use mcp_runtime::{client::Client, content::ResourceContents, prelude::*};

/// A page
#[mcp_resource(uri = "page://{name}")]
fn page(name: String) -> Vec<ResourceContents> {
    vec![ResourceContents::text(name)]
}

async fn read(client: &Client) {
    let _ = client.typed::<page>().read(("a".to_owned(),)).await;
}

fn main() {
    let _ = read;
}
