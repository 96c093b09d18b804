//! Events of replicas while the store that they share is away; `tests/shared` has those of every store.

use std::error::Error as _;

use super::fixture::{builder, incident, incident_created, titles};
use crate::prelude::*;

const NAME: &str = "incident.created";

fn replica(store: &BreakableStore) -> Server {
    let builder = builder().info(|info| info.name("replicas")).shared(store.clone());
    builder.stores(|stores| stores.keys([server_key(5)])).build().expect("a server")
}

async fn emit(server: &Server, title: &str) {
    let emitted = server.handle().emit::<incident_created>(&incident(title, 1)).id(title).await;
    assert_eq!(emitted.expect("it is emitted"), title);
}

/// Polls at a replica.
async fn poll(server: &Server, cursor: &Value) -> Value {
    let params = json!({ "name": NAME, "cursor": cursor });
    TestServer::of(server).request("events/poll", params).await.value().clone()
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_emitting_is_its_error_and_what_is_emitted_again_comes_once_and_without_a_gap()
 {
    let store = BreakableStore::default();
    let replicas = [replica(&store), replica(&store), replica(&store)];
    let mut streams = Vec::new();
    for server in &replicas {
        streams.push(TestServer::of(server).events(NAME, json!({})).await);
    }
    emit(&replicas[0], "before").await;
    for stream in &mut streams {
        assert_eq!(stream.next().await["params"]["data"]["title"], "before");
    }
    let begun = poll(&replicas[1], &Value::Null).await;
    store.set_broken(true);
    for title in ["one", "two"] {
        let emit = replicas[0].handle().emit::<incident_created>(&incident(title, 1)).id(title);
        let error = emit.await.expect_err("the store is away");
        assert!(error.to_string().contains("the event `incident.created`"), "{error}");
        assert!(error.source().is_some(), "the error of the store: {error:?}");
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    store.set_broken(false);
    tokio::time::sleep(Duration::from_secs(20)).await;
    emit(&replicas[0], "one").await;
    emit(&replicas[1], "after").await;
    let expected = ["one", "after"];
    for stream in &mut streams {
        for title in expected {
            let message = stream.next().await;
            assert_eq!(message["params"]["data"]["title"], title, "without a gap before it: {message}");
        }
        assert!(stream.try_next().is_none(), "once");
    }
    for server in &replicas {
        let polled = poll(server, &begun["cursor"]).await;
        assert_eq!(
            (titles(&polled), &polled["truncated"]),
            (expected.map(String::from).to_vec(), &json!(false))
        );
    }
}

#[tokio::test]
async fn what_a_function_of_one_process_decides_is_an_error_where_replicas_share_a_store() {
    let server = replica(&BreakableStore::default());
    let emit = server.handle().emit::<incident_created>(&incident("a", 1)).to(|_: &Principal| true);
    let error = emit.await.unwrap_err().to_string();
    assert!(error.contains("is emitted with `.to(..)`") && error.contains("Option<&Principal>"), "{error}");
}
