//! `#[mcp_error]`: public variants of a user's error are shown, the others are not, however the error leaves a function.

use std::{error::Error, io};

use crate::prelude::*;

#[mcp_error]
#[derive(Debug, thiserror::Error)]
enum ShopError {
    #[mcp(public)]
    #[error("order {0} does not exist")]
    UnknownOrder(u64),
    #[error("secret host")]
    Database(#[from] io::Error),
    #[mcp(public)]
    #[error("the shop opens at {hour}")]
    Closed { hour: u8 },
    #[error("secret state")]
    Broken,
}

/// The derive may be above the attribute.
#[derive(Debug, thiserror::Error)]
#[mcp_error]
enum DeriveAbove {
    #[error("shown")]
    #[mcp(public)]
    Shown,
    #[error("secret")]
    Hidden,
    #[cfg(any())]
    #[mcp(public)]
    #[error("absent")]
    Absent,
}

#[mcp_error(public)]
#[derive(Debug, thiserror::Error)]
#[error("at most {0}")]
struct TooMany(u32);

#[mcp_error(public)]
#[derive(Debug, thiserror::Error)]
enum AllPublic {
    #[error("shown")]
    Shown,
}

/// Shows only its own text, not that of a public error which it wraps.
#[derive(Debug, thiserror::Error)]
#[error("secret step")]
struct Wrapper(#[source] ShopError);

fn order(id: u64) -> Result<String, ShopError> {
    match id {
        0 => Err(ShopError::UnknownOrder(id)),
        1 => Err(io::Error::other("secret cause"))?,
        2 => Err(ShopError::Closed { hour: 9 }),
        3 => Err(ShopError::Broken),
        _ => Ok("sold".into()),
    }
}

/// What clients read of `order(id)`; `None` if it is private.
const MESSAGES: [Option<&str>; 4] = [Some("order 0 does not exist"), None, Some("the shop opens at 9"), None];

#[mcp_tool]
fn returned(id: u64) -> Result<String, ShopError> {
    order(id)
}
#[mcp_tool]
async fn returned_later(id: u64) -> Result<Json<Vec<String>>, ShopError> {
    tokio::task::yield_now().await;
    Ok(Json(vec![order(id)?]))
}
#[mcp_tool(blocking)]
fn propagated(id: u64) -> Result<String, ToolError> {
    Ok(order(id)?)
}
#[mcp_tool]
fn boxed(id: u64) -> Result<String, Box<dyn Error + Send + Sync>> {
    Ok(order(id)?)
}
#[mcp_tool]
fn box_propagated(id: u64) -> Result<String, ToolError> {
    fn inner(id: u64) -> Result<String, Box<dyn Error + Send + Sync>> {
        Ok(order(id)?)
    }
    Ok(inner(id)?)
}
#[mcp_tool]
fn boxed_by_type(id: u64) -> Result<String, Box<ShopError>> {
    order(id).map_err(Box::new)
}
#[mcp_tool]
fn shared(id: u64) -> Result<String, Arc<ShopError>> {
    order(id).map_err(Arc::new)
}
#[mcp_resource(uri = "orders://{id}")]
async fn order_page(id: u64) -> Result<String, ShopError> {
    order(id)
}
#[mcp_resource(uri = "receipts://{id}")]
fn receipt(id: u64) -> Result<String, ToolError> {
    Ok(order(id)?)
}
#[mcp_prompt]
fn complain(id: u64) -> Result<String, ShopError> {
    order(id)
}
#[mcp_prompt]
async fn praise(id: u64) -> Result<String, Box<dyn Error + Send + Sync>> {
    tokio::task::yield_now().await;
    Ok(order(id)?)
}

fn shop() -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!())
}

#[tokio::test]
async fn clients_read_public_variants_only() {
    let tools =
        ["returned", "returned_later", "propagated", "boxed", "box_propagated", "boxed_by_type", "shared"];
    let modern = serve(shop());
    let servers = LEGACY.map(|revision| serve(shop()).legacy(revision));
    for server in std::iter::once(&modern).chain(&servers) {
        for (id, message) in MESSAGES.iter().enumerate() {
            let or_private = |private: &str| message.map_or(format!("{private} failed"), str::to_owned);
            for tool in tools {
                let reply = server.call(tool, json!({ "id": id })).await;
                assert_eq!(failure(&reply), or_private(&format!("tool '{tool}'")));
                assert!(!reply.to_string().contains("secret"), "{reply}");
            }
            for (scheme, resource) in [("orders", "order_page"), ("receipts", "receipt")] {
                let reply = server.read(&format!("{scheme}://{id}")).await;
                assert_eq!(refusal(&reply), (-32603, or_private(&format!("resource '{resource}'"))));
            }
            for prompt in ["complain", "praise"] {
                let reply = server.prompt(prompt, json!({ "id": id.to_string() })).await;
                assert_eq!(refusal(&reply), (-32603, or_private(&format!("prompt '{prompt}'"))));
            }
        }
        server.call("returned", json!({ "id": 4 })).await.expect_text("sold");
    }
}

#[tokio::test]
async fn detailed_errors_include_the_causes_of_private_variants() {
    let server = serve(shop().detailed_errors());
    let reply = server.call("returned", json!({ "id": 1 })).await;
    assert_eq!(failure(&reply), "tool 'returned' failed: secret host: secret cause");
    let reply = server.call("returned", json!({ "id": 0 })).await;
    assert_eq!(failure(&reply), "order 0 does not exist");
    let (_, text) = refusal(&server.read("receipts://1").await);
    assert_eq!(text, "resource 'receipt' failed: secret host: secret cause");
}

#[tokio::test]
async fn whole_types_and_derives_above_the_attribute() {
    #[mcp_tool]
    fn above(shown: bool) -> Result<(), DeriveAbove> {
        Err(if shown { DeriveAbove::Shown } else { DeriveAbove::Hidden })
    }
    #[mcp_tool]
    fn structure() -> Result<(), TooMany> {
        Err(TooMany(3))
    }
    #[mcp_tool]
    fn all_public() -> Result<(), AllPublic> {
        Err(AllPublic::Shown)
    }
    let server = serve(shop());
    assert_eq!(failure(&server.call("above", json!({ "shown": true })).await), "shown");
    assert_eq!(failure(&server.call("above", json!({ "shown": false })).await), "tool 'above' failed");
    assert_eq!(failure(&server.call("structure", json!({})).await), "at most 3");
    assert_eq!(failure(&server.call("all_public", json!({})).await), "shown");
}

#[tokio::test]
async fn a_public_error_inside_a_private_one_is_not_shown() {
    #[mcp_tool]
    fn wrapped() -> Result<(), Wrapper> {
        Err(Wrapper(ShopError::UnknownOrder(1)))
    }
    #[mcp_tool]
    fn in_anyhow() -> anyhow::Result<()> {
        Err(ShopError::UnknownOrder(1))?;
        Ok(())
    }
    #[mcp_tool]
    fn hidden() -> Result<(), ToolError> {
        Err(ToolError::private(ShopError::UnknownOrder(1)))
    }
    let server = serve(shop());
    for tool in ["wrapped", "in_anyhow", "hidden"] {
        assert_eq!(failure(&server.call(tool, json!({})).await), format!("tool '{tool}' failed"));
    }
}
