//! What operators see of the shared store: metrics, and readiness.

use mcp_runtime::Server;
use mcp_tests::support::{AnyStore, BreakableStore, HttpRequest, HttpServer, within};

use super::replicas::{agreed, server};

/// The value of a metric.
fn value(built: &Server, line: &str) -> Option<f64> {
    let text = built.metrics().expect("metrics");
    text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' ')?.parse().ok())
}

fn count(built: &Server, operation: &str, outcome: &str) -> Option<f64> {
    let labels = format!("{{operation=\"{operation}\",outcome=\"{outcome}\"}}");
    value(built, &format!("mcp_server_store_operation_duration_seconds_count{labels}"))
}

const CONNECTED: &str = "mcp_server_store_connected";

#[tokio::test]
async fn operations_of_the_shared_store_are_counted_by_kind_and_outcome() {
    let store = BreakableStore::default();
    let shared: AnyStore = AnyStore::new(store.clone());
    let built = server(&shared).telemetry(|telemetry| telemetry.metrics()).build().expect("a server");
    within(async {
        let at = HttpServer::of(&built).await;
        let retry = agreed(&at).await;
        retry.send(at.address).await;
        let stored = count(&built, "put", "ok").expect("some");
        retry.send(at.address).await;
        assert_eq!(count(&built, "put", "conflict"), Some(1.0), "it was used before");
        assert_eq!(count(&built, "put", "ok"), Some(stored));
        assert_eq!(value(&built, CONNECTED), Some(1.0));
        store.set_broken(true);
        retry.send(at.address).await;
        assert_eq!(count(&built, "put", "error"), Some(1.0));
        assert_eq!(value(&built, CONNECTED), Some(0.0));
        let ready = HttpRequest::new("GET").path("/readyz").send(at.address).await;
        assert_eq!(ready.status, 200, "it serves what needs no store");
        store.set_broken(false);
        retry.send(at.address).await;
        assert_eq!(value(&built, CONNECTED), Some(1.0));
    })
    .await;
    // a server that shares nothing has none of these
    let alone = Server::builder("alone", "1").telemetry(|telemetry| telemetry.metrics()).build();
    assert!(!alone.expect("a server").metrics().expect("metrics").contains("mcp_server_store"));
}
