//! Requests that wait for others on their connection: each costs the same, however many wait beside it.

use mcp_runtime::Server;
use serde_json::{Value, json};

use super::{cpu_time, exchange, server};

/// How many times as much a line may cost where many wait: in a debug build, a search among them costs ten times as much.
const FACTOR: f64 = 3.0;
const FEW: usize = 500;
const MANY: usize = 10_000;

fn server() -> Server {
    let limits = mcp_runtime::server!().tool::<server::echo>().limits(|limits| limits.max_queued(MANY));
    limits.build().expect("a server")
}

/// So many calls of a tool, each of which is written as a line, and after each of them, what `beside` makes of its number.
fn lines(calls: usize, beside: impl Fn(usize) -> Option<Value>) -> Vec<u8> {
    let version = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "echo", "arguments": { "text": "hi" }, "_meta": version });
    let call = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    let messages = (0..calls).flat_map(|id| [Some(call(id)), beside(id)]).flatten();
    messages.flat_map(|message| format!("{message}\n").into_bytes()).collect()
}

/// The CPU time of each of these calls, in milliseconds, and how many of them were answered with a result.
async fn cost(calls: usize, beside: impl Fn(usize) -> Option<Value>) -> (f64, usize) {
    let (server, lines) = (server(), lines(calls, beside));
    let start = cpu_time();
    let replies = exchange(&server, lines).await;
    let cost = (cpu_time() - start) / calls as f64;
    (cost, String::from_utf8(replies).expect("text").lines().filter(|line| line.contains("result")).count())
}

#[tokio::test]
async fn a_request_costs_the_same_however_many_wait_beside_it() {
    let nothing = |_| None;
    let (few, answered) = cost(FEW, nothing).await;
    assert_eq!(answered, FEW);
    let (many, answered) = cost(MANY, nothing).await;
    assert_eq!(answered, MANY);
    assert!(many < few * FACTOR, "{many} ms, and where few wait {few} ms");
}

#[tokio::test]
async fn a_notification_costs_the_same_however_many_requests_wait() {
    let cancel = |id: usize| {
        let params = json!({ "requestId": id });
        Some(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
    };
    let (few, _) = cost(FEW, cancel).await;
    let (many, _) = cost(MANY, cancel).await;
    assert!(many < few * FACTOR, "{many} ms, and where few wait {few} ms");
}
