//! The shop with this crate: `shop-mcp-runtime --http 127.0.0.1:PORT`, with `SHOP_TOOLS=N` further tools.

use mcp_runtime::{
    prelude::*,
    tool::{ToolCall, ToolDef},
};
use shop_backend::{Cart, CartItem, Failure, Found, Receipt, Shop};

/// Searches products by category and price
#[mcp_tool(read_only)]
async fn search_products(
    category: String,
    min_price: f64,
    max_price: f64,
    #[mcp(default = 10)] limit: u32,
    shop: &Shop,
) -> Result<Json<Found>, Failure> {
    Ok(Json(shop.search(&category, min_price, max_price, limit).await?))
}

/// Returns the cart and the last orders of a user
#[mcp_tool(read_only)]
async fn get_user_cart(user_id: u64, shop: &Shop) -> Result<Json<Cart>, Failure> {
    Ok(Json(shop.cart(user_id).await?))
}

/// Orders items for a user
#[mcp_tool]
async fn checkout(user_id: u64, items: Vec<CartItem>, shop: &Shop) -> Result<Json<Receipt>, Failure> {
    Ok(Json(shop.checkout(user_id, &items).await?))
}

#[mcp_runtime::main]
async fn main() -> Result<(), Failure> {
    let mut server = mcp_runtime::server!().state(Shop::connect("mcp-runtime").await?).discover();
    let more = std::env::var("SHOP_TOOLS").map_or(Ok(0), |more| more.parse::<u32>())?;
    for number in 0..more {
        let tool = ToolDef::builder(format!("tool_{number}")).description("Does nothing");
        server =
            server.add(tool.handler(|_: ToolCall| async { Ok::<_, mcp_runtime::ProtocolError>("done") }));
    }
    Ok(server.run()?)
}
