//! Orders in a PostgreSQL database.

use std::time::Duration;

use mcp_runtime::{config::Secret, prelude::*};
use sqlx::{PgPool, postgres::PgPoolOptions, query, query_as};

#[mcp_config]
struct Settings {
    /// The database, such as `postgres://shop:password@127.0.0.1/shop`
    #[mcp(env = "DATABASE_URL")]
    database: Secret<String>,
    /// How many connections are opened at most
    #[mcp(default = 10, range(1..=100))]
    connections: u32,
}

/// Runs once, before the first message is answered.
async fn connect(settings: &Settings) -> Result<PgPool, sqlx::Error> {
    let options = PgPoolOptions::new()
        .max_connections(settings.connections)
        // how long a call waits for a connection
        .acquire_timeout(Duration::from_secs(5));
    let pool = options.connect(settings.database.expose()).await?;
    // the files in `migrations`, which are part of the program
    sqlx::migrate!().run(&pool).await?;
    Ok(pool)
}

#[mcp_error]
#[derive(Debug, thiserror::Error)]
enum OrderError {
    #[mcp(public)]
    #[error("order {0} does not exist, or is not open")]
    NotOpen(i64),
    #[error("the database has failed")]
    Database(#[from] sqlx::Error),
}

#[mcp_type]
#[derive(sqlx::FromRow)]
struct Order {
    id: i64,
    product: String,
}

/// List the open orders.
#[mcp_tool(read_only)]
async fn open_orders(pool: &PgPool) -> Result<Json<Vec<Order>>, OrderError> {
    let orders = query_as("SELECT id, product FROM orders WHERE open ORDER BY id LIMIT 100");
    Ok(Json(orders.fetch_all(pool).await?))
}

/// Cancel an order.
#[mcp_tool(destructive)]
async fn cancel_order(id: i64, reason: String, pool: &PgPool) -> Result<(), OrderError> {
    let mut transaction = pool.begin().await?;
    let close = query("UPDATE orders SET open = false WHERE id = $1 AND open").bind(id);
    if close.execute(&mut *transaction).await?.rows_affected() == 0 {
        // dropped, which rolls back
        return Err(OrderError::NotOpen(id));
    }
    let record = query("INSERT INTO cancellations (id, reason) VALUES ($1, $2)").bind(id).bind(reason);
    record.execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!()
        .config::<Settings>()
        .state_async(connect)
        .end_state(async |pool: &PgPool| pool.close().await)
        .discover()
        .run()
}
