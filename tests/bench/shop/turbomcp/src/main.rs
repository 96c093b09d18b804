//! The shop with turbomcp: `shop-turbomcp PORT`. Its tools are those of its attributes: it has no further ones.

use std::env;

use shop_backend::{Cart, CartItem, Failure, Found, Receipt, Shop};
use turbomcp::{
    http::{HttpConfig, serve_http},
    prelude::*,
};

#[derive(Clone)]
struct Server(Shop);

fn failed(error: Failure) -> McpError {
    McpError::internal(error.to_string())
}

#[server(name = "shop", version = "1.0.0")]
impl Server {
    #[tool(description = "Searches products by category and price")]
    async fn search_products(
        &self,
        category: String,
        min_price: f64,
        max_price: f64,
        limit: Option<u32>,
    ) -> McpResult<Json<Found>> {
        let found = self.0.search(&category, min_price, max_price, limit.unwrap_or(10)).await;
        found.map(Json).map_err(failed)
    }

    #[tool(description = "Returns the cart and the last orders of a user")]
    async fn get_user_cart(&self, user_id: u64) -> McpResult<Json<Cart>> {
        self.0.cart(user_id).await.map(Json).map_err(failed)
    }

    #[tool(description = "Orders items for a user")]
    async fn checkout(&self, user_id: u64, items: Vec<CartItem>) -> McpResult<Json<Receipt>> {
        self.0.checkout(user_id, &items).await.map(Json).map_err(failed)
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let port: u16 = env::args().nth(1).ok_or("usage: shop-turbomcp PORT")?.parse()?;
    let server = Server(Shop::connect("turbomcp").await?);
    serve_http(([127, 0, 0, 1], port).into(), server.into_server().build(), HttpConfig::new()).await?;
    Ok(())
}
