use mcp_runtime::{client::Client, prelude::*};

/// A page
#[mcp_resource(uri = "page://{number}")]
fn page(number: u32) -> String {
    number.to_string()
}

async fn read(client: &Client) -> String {
    client.typed::<page>().read(("one",)).await.unwrap()
}

fn main() {
    let _ = read;
}
