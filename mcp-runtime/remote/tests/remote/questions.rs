//! Questions of a server of 2026-07-28 to the user of the caller.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use mcp_runtime::{
    Revision, ServerBuilder,
    client::{Client, Round},
    client_request::Answer,
    prelude::*,
    serde_json::Map,
};
use mcp_runtime_remote::Remote;
use serde_json::json;

use crate::support::{Served, built};

/// What the booked trip is about.
#[mcp_type]
struct Trip {
    /// Where to.
    city: String,
}

/// Whether it is meant.
#[mcp_type]
struct Consent {
    sure: bool,
}

/// Books a trip, after two questions.
#[mcp_tool]
async fn book(ctx: &Context, booked: &Arc<AtomicUsize>) -> Result<String, ToolError> {
    let begun = ctx.once("begun", || async { Ok(booked.fetch_add(1, Ordering::SeqCst)) }).await?;
    let trip: Trip = ctx.elicit("trip", "Where to?").await?;
    let consent: Consent = ctx.elicit("sure", "Sure?").await?;
    Ok(format!("{} {} {begun}", trip.city, consent.sure))
}

async fn upstream() -> (Served, Arc<AtomicUsize>) {
    let booked = Arc::<AtomicUsize>::default();
    let server = mcp_runtime::server!().tool::<book>().state(booked.clone());
    (Served::new(&built(server)).await, booked)
}

fn relay(upstream: &Served) -> ServerBuilder {
    mcp_runtime::server!().add(Remote::new("up", upstream.url()))
}

fn answer(message: &str) -> serde_json::Value {
    if message == "Sure?" { json!({ "sure": true }) } else { json!({ "city": "Lyon" }) }
}

#[tokio::test]
async fn the_user_of_the_caller_is_asked_whatever_revision_the_caller_has() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let (up, booked) = upstream().await;
        let relay = Served::new(&built(relay(&up))).await;
        let client = Client::builder()
            .revision(revision)
            .on_elicit(|form| async move { Answer::Accept(answer(&form.message)) })
            .connect(relay.url())
            .await
            .expect("a connection");
        client.tools().await.expect("tools");
        let booking = client.call("up_book", json!({})).await.expect("a result");
        assert_eq!(booking.ok().expect("success").text(), "Lyon true 0", "{revision}");
        assert_eq!(booked.load(Ordering::SeqCst), 1, "{revision}");
    }
}

#[tokio::test]
async fn another_replica_goes_on_between_two_rounds_and_nothing_is_done_twice() {
    let (up, booked) = upstream().await;
    let key = std::array::from_fn(|at| u8::try_from(at).expect("a byte"));
    let replica = || built(relay(&up).stores(|stores| stores.keys([key])));
    let (one, two) = (replica(), replica());
    let (one, two) = (Client::connect(&one).await.expect("one"), Client::connect(&two).await.expect("two"));
    for client in [&one, &two] {
        client.tools().await.expect("tools");
    }
    let call = |client: &Client| {
        client.send("tools/call", json!({ "name": "up_book" })).capabilities(json!({ "elicitation": {} }))
    };
    let mut outcome = call(&one).round().await.expect("a round");
    let mut clients = [&two, &one].into_iter().cycle();
    let mut rounds = Vec::new();
    let result = loop {
        let (requests, state) = match outcome {
            Round::Input { requests, state } => (requests, state),
            Round::Complete(result) => break result,
            other => panic!("{other:?}"),
        };
        rounds.push(requests.keys().cloned().collect::<Vec<_>>());
        let answers: Map<_, _> = requests
            .into_iter()
            .map(|(key, request)| {
                let message = request["params"]["message"].as_str().unwrap_or_default();
                (key, json!({ "action": "accept", "content": answer(message) }))
            })
            .collect();
        let client = clients.next().expect("a client");
        outcome = call(client).answered(answers, state).round().await.expect("a round");
    };
    assert_eq!(rounds, [["trip"], ["sure"]], "the keys are those of the other server");
    assert!(result.get().contains("Lyon true 0"), "{result}");
    assert_eq!(booked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_caller_that_cannot_be_asked_is_said_to_the_other_server() {
    let (up, _booked) = upstream().await;
    let relay = built(relay(&up));
    let client = Client::connect(&relay).await.expect("a connection");
    client.tools().await.expect("tools");
    assert!(client.call("up_book", json!({})).await.and_then(mcp_runtime::client::CallResult::ok).is_err());
    let meta = &up.of("tools/call")[0].message()["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"], json!(null));
}
