//! Probes: what orchestrators ask, which know the server by its address only.

use axum::Router;

use super::fixture::builder;
use crate::prelude::*;

/// A probe as kubelet sends it: it names the address of a pod.
fn probe(path: &str) -> HttpRequest {
    HttpRequest::new("GET").path(path).with("Host", "10.1.2.3:8080").header("User-Agent", "kube-probe/1.33")
}

fn call(name: &str) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({ "name": name }))
}

#[tokio::test]
async fn probes_are_answered_for_any_host_and_any_client() {
    let builder = builder(&Gate::default()).http(|http| {
        http.allowed_hosts(["mcp.example.com"])
            .caller(|parts| parts.headers.get("x-user").map(|_| Principal::new("test", "ada")))
    });
    let server = HttpServer::start(builder).await;
    for (path, text) in [("/healthz", "alive\n"), ("/readyz", "ready\n")] {
        let answer = probe(path).send(server.address).await;
        assert_eq!((answer.status, answer.text()), (200, text));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let post = HttpRequest::post("{}").path(path).send(server.address).await;
        assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")));
    }
    let mut connection = HttpConnection::open(server.address).await;
    connection.write(b"HEAD /readyz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(connection.head().await.status, 200);
    // the endpoint does check
    assert_eq!(probe("/mcp").send(server.address).await.status, 403);
}

#[tokio::test]
async fn probes_have_the_paths_that_are_set_or_none() {
    within(async {
        let elsewhere = builder(&Gate::default()).http(|http| http.health_paths("/live", "/ready"));
        let server = HttpServer::start(elsewhere).await;
        for (path, status) in [("/live", 200), ("/ready", 200), ("/healthz", 404), ("/readyz", 404)] {
            assert_eq!(probe(path).send(server.address).await.status, status, "{path}");
        }
        let server = HttpServer::start(builder(&Gate::default()).http(|http| http.without_health())).await;
        assert_eq!(probe("/healthz").send(server.address).await.status, 404);
    })
    .await;
    for (live, ready) in [("/mcp", "/readyz"), ("/same", "/same"), ("healthz", "/readyz")] {
        let built = Server::builder("probes", "1").http(|http| http.health_paths(live, ready)).build();
        let error = built.expect_err("a clash").to_string();
        assert!(error.contains("is the path of a probe") || error.contains("is not a path"), "{error}");
    }
}

#[tokio::test]
async fn a_router_has_the_paths_of_probes_and_a_service_does_not() {
    let build = || builder(&Gate::default()).build().expect("a server");
    let at = serve_router(build().into_router().expect("a router")).await;
    assert_eq!(probe("/readyz").send(at).await.text(), "ready\n");
    let service = build().into_service().expect("a service");
    let routed = serve_router(service.clone().into_router()).await;
    let nested = serve_router(Router::new().nest_service("/mcp", service.clone())).await;
    assert_eq!(probe("/readyz").send(nested).await.status, 404);
    service.stop();
    let stopping = probe("/readyz").send(routed).await;
    assert_eq!((stopping.status, stopping.text()), (503, "stopping\n"));
    assert_eq!(probe("/healthz").send(routed).await.status, 200);
    // an application with probes of its own
    let own = builder(&Gate::default()).http(|http| http.without_health()).build().expect("a server");
    let app = Router::new().route("/healthz", axum::routing::get(async || "mine"));
    let at = serve_router(app.merge(own.into_router().expect("a router"))).await;
    assert_eq!(probe("/healthz").send(at).await.text(), "mine");
}

#[tokio::test]
async fn a_server_is_ready_while_all_of_its_checks_pass() {
    let (connected, checked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (database, count) = (connected.clone(), checked.clone());
    let builder = builder(&Gate::default()).http(|http| {
        http.readiness("cache", async || true).readiness("database", move || {
            count.fetch_add(1, Ordering::SeqCst);
            let database = database.clone();
            async move { database.load(Ordering::SeqCst) }
        })
    });
    let server = HttpServer::start(builder).await;
    let at = server.address;
    let answer = probe("/readyz").send(at).await;
    assert_eq!((answer.status, answer.text()), (503, "not ready\n"), "the name of the check is for the log");
    // probes that come together, or soon after each other, are answered from one run
    let flood: Vec<_> = (0..50).map(|_| spawn(async move { probe("/readyz").send(at).await })).collect();
    for answer in flood {
        assert_eq!(answer.await.expect("no panic").status, 503);
    }
    assert!(checked.load(Ordering::SeqCst) < 10, "{checked:?} runs");
    assert_eq!(probe("/healthz").send(at).await.status, 200, "it is alive all the time");
    connected.store(true, Ordering::SeqCst);
    within(async {
        while probe("/readyz").send(at).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_check_that_hangs_or_panics_means_not_ready_and_nothing_worse() {
    let hangs = builder(&Gate::default()).http(|http| http.readiness("hangs", std::future::pending::<bool>));
    let panics = builder(&Gate::default())
        .http(|http| http.readiness("panics", async || panic!("the database is on fire")));
    for builder in [hangs, panics] {
        let server = HttpServer::start(builder).await;
        assert_eq!(probe("/readyz").send(server.address).await.status, 503);
        assert_eq!(call("burst").send(server.address).await.status, 200);
    }
}
