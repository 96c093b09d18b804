//! Rates that replicas count together in each store, and in a Redis that ends, hangs, and comes back.

use std::time::Duration;

use mcp_runtime::{Server, prelude::*};
use mcp_tests::support::{AnyStore, HttpRequest, HttpServer, server_key, text_of, x_user};
use serde_json::json;
use tokio::time::sleep;

use super::TestStore;

/// Has a rate
#[mcp_tool(rate = "10/1h")]
fn seldom() -> &'static str {
    "called"
}

/// Has a short one
#[mcp_tool(rate = "2/500ms")]
fn briefly() -> &'static str {
    "called"
}

/// Has none
#[mcp_tool]
fn often() -> &'static str {
    "called"
}

pub(crate) async fn three(store: &TestStore) -> [HttpServer; 3] {
    let replica = || {
        let store: AnyStore = store.open();
        let server = Server::builder("rates", "1")
            .stores(|stores| stores.keys([server_key(8)]))
            .http(|http| http.caller(x_user));
        HttpServer::start(server.tool::<seldom>().tool::<briefly>().tool::<often>().shared(store))
    };
    [replica().await, replica().await, replica().await]
}

fn call(user: &str, tool: &str) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({ "name": tool })).header("x-user", user)
}

/// How many of so many calls at once, to one replica after the other, were let in.
pub(crate) async fn let_in(replicas: &[HttpServer], user: &str, tool: &str, calls: usize) -> usize {
    let sent = replicas.iter().cycle().take(calls).map(|at| {
        let (request, at) = (call(user, tool), at.address);
        tokio::spawn(async move { text_of(&request.send(at).await.json()).to_owned() })
    });
    let mut let_in = 0;
    for sent in sent.collect::<Vec<_>>() {
        let text = sent.await.expect("no panic");
        assert!(text == "called" || text.contains("may be called"), "{text}");
        let_in += usize::from(text == "called");
    }
    let_in
}

#[tokio::test]
async fn three_replicas_let_a_caller_in_as_often_as_one_would() {
    for store in TestStore::all("three_replicas_let_a_caller_in") {
        let replicas = three(&store).await;
        for user in ["ada", "bob"] {
            assert_eq!(let_in(&replicas, user, "seldom", 40).await, 10, "{}: {user}", store.name);
        }
        assert_eq!(let_in(&replicas, "ada", "often", 20).await, 20);
        // what has come back can be used at any replica
        for _ in 0..2 {
            assert!((1..=3).contains(&let_in(&replicas, "ada", "briefly", 6).await), "{}", store.name);
            sleep(Duration::from_millis(700)).await;
        }
        assert!(let_in(&replicas, "ada", "briefly", 6).await >= 2, "{}", store.name);
    }
}
