use mcp_runtime::{client::Client, content::Image, prelude::*};

/// Draws
#[mcp_tool]
fn draw(width: u8) -> Image {
    Image::new(vec![0; width.into()], "image/png")
}

async fn call(client: &Client) {
    let _ = client.typed::<draw>().call((1,)).await;
}

fn main() {
    let _ = call;
}
