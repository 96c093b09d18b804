//! How long a search takes among 100, 1,000 and 50,000 tools: the first one, which reads the words, and the median of those after
//! it.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use mcp_runtime::{
    testing::TestServer,
    tool::{ToolCall, ToolDef},
};
use mcp_runtime_search::Search;
use serde_json::json;

const ACTIONS: [&str; 8] = ["list", "create", "delete", "update", "archive", "restore", "rename", "export"];
const RECORDS: [&str; 8] =
    ["invoice", "customer", "contract", "payment", "account", "ticket", "report", "device"];

fn server(count: usize) -> TestServer {
    let tool = |n: usize| {
        let (action, record) = (ACTIONS[n % 8], RECORDS[n / 8 % 8]);
        ToolDef::builder(format!("{action}_{record}_{n}"))
            .description(format!("This will {action} the {record} of department {n}, and tell those who follow it."))
            .input_schema(json!({ "type": "object", "properties": { "id": { "type": "string" }, "note": { "type": "string" } } }))
            .handler(|_: ToolCall| async { "done" })
    };
    let builder = (0..count).map(tool).fold(mcp_runtime::server!(), mcp_runtime::ServerBuilder::add);
    TestServer::new(builder.add(Search::bm25())).expect("a server")
}

async fn time(server: &TestServer, query: &str) -> Duration {
    let started = Instant::now();
    server.call("search_tools", json!({ "query": query })).await.expect_ok();
    started.elapsed()
}

#[tokio::main]
async fn main() {
    for count in [100, 1_000, 50_000] {
        let server = server(count);
        let first = time(&server, "restore customer contract").await;
        let mut times = Vec::new();
        for n in 0..50 {
            let query = format!("{} {} department {n}", ACTIONS[n % 8], RECORDS[n % 7]);
            times.push(time(&server, &query).await);
        }
        times.sort();
        let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
        writeln!(
            std::io::stdout(),
            "{count} tools: first {first:.1?}, median {median:.2?}, worst {worst:.2?}"
        )
        .expect("to say it");
    }
}
