//! Who may subscribe: scopes, and a resource's own check.

use mcp_runtime::resource::Subscription;

use super::fixture::{builder, listening};
use crate::prelude::*;

struct Live(Vec<u32>);

fn live(wanted: &Subscription, live: &Live) -> bool {
    wanted.variables["id"].parse().is_ok_and(|id| live.0.contains(&id))
}

fn bare(wanted: &Subscription) -> bool {
    assert_ne!(wanted.uri, "bare://panic", "secret");
    wanted.uri.ends_with("yes")
}

fn only_own(wanted: &Subscription, ctx: &Context, live: &Live) -> bool {
    wanted.variables.is_empty() && ctx.caller().is_none() && !live.0.is_empty()
}

/// Only some instances can be subscribed to
#[mcp_resource(uri = "live://{id}", subscribe = live)]
fn some(id: u32) -> String {
    id.to_string()
}

/// Decided by the URI alone
#[mcp_resource(uri = "bare://{name}", subscribe = bare)]
fn named(name: String) -> String {
    name
}

/// Decided by the caller
#[mcp_resource(uri = "own://one", subscribe = only_own)]
fn own() -> &'static str {
    "own"
}

/// Publishes changes
#[mcp_tool]
fn tell(server: &ServerHandle) {
    server.resource_updated("live://1");
}

fn checked() -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!()).state(Live(vec![1, 3]))
}

#[tokio::test]
async fn a_check_decides_on_each_subscription_of_a_listen_stream() {
    let wanted = [
        "live://1",
        "live://2",
        "live://3",
        "live://x",
        "bare://yes",
        "bare://no",
        "bare://panic",
        "own://one",
    ];
    let changes = serve(checked()).listen(json!({ "resourceSubscriptions": wanted })).await;
    let honoured = json!(["live://1", "live://3", "bare://yes", "own://one"]);
    assert_eq!(changes.acknowledged()["resourceSubscriptions"], honoured);
}

#[tokio::test]
async fn a_check_decides_on_each_subscription_of_a_session() {
    for revision in LEGACY {
        let server = serve(checked()).legacy(revision);
        let subscribe = async |uri: &str| server.request("resources/subscribe", json!({ "uri": uri })).await;
        for uri in ["live://1", "bare://yes", "own://one"] {
            assert_eq!(subscribe(uri).await.expect_ok().value(), &json!({}));
        }
        let refused = subscribe("live://2").await.error().expect("an error");
        assert_eq!((refused.code, refused.data), (-32602, Some(json!({ "uri": "live://2" }))));
        let broken = subscribe("bare://panic").await.error().expect("an error");
        assert_eq!(broken.code, -32603);
        assert!(!broken.message.contains("secret"), "{broken}");
    }
}

#[tokio::test]
async fn a_template_of_a_mount_is_checked_with_its_own_state() {
    let server = serve(mcp_runtime::server!().state(Live(Vec::new())).mount("inner", checked()));
    let wanted = json!({ "resourceSubscriptions": ["live://inner/1", "live://inner/2", "live://1"] });
    let changes = server.listen(wanted).await;
    assert_eq!(changes.acknowledged(), &json!({ "resourceSubscriptions": ["live://inner/1"] }));
}

#[tokio::test]
async fn hidden_resources_cannot_be_subscribed_to() {
    let served = HttpServer::start(builder()).await;
    let filter = json!({ "resourceSubscriptions": ["secret://one", "item://1"] });
    for (user, expected) in [("secret", json!(["secret://one", "item://1"])), ("guest", json!(["item://1"]))]
    {
        let request = listening("s", &filter).header("x-user", user);
        let first: Value = EventStream::open(&request, served.address).await.unwrap().next().await.unwrap();
        assert_eq!(first["params"]["notifications"]["resourceSubscriptions"], expected);
    }
}
