//! The HTTP service: 100,000 products, users and orders, in memory.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    routing::{get, post},
    serve::ListenerExt as _,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Failure;

const PRODUCTS: u64 = 100_000;
const CATEGORIES: [&str; 10] =
    ["Electronics", "Books", "Clothing", "Garden", "Kitchen", "Music", "Office", "Sports", "Toys", "Travel"];
/// Of the electronics, those between 50 and 500.
pub(crate) const FOUND: u64 = 2251;

#[derive(Debug, Clone, Serialize)]
struct Product {
    id: u64,
    name: String,
    category: &'static str,
    price: f64,
}

type Products = Arc<HashMap<&'static str, Vec<Product>>>;

fn products() -> Products {
    let mut products: HashMap<_, Vec<_>> = HashMap::new();
    for id in 0..PRODUCTS {
        let category = CATEGORIES[(id % 10) as usize];
        let of_category = id / 10;
        let price = match of_category < FOUND {
            true => 50.0 + (of_category * 4500 / FOUND) as f64 / 10.0,
            false => 500.5 + (of_category % 1000) as f64,
        };
        let name = format!("{category} item {of_category}");
        products.entry(category).or_default().push(Product { id, name, category, price });
    }
    Arc::new(products)
}

#[derive(Debug, Deserialize)]
struct Search {
    category: String,
    min: f64,
    max: f64,
    limit: f64,
}

async fn search(State(products): State<Products>, Query(search): Query<Search>) -> Json<Value> {
    let all = products.get(search.category.as_str()).map(Vec::as_slice).unwrap_or_default();
    let found = || all.iter().filter(|product| (search.min..=search.max).contains(&product.price));
    let page: Vec<_> = found().take(search.limit as usize).collect();
    Json(json!({ "total_found": found().count(), "products": page }))
}

async fn user(Path(id): Path<u64>) -> Json<Value> {
    Json(json!({ "id": id, "name": format!("User {id}") }))
}

#[derive(Debug, Deserialize)]
struct Item {
    product_id: u64,
    quantity: u32,
}

#[derive(Debug, Deserialize)]
struct Order {
    user_id: u64,
    items: Vec<Item>,
}

async fn order(Json(order): Json<Order>) -> Json<Value> {
    let total: f64 =
        order.items.iter().map(|item| (item.product_id % 100) as f64 * f64::from(item.quantity)).sum();
    Json(json!({ "status": "confirmed", "user_id": order.user_id, "total": total }))
}

pub(crate) async fn serve(port: u16) -> Result<(), Failure> {
    let router = Router::new()
        .route("/products", get(search))
        .route("/users/{id}", get(user))
        .route("/orders", post(order))
        .with_state(products());
    let listener = TcpListener::bind(("127.0.0.1", port)).await?.tap_io(|io| {
        let _ = io.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}
