//! Typed calls: the annotated function is the interface, wherever it runs.

use std::{borrow::Cow, future::IntoFuture as _};

use mcp_runtime::{
    Revision,
    client::{Client, Error},
    content::Image,
    prelude::*,
};
use mcp_tests::support::{HttpRequest, HttpServer};
use serde_json::json;

use super::{Transport, connect, within};

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

/// A page of the handbook
#[mcp_resource(uri = "handbook://{chapter}/{+path}{?lines,words}")]
fn page(chapter: u8, path: String, lines: Option<u32>, words: Option<Vec<String>>) -> Option<String> {
    (chapter < 9).then(|| format!("{chapter} {path} {lines:?} {words:?}"))
}

/// A price
#[mcp_resource(uri = "price://{name}")]
fn price(#[mcp(length(2..))] name: String) -> Result<f64, ToolError> {
    Ok(name.len() as f64 + 0.5)
}

/// A hit
#[mcp_resource(uri = "hit://one")]
fn hit() -> Json<Hit> {
    Json(Hit { name: "tea".into(), price: None })
}

/// Bytes
#[mcp_resource(uri = "bytes://all")]
fn bytes() -> Vec<u8> {
    vec![0, 159, 146, 150]
}

/// How loud
#[mcp_type]
#[derive(Debug, Clone, Copy)]
enum Volume {
    Quiet,
    Loud,
}

/// Announces
#[mcp_prompt]
fn announce(
    what: String,
    #[mcp(range(1..=3))] times: u8,
    volume: Volume,
    tags: Option<Vec<String>>,
) -> String {
    format!("{what} {times} {volume:?} {tags:?}")
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
        .resource::<page>()
        .resource::<price>()
        .resource::<hit>()
        .resource::<bytes>()
        .prompt::<announce>()
        .state(Shelf(shelf.to_vec()))
        .build()
        .unwrap()
}

#[tokio::test]
async fn the_result_is_the_functions_ok_type_over_every_transport() {
    let server = server();
    for way in Transport::ALL {
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
async fn the_schema_of_a_tool_has_the_parameters_in_their_order() {
    /// Pays
    #[mcp_tool]
    fn pay(to: String, amount: u32, by: Option<String>) -> String {
        format!("{amount} to {to} by {by:?}")
    }
    let http = HttpServer::start(mcp_runtime::server!().tool::<pay>()).await;
    let listed = HttpRequest::modern(1, "tools/list", json!({})).send(http.address).await;
    let places = ["to", "amount", "by"].map(|name| listed.text().find(&format!("\"{name}\":{{")));
    assert!(places.is_sorted() && places[0].is_some(), "{}", listed.text());
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

#[tokio::test]
async fn variables_of_a_resource_are_typed_and_its_contents_read_back() {
    let server = server();
    for way in Transport::ALL {
        for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
            let connected = connect(&server, way, Client::builder().revision(revision)).await.unwrap();
            let client = &connected.client;
            let words = Some(vec!["a&b".to_owned(), "ü".to_owned()]);
            let read = client.typed::<page>().read((3, "tea/cup one".into(), Some(7), words.clone())).await;
            assert_eq!(read.unwrap(), Some(format!("3 tea/cup one Some(7) {words:?}")), "{way:?} {revision}");
            let missing = client.typed::<page>().read((9, "x".into(), None, None)).await;
            assert_eq!(missing.unwrap(), None, "{way:?} {revision}");
            assert_eq!(client.typed::<price>().read(("tea".into(),)).await.unwrap(), 3.5);
            let found: Hit = client.typed::<hit>().read(()).await.unwrap();
            assert_eq!(found.name, "tea");
            let raw: Vec<u8> = client.typed::<bytes>().read(()).await.unwrap();
            assert_eq!(raw, [0, 159, 146, 150]);
            let whole = client.typed::<bytes>().read_for_result(()).await.unwrap();
            assert_eq!(whole.contents.len(), 1);
        }
    }
    let client = within(Client::connect(&server)).await.unwrap();
    let uri = client.typed::<page>().uri((3, "a".into(), None, None)).unwrap();
    assert_eq!(uri, "handbook://3/a");
    // a rule of the function, and what no template takes
    for (uri, part) in [
        (client.typed::<price>().uri(("t".into(),)), "name"),
        (client.typed::<page>().uri((3, "../up".into(), None, None)), "does not fit"),
    ] {
        let error = uri.unwrap_err();
        assert!(matches!(&error, Error::Invalid { what } if what.contains(part)), "{error:?}");
    }
}

#[tokio::test]
async fn arguments_of_a_prompt_are_typed_and_sent_as_text() {
    let server = server();
    for way in Transport::ALL {
        let connected = connect(&server, way, Client::builder()).await.unwrap();
        let client = &connected.client;
        let tags = Some(vec!["a, b".to_owned()]);
        let prompt = client.typed::<announce>().prompt(("tea".into(), 2, Volume::Loud, tags)).await.unwrap();
        let text = prompt.messages[0].content.as_text();
        assert_eq!(text, Some("tea 2 Loud Some([\"a, b\"])"), "{way:?}");
        let quiet = client.typed::<announce>().prompt(("tea".into(), 1, Volume::Quiet, None)).await.unwrap();
        assert_eq!(quiet.messages[0].content.as_text(), Some("tea 1 Quiet None"));
        let error =
            client.typed::<announce>().prompt(("tea".into(), 4, Volume::Quiet, None)).await.unwrap_err();
        assert!(matches!(&error, Error::Invalid { what } if what.contains("times")), "{error:?}");
    }
}

/// A shop of one region.
struct Shop {
    region: &'static str,
}

#[mcp_service(markers = shop)]
impl Shop {
    /// Finds what a shop sells
    #[mcp_tool]
    async fn find(&self, words: String, #[mcp(range(1..=100))] limit: u32, shelf: &Shelf) -> Json<Vec<Hit>> {
        let sold = shelf.0.iter().filter(|hit| hit.name.contains(&words)).take(limit as usize);
        Json(
            sold.map(|hit| Hit { name: format!("{} in {}", hit.name, self.region), ..hit.clone() }).collect(),
        )
    }

    /// A shelf
    #[mcp_resource(uri = "shelf://{number}")]
    fn shelf(&self, number: u32) -> String {
        format!("shelf {number} in {}", self.region)
    }

    /// Advertises
    #[mcp_prompt]
    fn advertise(&self, what: String) -> String {
        format!("Praise the {what} of {}.", self.region)
    }

    #[mcp_tool]
    #[cfg(any())]
    fn absent(&self, of: Nothing) {}
}

#[tokio::test]
async fn methods_of_services_have_typed_calls() {
    let shelf = || Shelf(vec![Hit { name: "tea".into(), price: None }]);
    let server = mcp_runtime::server!()
        .service(Shop { region: "Kent" })
        .service_as("eu", Shop { region: "Alsace" })
        .state(shelf())
        .build()
        .unwrap();
    for way in Transport::ALL {
        let connected = connect(&server, way, Client::builder()).await.unwrap();
        let client = &connected.client;
        let hits: Vec<Hit> = client.typed::<shop::find>().call(("te".into(), 5)).await.unwrap();
        assert_eq!(hits[0].name, "tea in Kent", "{way:?}");
        let hits = client.typed::<shop::find>().named("eu_find").call(("te".into(), 5)).await.unwrap();
        assert_eq!(hits[0].name, "tea in Alsace", "{way:?}");
        let refused = client.typed::<shop::find>().call(("te".into(), 0)).await.unwrap_err();
        assert!(matches!(&refused, Error::Invalid { what } if what.contains("limit")), "{refused:?}");
        assert_eq!(client.typed::<shop::shelf>().read((3,)).await.unwrap(), "shelf 3 in Kent");
        assert_eq!(client.typed::<shop::shelf>().uri((3,)).unwrap(), "shelf://3");
        let prompt = client.typed::<shop::advertise>().prompt(("tea".into(),)).await.unwrap();
        assert_eq!(prompt.messages.len(), 1);
    }
}
