//! What clients can repeat without end fills no log: a few lines, then one in each interval that counts the others.

use crate::{authorization::api_keys::Credulous, prelude::*};

/// The time to each line of a place.
const INTERVAL: Duration = Duration::from_secs(10);

/// Fails with a text of the client
#[mcp_tool]
fn fail_privately(text: String) -> Result<u8, std::io::Error> {
    Err(std::io::Error::other(format!("not found: {text}")))
}

/// Fails with a text of the client, too
#[mcp_tool]
fn quote(text: String) -> Result<u8, std::io::Error> {
    Err(std::io::Error::other(format!("not found: {text}")))
}

/// Fails as well
#[mcp_tool]
fn fail_differently() -> Result<u8, std::fmt::Error> {
    Err(std::fmt::Error)
}

#[tokio::test(start_paused = true)]
async fn failures_of_a_tool_are_logged_at_first_and_then_one_in_each_interval_with_the_number_of_the_others()
{
    let log = ThreadLog::capture();
    let server = serve(mcp_runtime::server!().tool::<fail_privately>().tool::<fail_differently>());
    for n in 0..1000 {
        server.call("fail_privately", json!({ "text": n.to_string() })).await.expect_failure("failed");
    }
    let logged = log.with("call failed");
    assert_eq!(logged.len(), 10);
    assert!(logged.iter().all(|line| line.contains("not found: ") && !line.contains("suppressed")));
    // how to show them comes with the first
    assert_eq!(log.with("the client was told only").len(), 1);
    // a flood of one hides no failure of another
    server.call("fail_differently", json!({})).await.expect_failure("failed");
    assert_eq!(log.with("name=\"fail_differently\"").len(), 2, "the failure and the hint");
    for _ in 0..3 {
        tokio::time::advance(INTERVAL).await;
        for _ in 0..100 {
            server.call("fail_privately", json!({ "text": "again" })).await.expect_failure("failed");
        }
    }
    let logged = log.with("suppressed=");
    assert_eq!(logged.len(), 3, "{logged:?}");
    assert!(logged[0].contains("suppressed=990") && logged[2].contains("suppressed=99"), "{logged:?}");
}

#[tokio::test]
async fn a_failure_that_quotes_a_long_text_of_the_client_is_a_short_line() {
    let log = ThreadLog::capture();
    let server = serve(mcp_runtime::server!().tool::<quote>());
    let reply = server.call("quote", json!({ "text": "é".repeat(1 << 20) })).await;
    assert_eq!(failure(&reply), "tool 'quote' failed");
    let logged = log.with("call failed");
    assert!(logged.len() == 1 && logged[0].len() < 2200, "{}", logged[0].len());
    assert!(logged[0].contains("not found: éé") && logged[0].contains("more bytes)"), "{logged:?}");
}

/// Returns more than its limit
#[mcp_tool(max_result = "20B")]
fn flood() -> String {
    "x".repeat(100)
}

#[tokio::test(start_paused = true)]
async fn messages_that_cannot_be_read_are_one_line_in_each_interval() {
    let log = ThreadLog::capture();
    let server = mcp_runtime::server!().tool::<flood>().build().expect("a server");
    let mut connection = LineConnection::serve(&server, 1 << 16);
    connection.shake_hands("2025-03-26").await;
    let mut flood = "not JSON\n".repeat(100);
    flood.push_str(&format!("[{}]\n", vec!["1"; 100].join(",")));
    connection.write(flood.as_bytes()).await;
    connection.reply_to(&ping(1)).await;
    let logged = log.with("could not be read");
    assert_eq!(logged.len(), 1, "{logged:?}");
    tokio::time::advance(INTERVAL).await;
    connection.write(b"not JSON either\n").await;
    connection.reply_to(&ping(2)).await;
    let logged = log.with("could not be read");
    assert!(logged.len() == 2 && logged[1].contains("suppressed="), "{logged:?}");
}

#[tokio::test]
async fn callers_that_cannot_be_authenticated_are_one_line_for_many_requests() {
    let log = ThreadLog::capture();
    let server = HttpServer::start(mcp_runtime::server!().tool::<flood>().auth(Credulous)).await;
    let request = HttpRequest::modern(1, "tools/call", json!({ "name": "flood", "arguments": {} }))
        .header("Authorization", "Bearer down");
    for _ in 0..100 {
        assert_eq!(request.send(server.address).await.status, 503);
    }
    // at most a few, if the machine is slow
    let logged = log.with("callers cannot be authenticated");
    assert!((1..=3).contains(&logged.len()), "{logged:?}");
}
