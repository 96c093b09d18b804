//! State that is made when a server opens: once, inside of the runtime, before the first message is answered; and its end.

use std::io;

use axum::Router;
use mcp_runtime::serde_json::json;
use tokio::{
    net::TcpListener,
    runtime::Handle,
    sync::{Notify, oneshot},
};

use crate::prelude::*;

/// What the tests see of the state.
#[derive(Default)]
struct Seen {
    attempts: AtomicUsize,
    is_down: AtomicBool,
    /// What has happened, in order.
    log: Mutex<Vec<&'static str>>,
    entered: Notify,
    release: Notify,
}

impl Seen {
    fn log(&self, what: &'static str) {
        self.log.lock().unwrap().push(what);
    }

    fn lines(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().clone()
    }
}

/// A pool of connections to a database.
struct Pool(Arc<Seen>);

impl Pool {
    async fn connect(seen: &Arc<Seen>) -> io::Result<Self> {
        seen.attempts.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if seen.is_down.load(Ordering::SeqCst) {
            return Err(io::Error::other("the database at planted.example is down"));
        }
        Ok(Self(seen.clone()))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.log("dropped");
    }
}

/// Made of the pool by a plain function.
struct Cache(usize);

/// How often the pool was connected.
#[mcp_tool]
fn connected(pool: &Pool, cache: &Cache) -> usize {
    pool.0.attempts.load(Ordering::SeqCst) + cache.0
}

/// Runs until it is released.
#[mcp_tool]
async fn hold(pool: &Pool) -> &'static str {
    pool.0.entered.notify_one();
    pool.0.release.notified().await;
    pool.0.log("called");
    "held"
}

fn server(seen: &Arc<Seen>) -> ServerBuilder {
    Server::builder("made", "1")
        .state(seen.clone())
        .state_async(Pool::connect)
        .state_from(|_: &Pool| Handle::try_current().map(|_| Cache(0)))
        .tool::<connected>()
        .tool::<hold>()
}

fn ended(builder: ServerBuilder) -> ServerBuilder {
    builder
        .end_state(async |_: &Cache| {})
        .end_state(async |pool: &Pool| {
            tokio::task::yield_now().await;
            pool.0.log("ended");
        })
        // later than what was registered before it, it ends first
        .end_state(async |seen: &Seen| seen.log("first"))
}

fn call(tool: &str) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({ "name": tool }))
}

#[tokio::test]
async fn it_is_made_once_for_concurrent_calls_also_of_a_mounted_builder() {
    let (seen, inner) = (Arc::new(Seen::default()), Arc::new(Seen::default()));
    let server = TestServer::new(server(&seen).mount("inner", server(&inner))).expect("a server");
    assert_eq!(seen.attempts.load(Ordering::SeqCst), 0, "nothing is made by `build()`");
    let (one, two) = tokio::join!(server.call("connected", json!({})), server.call("connected", json!({})));
    one.expect_text("1");
    two.expect_text("1");
    server.call("inner_connected", json!({})).await.expect_text("1");
    assert_eq!(inner.attempts.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn closures_and_functions_without_parameters_make_it_too() {
    async fn seen() -> Result<Arc<Seen>, std::convert::Infallible> {
        Ok(Arc::default())
    }
    let builder = Server::builder("made", "1")
        .state_async(seen)
        .state_async(async |seen: &Arc<Seen>| Pool::connect(seen).await)
        .state_async(async || Ok::<_, String>(Cache(7)))
        .tool::<connected>();
    TestServer::new(builder).expect("a server").call("connected", json!({})).await.expect_text("8");
    // what is captured is cloned for each attempt
    let url = String::from("planted");
    let builder = Server::builder("made", "1").state_async(move || {
        let url = url.clone();
        async move { if url.is_empty() { Err("no URL") } else { Ok(Cache(url.len())) } }
    });
    builder.build().expect("a server");
}

#[tokio::test]
async fn a_test_server_replies_with_the_error_and_tries_again() {
    let seen = Arc::new(Seen::default());
    seen.is_down.store(true, Ordering::SeqCst);
    let server = TestServer::new(server(&seen)).expect("a server");
    let reply = server.call("connected", json!({})).await.to_string();
    assert!(
        reply.contains("the state `Pool` cannot be made: the database at planted.example is down"),
        "{reply}"
    );
    seen.is_down.store(false, Ordering::SeqCst);
    server.call("connected", json!({})).await.expect_text("2");
}

#[tokio::test]
async fn a_router_and_a_service_answer_503_until_it_is_made_and_try_again() {
    let router = |seen: &Arc<Seen>| server(seen).into_router().expect("a router");
    let service = |seen: &Arc<Seen>| {
        Router::new().nest_service("/mcp", server(seen).into_service().expect("a service"))
    };
    for (app, has_probes) in [(&router as &dyn Fn(&Arc<Seen>) -> Router, true), (&service, false)] {
        let seen = Arc::new(Seen::default());
        seen.is_down.store(true, Ordering::SeqCst);
        let at = serve_router(app(&seen)).await;
        for request in [call("connected"), HttpRequest::initialize("2025-06-18")] {
            let response = request.send(at).await;
            assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
            assert!(!response.text().contains("planted"), "{}", response.text());
        }
        let probe = async |path: &str| HttpRequest::new("GET").path(path).send(at).await.status;
        if has_probes {
            assert_eq!((probe("/healthz").await, probe("/readyz").await), (200, 503));
        }
        seen.is_down.store(false, Ordering::SeqCst);
        assert_ne!(text_of(&call("connected").send(at).await.json()), "0");
        let attempts = seen.attempts.load(Ordering::SeqCst);
        call("connected").send(at).await;
        assert_eq!(seen.attempts.load(Ordering::SeqCst), attempts, "it is made once");
    }
}

#[tokio::test]
async fn serving_ends_with_its_error() {
    let seen = Arc::new(Seen::default());
    seen.is_down.store(true, Ordering::SeqCst);
    let server = server(&seen).build().expect("a server");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let errors = [
        server.clone().serve_http_until(listener, std::future::pending()).await,
        server.clone().serve_http(0).await,
        server.serve(tokio::io::empty(), tokio::io::sink()).await,
    ];
    for error in errors {
        let error = error.expect_err("it cannot be served").to_string();
        assert!(error.contains("the state `Pool` cannot be made"), "{error}");
    }
}

#[tokio::test]
async fn a_panic_is_an_error_too() {
    let builder =
        Server::builder("made", "1").state_async(async || -> io::Result<Cache> { panic!("planted") });
    let reply =
        TestServer::new(builder).expect("a server").request("tools/list", json!({})).await.to_string();
    assert!(reply.contains("the function that makes the state has panicked"), "{reply}");
}

#[tokio::test]
async fn it_ends_after_the_last_call_and_is_dropped_then() {
    let seen = Arc::new(Seen::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let server = ended(server(&seen)).build().expect("a server");
    let serving = spawn(server.serve_http_until(listener, async { stopped.await.unwrap_or(()) }));
    let held = spawn(async move { call("hold").send(at).await.json() });
    seen.entered.notified().await;
    stop.send(()).expect("it is served");
    tokio::task::yield_now().await;
    assert!(seen.lines().is_empty());
    seen.release.notify_one();
    assert_eq!(text_of(&held.await.expect("a reply")), "held");
    serving.await.expect("no panic").expect("it was served");
    assert_eq!(seen.lines()[..3], ["called", "first", "ended"]);
}

#[tokio::test]
async fn it_does_not_end_under_another_transport_and_not_twice() {
    let seen = Arc::new(Seen::default());
    let server = ended(server(&seen)).build().expect("a server");
    let (client, theirs) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(theirs);
    let other = server.clone();
    let streams = spawn(async move { other.serve(reader, writer).await });
    while seen.attempts.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let listen = async || TcpListener::bind("127.0.0.1:0").await.expect("a port");
    server.clone().serve_http_until(listen().await, async {}).await.expect("it was served");
    assert!(seen.lines().is_empty(), "a connection is served still");
    drop(client);
    streams.await.expect("no panic").expect("it was served");
    server.clone().serve_http_until(listen().await, async {}).await.expect("it was served");
    assert_eq!(seen.lines(), ["first", "ended"]);
    let error =
        server.serve_http_until(listen().await, async {}).await.expect_err("it has ended").to_string();
    assert!(error.contains("the state has ended"), "{error}");
    assert_eq!(seen.lines(), ["first", "ended", "dropped"]);
}

#[tokio::test]
async fn it_ends_in_a_task_when_a_service_is_dropped() {
    let seen = Arc::new(Seen::default());
    let server = TestServer::new(ended(server(&seen))).expect("a server");
    server.call("connected", json!({})).await.expect_text("1");
    drop(server);
    while seen.lines() != ["first", "ended", "dropped"] {
        tokio::task::yield_now().await;
    }
    // what was not made has no end
    drop(TestServer::new(ended(super::made_state::server(&seen))));
}

#[test]
fn what_it_needs_is_checked_by_build() {
    let error = |builder: ServerBuilder| builder.build().expect_err("it cannot be built").to_string();
    let missing = error(Server::builder("made", "1").state_async(Pool::connect));
    assert!(missing.contains("`.state_async(..)` takes `&alloc::sync::Arc<"), "{missing}");
    assert!(missing.contains("made_state.rs") && missing.contains("`.state(..)`"), "{missing}");
    let twice = error(server(&Arc::default()).state_async(async || Ok::<_, String>(Cache(1))));
    assert!(twice.contains("two values of type `") && twice.contains("made_state.rs"), "{twice}");
    let no_end = error(Server::builder("made", "1").end_state(async |_: &Cache| {}));
    assert!(no_end.contains("`.end_state(..)` takes `&"), "{no_end}");
    let mounted = Server::builder("made", "1").state_from(|cache: &Cache| Ok::<_, String>(cache.0));
    assert!(error(Server::builder("made", "1").mount("in", mounted)).contains("`.state_from(..)` takes `&"));
}
