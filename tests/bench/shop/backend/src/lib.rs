//! What the three tools do, the same for every server in Rust: each asks the HTTP service and Redis at the same time.

use std::{env, error::Error};

use redis::{AsyncCommands as _, aio::MultiplexedConnection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The failure of the HTTP service or of Redis.
pub type Failure = Box<dyn Error + Send + Sync>;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Product {
    pub id: u64,
    pub name: String,
    pub category: String,
    pub price: f64,
}

#[derive(Debug, Deserialize)]
struct Page {
    total_found: u64,
    products: Vec<Product>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    pub total_found: u64,
    pub products: Vec<Product>,
    /// Ids of the products that are bought most
    pub popular: Vec<String>,
    pub server_type: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CartItem {
    pub product_id: u64,
    pub quantity: u32,
}

#[derive(Debug, Deserialize)]
struct User {
    name: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cart {
    pub user_id: u64,
    pub user_name: String,
    pub items: Vec<CartItem>,
    /// The last orders
    pub history: Vec<String>,
    pub server_type: String,
}

#[derive(Debug, Serialize)]
struct Order<'a> {
    user_id: u64,
    items: &'a [CartItem],
}

#[derive(Debug, Deserialize)]
struct Confirmation {
    status: String,
    total: f64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    pub order_id: u64,
    pub status: String,
    pub total: f64,
    pub server_type: String,
}

/// The connections of a server.
#[derive(Debug, Clone)]
pub struct Shop {
    server_type: &'static str,
    redis: MultiplexedConnection,
    http: reqwest::Client,
    api: String,
}

impl Shop {
    /// Connects to Redis at `SHOP_REDIS`, and uses the HTTP service at `SHOP_API`.
    ///
    /// # Errors
    /// A variable is missing, or Redis cannot be reached.
    pub async fn connect(server_type: &'static str) -> Result<Self, Failure> {
        let redis = redis::Client::open(env::var("SHOP_REDIS")?)?.get_multiplexed_async_connection().await?;
        Ok(Self { server_type, redis, http: reqwest::Client::new(), api: env::var("SHOP_API")? })
    }

    pub async fn search(
        &self,
        category: &str,
        min_price: f64,
        max_price: f64,
        limit: u32,
    ) -> Result<Found, Failure> {
        let page = async {
            let range = [("min", min_price), ("max", max_price), ("limit", f64::from(limit))];
            let request = self.http.get(format!("{}/products", self.api));
            let page: Page =
                request.query(&[("category", category)]).query(&range).send().await?.json().await?;
            Ok::<_, Failure>(page)
        };
        let popular = async {
            let mut redis = self.redis.clone();
            let popular: Vec<String> = redis.zrevrange("popular", 0, 9).await?;
            Ok::<_, Failure>(popular)
        };
        let (Page { total_found, products }, popular) = tokio::try_join!(page, popular)?;
        Ok(Found { total_found, products, popular, server_type: self.server_type.to_owned() })
    }

    pub async fn cart(&self, user_id: u64) -> Result<Cart, Failure> {
        let kept: Vec<(u64, u32)> = self.redis.clone().hgetall(format!("cart:{user_id}")).await?;
        let items =
            kept.into_iter().map(|(product_id, quantity)| CartItem { product_id, quantity }).collect();
        let user = async {
            let request = self.http.get(format!("{}/users/{user_id}", self.api));
            let user: User = request.send().await?.json().await?;
            Ok::<_, Failure>(user)
        };
        let history = async {
            let mut redis = self.redis.clone();
            let history: Vec<String> = redis.lrange(format!("history:{user_id}"), 0, 4).await?;
            Ok::<_, Failure>(history)
        };
        let (user, history) = tokio::try_join!(user, history)?;
        Ok(Cart { user_id, user_name: user.name, items, history, server_type: self.server_type.to_owned() })
    }

    pub async fn checkout(&self, user_id: u64, items: &[CartItem]) -> Result<Receipt, Failure> {
        let confirmed = async {
            let request = self.http.post(format!("{}/orders", self.api)).json(&Order { user_id, items });
            let confirmation: Confirmation = request.send().await?.json().await?;
            Ok::<_, Failure>(confirmation)
        };
        let noted = async {
            let mut pipeline = redis::pipe();
            pipeline.incr("orders", 1);
            for CartItem { product_id, quantity } in items {
                let line = format!("{product_id}x{quantity}");
                pipeline.rpush(format!("history:{user_id}"), line).ignore();
                pipeline.zadd("popular", product_id, *quantity).ignore();
            }
            let (order_id,): (u64,) = pipeline.query_async(&mut self.redis.clone()).await?;
            Ok::<_, Failure>(order_id)
        };
        let (Confirmation { status, total }, order_id) = tokio::try_join!(confirmed, noted)?;
        Ok(Receipt { order_id, status, total, server_type: self.server_type.to_owned() })
    }
}
