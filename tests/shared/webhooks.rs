//! Subscriptions by webhook that replicas share: any replica renews and ends them, one delivers, and another goes on when
//! that one is gone.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::Bytes,
    http::{HeaderMap, Uri},
};
use mcp_runtime::{Principal, Server, ServerBuilder, event, prelude::*};
use mcp_tests::support::{AnyStore, HttpRequest, HttpServer, PATIENCE, serve_router, server_key};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    time::{sleep, timeout},
};

use super::with_each_store;

/// A note
#[mcp_type]
struct Note {
    text: String,
}

/// A note was added.
#[mcp_event(name = "note.added")]
fn note_added(#[mcp(payload)] _note: &Note, #[mcp(default = "")] by: String, caller: &Principal) -> bool {
    by.is_empty() || by == caller.subject()
}

/// Adds a note.
#[mcp_tool]
async fn add(id: String, ctx: &Context) -> mcp_runtime::Result<()> {
    ctx.emit::<note_added>(&Note { text: id.clone() }).id(id).await?;
    Ok(())
}

/// A replica with a runtime of its own, so that it can end without a farewell.
struct Replica {
    http: HttpServer,
    _runtime: Runtime,
}

pub(crate) fn server(store: AnyStore) -> ServerBuilder {
    Server::builder("notes", "1")
        .stores(|stores| stores.keys([server_key(6)]))
        .limits(|limits| limits.events(|events| events.webhooks_on_loopback().max_webhooks(4)))
        .http(|http| {
            http.caller(|parts| {
                let user = parts.headers.get("x-user")?.to_str().ok()?;
                Some(Principal::new("test", user).with_scopes(["notes"]))
            })
        })
        .add(event::of::<note_added>())
        .tool::<add>()
        .shared(store)
}

fn replica(store: AnyStore) -> Replica {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let server = server(store);
    let (sends, receives) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        let _test_is_over = sends.send(HttpServer::start(server).await);
    });
    Replica { http: receives.recv().expect("it starts"), _runtime: runtime }
}

impl Replica {
    /// Ends as a process does that is killed: nothing is sent and nothing released.
    fn kill(self) {
        let Self { http, _runtime } = self;
        _runtime.shutdown_background();
        std::mem::forget(http);
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        request(self.http.address, method, params).await
    }

    async fn subscribe(&self, url: &str, secret: u8, ttl: Value) -> Value {
        let mut params = subscription(url, secret);
        params["ttlMs"] = ttl;
        self.request("events/subscribe", params).await
    }

    async fn add(&self, id: &str) {
        add_at(self.http.address, id).await;
    }
}

pub(crate) async fn request(at: SocketAddr, method: &str, params: Value) -> Value {
    HttpRequest::modern(1, method, params).header("x-user", "ada").send(at).await.json()
}

pub(crate) async fn add_at(at: SocketAddr, id: &str) {
    let added = request(at, "tools/call", json!({ "name": "add", "arguments": { "id": id } })).await;
    assert!(added["error"].is_null() && added["result"]["isError"] != true, "{added}");
}

pub(crate) fn subscription(url: &str, secret: u8) -> Value {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let secret = format!("whsec_{}", STANDARD.encode([secret; 32]));
    let delivery = json!({ "mode": "webhook", "url": url, "secret": secret });
    json!({ "name": "note.added", "arguments": { "by": "ada" }, "delivery": delivery })
}

/// What came: the path, the header with the signatures, and the body. It accepts every challenge.
#[derive(Clone, Default)]
pub(crate) struct Endpoint {
    pub(crate) received: Arc<Mutex<Vec<(String, String, Value)>>>,
    pub(crate) url: String,
}

impl Endpoint {
    pub(crate) async fn start() -> Self {
        let received = Arc::<Mutex<Vec<_>>>::default();
        let kept = received.clone();
        let app = axum::Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            let challenge = body.get("challenge").cloned();
            let signatures =
                headers.get("webhook-signature").and_then(|text| text.to_str().ok()).unwrap_or_default();
            kept.lock().unwrap().push((uri.path().to_owned(), signatures.to_owned(), body));
            async move {
                challenge.map_or_else(String::new, |challenge| json!({ "challenge": challenge }).to_string())
            }
        });
        Self { received, url: format!("http://{}/hook", serve_router(app).await) }
    }

    /// How often an event came.
    fn count(&self, id: &str) -> usize {
        self.received.lock().unwrap().iter().filter(|(.., body)| body["eventId"] == id).count()
    }

    fn challenges(&self) -> usize {
        self.received.lock().unwrap().iter().filter(|(.., body)| body["type"] == "verification").count()
    }

    /// Waits until it has come; adds it again at times, since a replica that has just taken a subscription begins there.
    async fn gets(&self, replica: &Replica, id: &str) {
        let came = async {
            for round in 0.. {
                if round % 10 == 0 {
                    replica.add(id).await;
                }
                sleep(Duration::from_millis(100)).await;
                if self.count(id) > 0 {
                    return;
                }
            }
        };
        timeout(PATIENCE, came).await.unwrap_or_else(|_| panic!("`{id}` did not come: {:?}", self.received));
    }
}

#[tokio::test]
async fn a_subscription_by_webhook_survives_its_replica_and_every_replica_renews_and_ends_it() {
    with_each_store("webhooks", async |store| {
        let (one, two) = (replica((store.open)()), replica((store.open)()));
        let endpoint = Endpoint::start().await;
        let subscribed = one.subscribe(&endpoint.url, 1, Value::Null).await;
        let id = subscribed["result"]["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{}: {subscribed}", store.name))
            .to_owned();
        assert_eq!(subscribed["result"]["refreshBefore"], Value::Null, "{}: it stays", store.name);
        // the one that has the lease gets it
        let first = async {
            tokio::select! {
                () = endpoint.gets(&one, "of-one") => true,
                () = endpoint.gets(&two, "of-two") => false,
            }
        };
        let one_delivers = first.await;
        let (holder, other) = if one_delivers { (one, two) } else { (two, one) };

        // another replica knows it, and does not ask the endpoint again
        let renewed = other.subscribe(&endpoint.url, 2, json!(3_600_000)).await;
        assert_eq!(renewed["result"]["id"].as_str(), Some(id.as_str()), "{renewed}");
        assert!(
            renewed["result"]["refreshBefore"].is_string()
                && renewed["result"]["deliveryStatus"]["active"] == true,
            "{renewed}"
        );
        assert_eq!(endpoint.challenges(), 1, "{}", store.name);
        // and its new secret is signed with by the replica that delivers
        let rotated = async {
            for number in 0.. {
                let event = format!("rotated-{number}");
                holder.add(&event).await;
                sleep(Duration::from_millis(200)).await;
                let received = endpoint.received.lock().unwrap().clone();
                if received
                    .iter()
                    .any(|(_, signatures, body)| body["eventId"] == *event && signatures.contains(' '))
                {
                    return;
                }
            }
        };
        timeout(PATIENCE, rotated).await.expect("both secrets sign");

        holder.kill();
        endpoint.gets(&other, "after-the-kill").await;
        assert_eq!(endpoint.challenges(), 1, "{}: it was verified", store.name);
        let again = replica((store.open)());
        let params = subscription(&endpoint.url, 2);
        let ended = again.request("events/unsubscribe", params.clone()).await;
        assert!(ended["result"].is_object(), "{}: {ended}", store.name);
        let gone = again.request("events/unsubscribe", params).await;
        assert_eq!(gone["error"]["data"]["kind"], "subscription", "{gone}");
        let stopped = async {
            for number in 0.. {
                let event = format!("late-{number}");
                other.add(&event).await;
                sleep(Duration::from_millis(300)).await;
                if endpoint.count(&event) == 0 {
                    return;
                }
            }
        };
        timeout(PATIENCE, stopped).await.expect("it ends at the replica that delivers");

        // of four, one principal may have half; the one that has ended counts no longer
        for path in ["a", "b", "c"] {
            let reply = again.subscribe(&format!("{}/{path}", endpoint.url), 1, json!(3_600_000)).await;
            let is_refused = path == "c";
            assert_eq!(reply["error"]["code"] == -32025, is_refused, "{}: {path}: {reply}", store.name);
        }
        other.kill();
        again.kill();
    })
    .await;
}
