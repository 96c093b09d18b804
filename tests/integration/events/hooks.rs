//! The functions that `subscribed` and `unsubscribed` name: when they are called, and what becomes of what fails.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_runtime::{Principal, Server, ServerBuilder, event, prelude::*, testing::TestServer};
use mcp_tests::support::{HttpRequest, HttpServer, Transport};
use serde_json::{Value, json};

use super::fixture::connect;

/// What was said.
#[mcp_type]
pub(super) struct Text {
    pub(super) text: String,
}

/// What has happened to the channels of a chat.
#[derive(Clone, Default)]
pub(super) struct Channels(Arc<Mutex<Vec<String>>>);

impl Channels {
    fn note(&self, what: &str, channel: &str) {
        self.0.lock().unwrap().push(format!("{what} {channel}"));
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Waits until so many functions were called.
    async fn after(&self, count: usize) -> Vec<String> {
        for _ in 0..10_000 {
            if self.calls().len() >= count {
                break;
            }
            tokio::task::yield_now().await;
        }
        // what comes too much comes at once
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.calls()
    }
}

/// Joins a channel.
#[mcp_rule]
async fn join(channel: &str, channels: &Channels) -> Result<(), ToolError> {
    tokio::task::yield_now().await;
    channels.note("join", channel);
    match channel {
        "private" => Err(ToolError::new("the channel is private")),
        "bug" => panic!("a bug"),
        _ => Ok(()),
    }
}

/// Leaves a channel.
#[mcp_rule]
fn leave(channel: &str, channels: &Channels) -> Result<(), ToolError> {
    channels.note("leave", channel);
    if channel == "sticky" { Err(ToolError::new("the chat is away")) } else { Ok(()) }
}

/// Something was said in a channel.
#[mcp_event(name = "said", subscribed = join, unsubscribed = leave)]
pub(super) fn said(#[mcp(payload)] text: &Text, #[mcp(length(1..))] channel: String) -> bool {
    text.text.starts_with(&channel)
}

pub(super) fn builder(channels: &Channels) -> ServerBuilder {
    mcp_runtime::server!().state(channels.clone()).add(event::of::<said>())
}

fn serve() -> (Server, Channels) {
    let channels = Channels::default();
    (builder(&channels).build().unwrap(), channels)
}

async fn poll(server: &TestServer, channel: &str) -> Result<Value, i64> {
    let params = json!({ "name": "said", "arguments": { "channel": channel } });
    let polled = server.request("events/poll", params).await;
    match polled.error() {
        Some(error) => Err(error.code),
        None => Ok(polled.value().clone()),
    }
}

#[tokio::test]
async fn what_the_first_subscription_opens_is_closed_after_the_last_one_for_each_set_of_arguments() {
    let (server, channels) = serve();
    let client = TestServer::of(&server);
    let first = client.events("said", json!({ "channel": "a" })).await;
    let mut second = client.events("said", json!({ "channel": "a" })).await;
    let other = client.events("said", json!({ "channel": "b" })).await;
    assert_eq!(channels.after(2).await, ["join a", "join b"]);
    drop(first);
    assert_eq!(channels.after(3).await.len(), 2, "there is another one");
    server.handle().emit::<said>(&Text { text: "a: hello".to_owned() }).await.unwrap();
    assert_eq!(second.next().await["params"]["data"]["text"], "a: hello");
    drop(second);
    assert_eq!(channels.after(3).await[2..], ["leave a"]);
    let again = client.events("said", json!({ "channel": "a" })).await;
    drop((again, other));
    let mut rest = channels.after(6).await.split_off(3);
    rest.sort();
    assert_eq!(rest, ["join a", "leave a", "leave b"]);
}

#[tokio::test]
async fn functions_for_the_same_arguments_never_overlap_however_often_clients_come_and_go() {
    let (server, channels) = serve();
    for _ in 0..20 {
        let client = TestServer::of(&server);
        let (one, other) = tokio::join!(
            client.events("said", json!({ "channel": "a" })),
            client.events("said", json!({ "channel": "a" }))
        );
        drop((one, other));
        tokio::task::yield_now().await;
    }
    let calls = channels.after(usize::MAX).await;
    assert_eq!(calls.len() % 2, 0, "{calls:?}");
    for pair in calls.chunks(2) {
        assert_eq!(pair, ["join a", "leave a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_is_a_subscription_until_it_was_not_repeated_for_some_time() {
    let (server, channels) = serve();
    let client = TestServer::of(&server);
    for _ in 0..3 {
        poll(&client, "a").await.unwrap();
        tokio::time::sleep(Duration::from_secs(4 * 60)).await;
        assert_eq!(channels.calls(), ["join a"]);
    }
    tokio::time::sleep(Duration::from_secs(2 * 60)).await;
    assert_eq!(channels.after(2).await, ["join a", "leave a"]);
    poll(&client, "a").await.unwrap();
    assert_eq!(channels.calls().len(), 3, "it is opened again");

    let channels = Channels::default();
    let limits = |events: event::EventLimits| events.poll_lease(Duration::from_secs(1)).max_poll_leases(1);
    let server = builder(&channels).limits(|limited| limited.events(limits)).build().unwrap();
    let client = TestServer::of(&server);
    poll(&client, "a").await.unwrap();
    poll(&client, "a").await.unwrap();
    assert_eq!(poll(&client, "b").await, Err(-32025), "one more is too many");
    assert_eq!(channels.calls(), ["join a"], "nothing is opened for what is refused");
    tokio::time::sleep(Duration::from_secs(2)).await;
    poll(&client, "b").await.unwrap();
    assert_eq!(channels.calls(), ["join a", "leave a", "join b"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_opened_is_an_error_of_the_subscription_and_the_next_one_tries_again() {
    let (server, channels) = serve();
    let client = TestServer::of(&server);
    for count in [1, 2] {
        let params = json!({ "name": "said", "arguments": { "channel": "private" } });
        let refused = client.request("events/poll", params).await;
        let error = refused.error().expect("it cannot be opened");
        assert_eq!((error.code, &*error.message), (-32603, "the channel is private"));
        assert_eq!(channels.calls().len(), count);
    }
    assert_eq!(poll(&client, "bug").await, Err(-32603));
    assert_eq!(poll(&client, "").await, Err(-32602), "arguments are checked before");
    assert_eq!(channels.after(4).await, ["join private", "join private", "join bug"], "nothing is closed");
    // what fails while it is closed is closed
    poll(&client, "sticky").await.unwrap();
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    poll(&client, "sticky").await.unwrap();
    assert_eq!(channels.calls()[3..], ["join sticky", "leave sticky", "join sticky"]);

    let mut client = connect(&server, Transport::Stdio).await;
    let params = json!({ "name": "said", "arguments": { "channel": "private" } });
    let refused = client.reply("events/stream", params).await["error"].clone();
    assert_eq!((&refused["code"], &refused["message"]), (&json!(-32603), &json!("the channel is private")));
}

#[tokio::test]
async fn what_polls_have_opened_is_closed_when_the_server_goes() {
    let (server, channels) = serve();
    let client = TestServer::of(&server);
    poll(&client, "a").await.unwrap();
    drop((client, server));
    assert_eq!(channels.after(2).await, ["join a", "leave a"]);

    let (server, channels) = serve();
    let mut http = HttpServer::of(&server).await;
    let params = json!({ "name": "said", "arguments": { "channel": "a" } });
    let polled = HttpRequest::modern(1, "events/poll", params).send(http.address).await;
    assert_eq!(polled.json()["result"]["truncated"], false);
    http.stop();
    http.stopped().await;
    assert_eq!(channels.calls(), ["join a", "leave a"]);
}

/// Opens a mailbox.
#[mcp_rule]
fn open(owner: &Principal, channels: &Channels) -> Result<(), ToolError> {
    channels.note("open", owner.subject());
    Ok(())
}

/// A mail came.
#[mcp_event(subscribed = open)]
fn mail(#[mcp(payload)] _text: &Text) {}

#[tokio::test]
async fn a_function_that_takes_the_caller_is_called_for_each() {
    let channels = Channels::default();
    let server = mcp_runtime::server!().state(channels.clone()).add(event::of::<mail>()).build().unwrap();
    for caller in ["ada", "bob", "ada"] {
        let client = TestServer::of(&server).caller(Principal::new("test", caller));
        client.request("events/poll", json!({ "name": "mail" })).await.expect_ok();
    }
    assert_eq!(channels.calls(), ["open ada", "open bob"]);
    let client = TestServer::of(&server).caller(None);
    client.request("events/poll", json!({ "name": "mail" })).await.expect_code(-32024);
}

/// Has a misspelt argument.
#[mcp_rule]
fn misspelt(chanel: &str) -> Result<(), ToolError> {
    Err(ToolError::new(chanel))
}

/// Takes an argument of another type.
#[mcp_rule]
fn numbered(channel: &u64) -> Result<(), ToolError> {
    Err(ToolError::new(channel.to_string()))
}

/// Wants a request.
#[mcp_rule]
fn requesting(_ctx: &Context) -> Result<(), ToolError> {
    Ok(())
}

/// A
#[mcp_event(subscribed = misspelt)]
fn a(#[mcp(payload)] _text: &Text, channel: String) -> bool {
    channel.is_empty()
}

/// B
#[mcp_event(unsubscribed = numbered)]
fn b(#[mcp(payload)] _text: &Text, channel: String) -> bool {
    channel.is_empty()
}

/// C
#[mcp_event(subscribed = requesting)]
fn c(#[mcp(payload)] _text: &Text) {}

#[test]
fn functions_that_cannot_be_called_are_errors_of_the_builder() {
    let error = |builder: ServerBuilder| builder.build().expect_err("it cannot be called").to_string();
    let text = error(mcp_runtime::server!().add(event::of::<a>()));
    assert!(text.contains("the `subscribed` function of event `a`") && text.contains("`chanel`"), "{text}");
    let text = error(mcp_runtime::server!().add(event::of::<b>()));
    assert!(text.contains("the function `numbered` takes `channel` as `u64`"), "{text}");
    let text = error(mcp_runtime::server!().add(event::of::<c>()));
    assert!(text.contains("an event has no request"), "{text}");
    let text = error(mcp_runtime::server!().add(event::of::<said>()));
    assert!(text.contains("`&Channels`") && text.contains("no state of that type"), "{text}");
}
