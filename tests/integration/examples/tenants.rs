//! The `tenants` example, as its callers see it over HTTP.

use std::sync::PoisonError;

use mcp_runtime::audit::Audit;

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/tenants.rs"]
mod example;

const ADA: &str = "acme-key-of-ada-1";
const BOB: &str = "globex-key-of-bob";

/// The server, and the lines of its audit log.
async fn serve() -> (HttpServer, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = lines.clone();
    let audit = Audit::to(move |line: &str| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    });
    (HttpServer::start(example::server(audit)).await, lines)
}

async fn request(server: &HttpServer, key: &str, method: &str, params: Value) -> Value {
    let request = HttpRequest::modern(1, method, params).header("Authorization", &format!("Bearer {key}"));
    request.send(server.address).await.json()
}

async fn call(server: &HttpServer, key: &str, tool: &str, arguments: Value) -> Value {
    request(server, key, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

async fn tools(server: &HttpServer, key: &str) -> Vec<String> {
    let reply = request(server, key, "tools/list", json!({})).await;
    let tools = reply["result"]["tools"].as_array().expect("a list");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn each_tenant_has_its_tools_and_documents() {
    let (server, _) = serve().await;
    assert_eq!(
        tools(&server, ADA).await,
        ["list_documents", "read_document", "summarise", "acme__order_anvil"]
    );
    assert_eq!(tools(&server, BOB).await, ["list_documents", "read_document"]);
    let first = call(&server, ADA, "list_documents", json!({})).await["result"]["structuredContent"].take();
    assert_eq!(first["titles"], json!(["Anvils", "Rockets"]));
    let second = call(&server, ADA, "list_documents", json!({ "skip": first["next"] })).await;
    assert_eq!(second["result"]["structuredContent"]["titles"], json!(["Magnets"]));
    // her documents are not his
    let his = call(&server, BOB, "read_document", json!({ "title": "Anvils" })).await;
    assert_eq!(text_of(&his), "no document is called `Anvils`");
    // what he does not see does not exist
    for tool in ["summarise", "acme__order_anvil", "made_up"] {
        assert_eq!(call(&server, BOB, tool, json!({})).await["error"]["code"], -32602, "{tool}");
    }
    assert_eq!(text_of(&call(&server, ADA, "acme__order_anvil", json!({})).await), "ordered");
}

#[tokio::test]
async fn a_quota_and_a_rate_are_of_one_tenant_and_of_one_caller() {
    let (server, _) = serve().await;
    for _ in 0..3 {
        assert!(call(&server, BOB, "list_documents", json!({})).await["result"]["isError"].is_null());
    }
    let refused = call(&server, BOB, "list_documents", json!({})).await;
    assert!(text_of(&refused).starts_with("the quota of this month is used up"), "{refused}");
    for _ in 0..2 {
        assert_eq!(text_of(&call(&server, ADA, "summarise", json!({})).await), "3 documents");
    }
    let refused = call(&server, ADA, "summarise", json!({})).await;
    assert!(text_of(&refused).contains("may be called 2 times in 1 minute"), "{refused}");
    let read = call(&server, ADA, "read_document", json!({ "title": "Anvils" })).await;
    assert_eq!(text_of(&read), "All of Anvils.");
}

#[tokio::test]
async fn the_audit_log_says_who_did_what_without_their_keys() {
    let (server, lines) = serve().await;
    call(&server, ADA, "read_document", json!({ "title": "Anvils" })).await;
    call(&server, BOB, "summarise", json!({})).await;
    let anonymous = HttpRequest::modern(1, "tools/call", json!({ "name": "summarise" }));
    assert_eq!(anonymous.send(server.address).await.status, 401);
    let taken = || lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(soon(|| taken().len() >= 3).await, "{:?}", taken());
    let log: Vec<Value> =
        taken().iter().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let find = |subject: &str| log.iter().find(|line| line["subject"] == subject).expect("a line");
    let (hers, his) = (find("ada"), find("bob"));
    assert_eq!(
        (&hers["item"], &hers["arguments"], &hers["outcome"]),
        (&json!("read_document"), &json!(["title"]), &json!("ok"))
    );
    assert_eq!((&his["item"], &his["outcome"]), (&json!("summarise"), &json!("refused")));
    assert!(log.iter().any(|line| line["status"] == 401));
    assert!(!taken().concat().contains("key-of"));
}
