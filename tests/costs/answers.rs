//! Answers to what a server asks its client, of any size: in the request that repeats a call, and as messages of their own
//! where a call waits for them.

use mcp_runtime::{Server, client_request::CreateMessage, prelude::*};
use mcp_tests::support::{LineConnection, initialize, legacy_call, notification};
use serde_json::{Value, json};

use super::{FACTOR, MOST_BYTES, REQUEST, Table, cpu_time, exchange, requests::long_list, server};

#[mcp_type]
struct Form {
    name: String,
    note: Option<String>,
}

/// Asks the user
#[mcp_tool]
pub(crate) async fn ask(context: &Context) -> Result<String, ToolError> {
    let form: Form = context.elicit("form", "Who are you?").await?;
    Ok(format!("{} {}", form.name.len(), form.note.is_some()))
}

/// Asks the model
#[mcp_tool]
pub(crate) async fn think(context: &Context) -> Result<String, ToolError> {
    let thought = context.sample("thought", CreateMessage::user("What is new?")).await?;
    Ok(thought.text().len().to_string())
}

/// Asks for folders
#[mcp_tool]
pub(crate) async fn look(context: &Context) -> Result<String, ToolError> {
    Ok(context.roots("folders").await?.len().to_string())
}

/// A tool, the key of what it asks for, and answers of about this size.
fn answers(bytes: usize) -> Vec<(&'static str, &'static str, &'static str, String)> {
    let a = "a".repeat(bytes);
    let list = |item: &dyn Fn(usize) -> String| long_list(item, bytes);
    let accept = |content: String| format!(r#"{{"action":"accept","content":{content}}}"#);
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let sampled = |content: String| {
        format!(r#"{{"role":"assistant","model":"m","stopReason":"endTurn","content":{content}}}"#)
    };
    let form = |name, content| (name, "ask", "form", accept(content));
    let thought = |name, content| (name, "think", "thought", sampled(content));
    let members = list(&|n| format!(r#""k{n}":{{}}"#));
    vec![
        form("a long text in a form", format!(r#"{{"name":"{a}"}}"#)),
        form("a form with many members", format!(r#"{{"name":"a",{}}}"#, list(&|n| format!(r#""k{n}":1"#)))),
        form("a form with a list for a text", format!(r#"{{"name":[{}]}}"#, list(&|_| "1".into()))),
        form("a form with deep lists", format!(r#"{{"name":"a","note":[{}]}}"#, list(&|_| deep.clone()))),
        form("a form with much `_meta`", format!(r#"{{"name":"a"}},"_meta":{{{members}}}"#)),
        thought("a long text of a model", format!(r#"{{"type":"text","text":"{a}"}}"#)),
        thought("many texts of a model", format!("[{}]", list(&|_| r#"{"type":"text","text":""}"#.into()))),
        (
            "many folders",
            "look",
            "folders",
            format!(r#"{{"roots":[{}]}}"#, list(&|n| format!(r#"{{"uri":"file:///{n}"}}"#))),
        ),
    ]
}

const CAPABILITIES: &str = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;

/// The line of a call of a modern client that can answer, with more params.
fn call(tool: &str, arguments: &str, more: &str) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments}{more},\
         \"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
         \"io.modelcontextprotocol/clientCapabilities\":{CAPABILITIES}}}}}}}\n"
    )
    .into()
}

/// What it costs to serve these lines, the least of some rounds.
async fn cost(server: &Server, lines: &[u8]) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let lines = lines.to_vec();
        let start = cpu_time();
        let replies = exchange(server, lines).await;
        least = least.min(cpu_time() - start);
        assert!(!replies.is_empty());
    }
    least
}

/// What it costs a legacy server to take an answer, until it replies to the call or asks again, the least of some rounds.
async fn cost_of_response(server: &Server, tool: &str, answer: &str) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let mut connection = LineConnection::serve(server, 1 << 16);
        let capabilities: Value = serde_json::from_str(CAPABILITIES).expect("JSON");
        connection.reply_to(&initialize(0, "2025-11-25", &capabilities)).await;
        connection.send(&notification("notifications/initialized", json!({}))).await;
        connection.send(&legacy_call(1, tool, &json!({}))).await;
        let asked = connection.message().await;
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{answer}}}\n", asked["id"]);
        let start = cpu_time();
        connection.write(line.as_bytes()).await;
        connection.message().await;
        least = least.min(cpu_time() - start);
    }
    least
}

#[tokio::test]
#[ignore = "measures CPU time: run it with `--release`"]
async fn no_answer_of_a_client_costs_many_times_the_cpu_time_of_an_echo() {
    let server = server::server();
    let mut found = Vec::new();
    for bytes in [4 << 10, 64 << 10, 280 << 10, MOST_BYTES] {
        eprintln!("{bytes} bytes");
        let text = format!(r#"{{"text":"{}"}}"#, "a".repeat(bytes));
        let echo = cost(&server, &call("echo", &text, "")).await + REQUEST;
        let mut table = Table { echo: Some(echo), ..Table::default() };
        for (name, tool, key, answer) in answers(bytes) {
            let first = exchange(&server, call(tool, "{}", "")).await;
            let reply: Value = serde_json::from_slice(&first).expect("a reply");
            assert_eq!(reply["result"]["resultType"], "input_required", "{reply}");
            let state = &reply["result"]["requestState"];
            let more = format!(",\"requestState\":{state},\"inputResponses\":{{\"{key}\":{answer}}}");
            let retried = cost(&server, &call(tool, "{}", &more)).await;
            let responded = cost_of_response(&server, tool, &answer).await;
            table.add(&format!("{name} in the call"), retried, "ms", FACTOR, true);
            table.add(&format!("{name} as a response"), responded, "ms", FACTOR, true);
        }
        found.extend(table.offenders);
    }
    assert!(found.is_empty(), "{found:#?}");
}
