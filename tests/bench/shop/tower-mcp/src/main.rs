//! The shop with tower-mcp: `shop-tower-mcp PORT`, with `SHOP_TOOLS=N` further tools.

use std::env;

use axum::serve::ListenerExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use shop_backend::{Cart, CartItem, Failure, Found, Receipt, Shop};
use tokio::net::TcpListener;
use tower_mcp::{CallToolResult, Error, HttpTransport, McpRouter, ToolBuilder};

#[derive(Debug, Deserialize, JsonSchema)]
struct Search {
    category: String,
    min_price: f64,
    max_price: f64,
    #[serde(default = "ten")]
    limit: u32,
}

const fn ten() -> u32 {
    10
}

#[derive(Debug, Deserialize, JsonSchema)]
struct OfUser {
    user_id: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Checkout {
    user_id: u64,
    items: Vec<CartItem>,
}

fn reply(value: Result<impl serde::Serialize, Failure>) -> Result<CallToolResult, Error> {
    match value {
        Ok(value) => Ok(CallToolResult::from_serialize(&value)?),
        Err(error) => Ok(CallToolResult::error(error.to_string())),
    }
}

fn router(shop: &Shop, more: u32) -> McpRouter {
    let of_search = shop.clone();
    let search = ToolBuilder::new("search_products")
        .description("Searches products by category and price")
        .output_schema_for::<Found>()
        .handler(move |Search { category, min_price, max_price, limit }: Search| {
            let shop = of_search.clone();
            async move { reply(shop.search(&category, min_price, max_price, limit).await) }
        })
        .build();
    let of_cart = shop.clone();
    let cart = ToolBuilder::new("get_user_cart")
        .description("Returns the cart and the last orders of a user")
        .output_schema_for::<Cart>()
        .handler(move |OfUser { user_id }: OfUser| {
            let shop = of_cart.clone();
            async move { reply(shop.cart(user_id).await) }
        })
        .build();
    let of_checkout = shop.clone();
    let checkout = ToolBuilder::new("checkout")
        .description("Orders items for a user")
        .output_schema_for::<Receipt>()
        .handler(move |Checkout { user_id, items }: Checkout| {
            let shop = of_checkout.clone();
            async move { reply(shop.checkout(user_id, &items).await) }
        })
        .build();
    let router = McpRouter::new().server_info("shop", "1.0.0").tool(search).tool(cart).tool(checkout);
    (0..more).fold(router, |router, number| {
        let tool = ToolBuilder::new(format!("tool_{number}")).description("Does nothing");
        router.tool(tool.no_params_handler(|| async { Ok(CallToolResult::text("done")) }).build())
    })
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let port: u16 = env::args().nth(1).ok_or("usage: shop-tower-mcp PORT")?.parse()?;
    let more = env::var("SHOP_TOOLS").map_or(Ok(0), |more| more.parse())?;
    let app = HttpTransport::new(router(&Shop::connect("tower-mcp").await?, more)).into_router_at("/mcp");
    let listener = TcpListener::bind(("127.0.0.1", port)).await?.tap_io(|io| {
        let _ = io.set_nodelay(true);
    });
    Ok(axum::serve(listener, app).await?)
}
