//! Methods as tools: a service, a second instance of it with another configuration, and another server mounted.
//!
//! ```sh
//! cargo run --example service -- list
//! cargo run --example service -- call stock '{"article": "tea"}'
//! cargo run --example service -- call lyon_stock '{"article": "tea"}'
//! cargo run --example service -- read stock://lyon/all
//! ```

use std::collections::BTreeMap;

use mcp_runtime::{ServerBuilder, prelude::*};

struct Warehouse {
    city: &'static str,
    articles: BTreeMap<&'static str, u32>,
}

#[mcp_service]
impl Warehouse {
    /// How many pieces of an article there are.
    #[mcp_tool(read_only)]
    fn stock(&self, article: String) -> Result<u32, ToolError> {
        let pieces = self.articles.get(article.as_str()).copied();
        pieces.ok_or_else(|| ToolError::new(format!("{} has no `{article}`", self.city)))
    }

    /// Every article with its number of pieces.
    #[mcp_resource(uri = "stock://all")]
    fn inventory(&self) -> Json<BTreeMap<&'static str, u32>> {
        Json(self.articles.clone())
    }

    /// Write an order to the supplier.
    #[mcp_prompt]
    fn reorder(&self, article: String, pieces: u32) -> String {
        format!("Write a short order of {pieces} pieces of {article}, to be delivered to {}.", self.city)
    }
}

/// Adds value added tax to a price.
#[mcp_tool(read_only)]
fn add_tax(#[mcp(range(0.0..))] price: f64, rate: &Rate) -> f64 {
    price * (1.0 + rate.0 / 100.0)
}

struct Rate(f64);

/// A separate server with its own state; it could come from another crate.
fn prices() -> ServerBuilder {
    mcp_runtime::server!().state(Rate(20.0)).tool::<add_tax>()
}

pub(crate) fn server() -> ServerBuilder {
    mcp_runtime::server!()
        .info(|info| info.name("service"))
        .service(Warehouse { city: "Kiel", articles: [("tea", 40), ("rope", 7)].into() })
        .service_as("lyon", Warehouse { city: "Lyon", articles: [("tea", 3)].into() })
        .mount("prices", prices())
}

fn main() -> mcp_runtime::Result<()> {
    server().run()
}
