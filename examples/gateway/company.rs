//! The orders of each company: the same data for a route and for MCP.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::Extension;
use mcp_runtime::{ServerHandle, prelude::*, resource::Subscription};

/// The data of all companies, which functions never see.
#[derive(Clone)]
pub(crate) struct Companies(Arc<HashMap<&'static str, Company>>);

/// The data of one company, which the middleware has put into the request.
#[derive(Clone)]
pub(crate) struct Company(Arc<Mutex<BTreeMap<u64, Order>>>);

#[mcp_type]
#[derive(Clone)]
pub(crate) struct Order {
    id: u64,
    article: String,
    shipped: bool,
}

impl Default for Companies {
    fn default() -> Self {
        let company = |orders: &[(u64, &str)]| {
            let order =
                |&(id, article): &(u64, &str)| (id, Order { id, article: article.into(), shipped: false });
            Company(Arc::new(Mutex::new(orders.iter().map(order).collect())))
        };
        let companies =
            [("acme", company(&[(1, "rope"), (2, "anvil")])), ("zenith", company(&[(3, "lens")]))];
        Self(Arc::new(companies.into()))
    }
}

impl Companies {
    pub(crate) fn of(&self, name: &str) -> Option<Company> {
        self.0.get(name).cloned()
    }
}

impl Company {
    fn orders(&self) -> Vec<Order> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn order(&self, id: u64) -> Option<Order> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn set_shipped(&self, id: u64) {
        if let Some(order) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&id) {
            order.shipped = true;
        }
    }
}

/// `GET /api/orders`, unchanged by MCP.
pub(crate) async fn orders(Extension(company): Extension<Company>) -> String {
    let line = |order: Order| format!("{}\t{}\t{}\n", order.id, order.article, order.shipped);
    company.orders().into_iter().map(line).collect()
}

/// Lists the orders.
#[mcp_tool(read_only, scopes("orders:read"))]
pub(crate) fn list_orders(company: &Company) -> Json<Vec<Order>> {
    Json(company.orders())
}

/// Hands an order to the carrier.
#[mcp_tool(scopes("orders:write"), timeout = "15s")]
pub(crate) async fn ship(
    /// Id of the order, from `list_orders`
    id: u64,
    company: &Company,
    server: &ServerHandle,
    ctx: &Context,
) -> Result<String, ToolError> {
    let order = company
        .order(id)
        .ok_or_else(|| format!("order {id} does not exist\n`list_orders` returns the ids"))?;
    if order.shipped {
        return Err(format!("order {id} has been shipped before").into());
    }
    ctx.progress(1.0).total(2.0).message("waiting for the carrier").send();
    tokio::time::sleep(Duration::from_millis(500)).await;
    company.set_shipped(id);
    server.resource_updated(&format!("orders://{id}"));
    let by = ctx.caller().map_or("someone", |caller| caller.subject());
    Ok(format!("order {id} ({}) was shipped by {by}", order.article))
}

/// One order.
#[mcp_resource(uri = "orders://{id}", scopes("orders:read"), subscribe = own_order)]
pub(crate) fn order(id: u64, company: &Company) -> Option<Json<Order>> {
    company.order(id).map(Json)
}

/// A notification reveals that the order exists, so only its company may subscribe to it.
fn own_order(wanted: &Subscription, company: &Company) -> bool {
    wanted.variables["id"].parse().is_ok_and(|id| company.order(id).is_some())
}
