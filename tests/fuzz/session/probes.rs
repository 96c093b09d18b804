//! Whether limits are whole again: as much as they allow is accepted, and no more.

use mcp_runtime::Server;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    Connection, QUIET,
    script::Sent,
    server::{BOARD, MAX_IN_FLIGHT, MAX_PER_CALLER, MAX_QUEUED, MAX_RUNNING_TASKS, MAX_SUBSCRIBERS},
};

/// How many of the responses to these requests are refusals.
fn refusals(messages: &[Value], requests: &[Value]) -> usize {
    let is_refusal =
        |message: &&Value| message.get("error").is_some() || message["result"]["isError"] == true;
    let of = |message: &&Value| {
        message.get("method").is_none() && requests.iter().any(|request| request["id"] == message["id"])
    };
    messages.iter().filter(of).filter(is_refusal).count()
}

/// What a connection has requested has been answered once it is quiet, and it runs and queues as many requests as before.
pub(super) async fn before_the_end(connection: &mut Connection, sent: &mut Sent) {
    sleep(QUIET).await;
    let unanswered = connection.heard.unanswered(sent);
    assert!(unanswered.is_empty(), "{unanswered:?} have no response: {:#?}", connection.heard.messages());
    if !sent.is_served() {
        return;
    }
    let count = MAX_IN_FLIGHT + MAX_QUEUED + 1;
    let calls: Vec<_> = (0..count).map(|_| sent.call("slow", &json!({ "ms": 50 }))).collect();
    assert!(connection.write_lines(&calls).await, "the server reads");
    sleep(QUIET).await;
    let messages = connection.heard.messages();
    assert_eq!(refusals(&messages, &calls), 1, "of {count} calls: {messages:#?}");
}

/// Sends these requests of a new client at the same time, and returns how many are refused.
async fn refused(connection: &mut Connection, requests: &[Value]) -> usize {
    assert!(connection.write_lines(requests).await, "the server reads");
    sleep(std::time::Duration::from_secs(1)).await;
    refusals(&connection.heard.messages(), requests)
}

/// Limits that connections share are whole once a connection has ended and its tasks have expired.
pub(super) async fn after_a_session(server: &Server) {
    let mut connection = Connection::open(server, 1 << 16, true);
    let mut sent = Sent { is_modern: true, ..Sent::default() };

    let calls: Vec<_> = (0..2).map(|_| sent.call("one", &json!({}))).collect();
    assert_eq!(refused(&mut connection, &calls).await, 0, "`one` does not run");

    let calls: Vec<_> = (0..=MAX_PER_CALLER).map(|_| sent.call("limited", &json!({ "ms": 50 }))).collect();
    assert_eq!(refused(&mut connection, &calls).await, 1, "calls of one caller");

    let task = json!({ "name": "build", "arguments": { "ms": 50 } });
    let tasks: Vec<_> = (0..=MAX_RUNNING_TASKS).map(|_| sent.of_tasks("tools/call", task.clone())).collect();
    assert_eq!(refused(&mut connection, &tasks).await, 1, "tasks that run");

    let one = [sent.listen(&json!({ "resourceSubscriptions": [BOARD] }))];
    assert_eq!(refused(&mut connection, &one).await, 0, "a subscription to a resource");
    let streams: Vec<_> =
        (0..MAX_SUBSCRIBERS).map(|_| sent.listen(&json!({ "toolsListChanged": true }))).collect();
    assert_eq!(refused(&mut connection, &streams).await, 1, "subscribers");

    let heard = connection.end().await;
    heard.check(&sent, true);
}
