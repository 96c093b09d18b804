use mcp_runtime::{client::Client, prelude::*};

/// Adds
#[mcp_tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

async fn call(client: &Client) -> i64 {
    client.typed::<add>().call((1, "2")).await.unwrap()
}

fn main() {
    let _ = call;
}
