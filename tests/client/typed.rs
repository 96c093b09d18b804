//! Typed calls: the annotated function is the interface, wherever it runs.

use std::borrow::Cow;

use mcp_runtime::{
    Revision,
    client::{Client, Error},
    content::Image,
    prelude::*,
};
use serde_json::json;

use super::{WAYS, connect, within};

#[mcp_type]
#[derive(Debug, Clone, PartialEq)]
struct Hit {
    name: String,
    price: Option<f64>,
}

/// What the server knows.
struct Shelf(Vec<Hit>);

/// Searches
#[mcp_tool]
async fn search(
    words: String,
    shelf: &Shelf,
    #[mcp(range(1..=100))] limit: u32,
    below: Option<f64>,
) -> Result<Json<Vec<Hit>>, ToolError> {
    if words == "war" {
        return Err("not sold here".into());
    }
    let fits = |hit: &&Hit| below.is_none_or(|below| hit.price.is_some_and(|price| price < below));
    Ok(Json(shelf.0.iter().filter(fits).take(limit as usize).cloned().collect()))
}

/// Adds
#[mcp_tool]
fn add(a: i64, #[mcp(default = Some(10))] b: Option<i64>) -> i64 {
    a + b.unwrap_or_default()
}

/// Shouts
#[mcp_tool]
fn shout(text: Cow<str>) -> String {
    text.to_uppercase()
}

/// Does nothing
#[mcp_tool]
fn nothing() {}

/// Finds one
#[mcp_tool]
fn find(name: String) -> Option<Json<Hit>> {
    (name == "tea").then_some(Json(Hit { name, price: None }))
}

/// Says something, or not
#[mcp_tool]
fn perhaps(says: bool) -> Option<&'static str> {
    says.then_some("said")
}

/// Takes an object as a whole
#[mcp_tool]
fn whole(#[mcp(flatten)] hit: Hit) -> Result<bool, ToolError> {
    Ok(hit.price.is_some())
}

/// Draws
#[mcp_tool]
fn draw(width: u8) -> Image {
    Image::new(vec![0; width.into()], "image/png")
}

/// Is routed by a header
#[mcp_tool]
fn routed(#[mcp(header = "Region")] region: String) -> String {
    region
}

/// Has a part that is compiled out
#[mcp_tool]
fn partly(a: u8, #[cfg(any())] b: u8, c: u8) -> u8 {
    a + c
}

fn server() -> mcp_runtime::Server {
    let shelf = ["tea", "oat"].map(|name| Hit { name: name.into(), price: Some(name.len() as f64 + 0.5) });
    mcp_runtime::server!()
        .tool::<search>()
        .tool::<add>()
        .tool::<nothing>()
        .tool::<find>()
        .tool::<perhaps>()
        .tool::<whole>()
        .tool::<draw>()
        .tool::<routed>()
        .tool::<partly>()
        .tool::<shout>()
        .state(Shelf(shelf.to_vec()))
        .build()
        .unwrap()
}

#[tokio::test]
async fn the_result_is_the_functions_ok_type_over_every_transport() {
    let server = server();
    for way in WAYS {
        for revision in [Revision::V2024_11_05, Revision::V2025_06_18, Revision::V2026_07_28] {
            let connected = connect(&server, way, Client::builder().revision(revision)).await.unwrap();
            let client = &connected.client;
            let hits: Vec<Hit> =
                within(client.typed::<search>().call(("t".into(), 10, Some(9.0))).into_future())
                    .await
                    .unwrap();
            assert_eq!(hits.len(), 2, "{way:?} {revision}");
            let sum: i64 = client.typed::<add>().call((1, Some(2))).await.unwrap();
            assert_eq!((sum, client.typed::<add>().call((1, None)).await.unwrap()), (3, 11));
            let () = client.typed::<nothing>().call(()).await.unwrap();
            let found: Option<Hit> = client.typed::<find>().call(("tea".into(),)).await.unwrap();
            assert_eq!(found, Some(Hit { name: "tea".into(), price: None }), "{way:?} {revision}");
            assert_eq!(
                client.typed::<find>().call(("war".into(),)).await.unwrap(),
                None,
                "{way:?} {revision}"
            );
            assert_eq!(client.typed::<perhaps>().call((true,)).await.unwrap().as_deref(), Some("said"));
            assert_eq!(client.typed::<perhaps>().call((false,)).await.unwrap(), None);
            let hit = Hit { name: "x".into(), price: Some(1.0) };
            assert!(client.typed::<whole>().call((hit,)).await.unwrap());
            let image = client.typed::<draw>().call_for_result((3,)).await.unwrap();
            assert_eq!(image.content.len(), 1);
            // its header is known without a list
            assert_eq!(client.typed::<routed>().call(("eu".into(),)).await.unwrap(), "eu");
            assert_eq!(client.typed::<partly>().call((1, 2)).await.unwrap(), 3);
        }
    }
}

#[tokio::test]
async fn arguments_are_checked_before_they_are_sent_and_failures_are_errors() {
    let server = server();
    let client = within(Client::connect(&server)).await.unwrap();
    let refused = client.typed::<search>().call(("t".into(), 0, None)).await.unwrap_err();
    assert!(matches!(&refused, Error::Invalid { what } if what.contains("limit")), "{refused:?}");
    let failed = client.typed::<search>().call(("war".into(), 1, None)).await.unwrap_err();
    assert!(matches!(&failed, Error::Tool { text, .. } if text.contains("not sold here")), "{failed:?}");
    // a server whose tool of that name is another one
    let other = mcp_runtime::tool::ToolDef::builder("add");
    let other = other.handler(|_: mcp_runtime::tool::ToolCall| async { "three" });
    let server = mcp_runtime::server!().add(other).build().unwrap();
    let client = within(Client::connect(&server)).await.unwrap();
    let error = client.typed::<add>().call((1, Some(2))).await.unwrap_err();
    assert!(error.to_string().contains("is not a `i64`: three"), "{error}");
}

#[tokio::test]
async fn a_mounted_tool_is_called_by_its_name() {
    let inner = mcp_runtime::server!().tool::<nothing>();
    let server = mcp_runtime::server!().mount("shop", inner).build().unwrap();
    let client = within(Client::connect(&server)).await.unwrap();
    let name = client.tools().await.unwrap()[0].name().to_owned();
    assert_ne!(name, "nothing");
    client.typed::<nothing>().named(name).call(()).await.unwrap();
    assert_eq!(client.call("shop", json!({})).await.unwrap_err().code(), Some(-32602));
}
