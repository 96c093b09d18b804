//! The shop with rmcp: `shop-rmcp PORT json|sessions`, with `SHOP_TOOLS=N` further tools.

use std::{env, sync::Arc};

use axum::{Router, serve::ListenerExt as _};
use rmcp::{
    Json, ServerHandler,
    handler::server::{
        router::tool::{ToolRoute, ToolRouter},
        wrapper::Parameters,
    },
    model::{
        CallToolResult, ContentBlock, Implementation, JsonObject, ServerCapabilities, ServerConfig, Tool,
    },
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use shop_backend::{Cart, CartItem, Failure, Found, Receipt, Shop};
use tokio::net::TcpListener;

#[derive(serde::Deserialize, schemars::JsonSchema)]
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

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct OfUser {
    user_id: u64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Checkout {
    user_id: u64,
    items: Vec<CartItem>,
}

#[derive(Clone)]
struct Server {
    shop: Shop,
    tool_router: Arc<ToolRouter<Self>>,
}

#[tool_router]
impl Server {
    fn new(shop: Shop, more: u32) -> Self {
        let mut router = Self::tool_router();
        for number in 0..more {
            let schema: JsonObject = [("type".to_owned(), "object".into())].into_iter().collect();
            let tool = Tool::new(format!("tool_{number}"), "Does nothing", schema);
            router.add_route(ToolRoute::new_dyn(tool, |_| {
                Box::pin(async { Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into()) })
            }));
        }
        Self { shop, tool_router: Arc::new(router) }
    }

    /// Searches products by category and price
    #[tool(annotations(read_only_hint = true))]
    async fn search_products(
        &self,
        Parameters(Search { category, min_price, max_price, limit }): Parameters<Search>,
    ) -> Result<Json<Found>, String> {
        let found = self.shop.search(&category, min_price, max_price, limit).await;
        found.map(Json).map_err(|error| error.to_string())
    }

    /// Returns the cart and the last orders of a user
    #[tool(annotations(read_only_hint = true))]
    async fn get_user_cart(
        &self,
        Parameters(OfUser { user_id }): Parameters<OfUser>,
    ) -> Result<Json<Cart>, String> {
        self.shop.cart(user_id).await.map(Json).map_err(|error| error.to_string())
    }

    /// Orders items for a user
    #[tool]
    async fn checkout(
        &self,
        Parameters(Checkout { user_id, items }): Parameters<Checkout>,
    ) -> Result<Json<Receipt>, String> {
        self.shop.checkout(user_id, &items).await.map(Json).map_err(|error| error.to_string())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("shop", "1.0.0"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    let port: u16 = arguments.next().ok_or("usage: shop-rmcp PORT json|sessions")?.parse()?;
    let config = match arguments.next().as_deref() {
        Some("sessions") => StreamableHttpServerConfig::default(),
        _ => StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true),
    };
    let more = env::var("SHOP_TOOLS").map_or(Ok(0), |more| more.parse())?;
    let server = Server::new(Shop::connect("rmcp").await?, more);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = TcpListener::bind(("127.0.0.1", port)).await?.tap_io(|io| {
        let _ = io.set_nodelay(true);
    });
    Ok(axum::serve(listener, Router::new().nest_service("/mcp", service)).await?)
}
