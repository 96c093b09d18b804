//! A server with more tools than a list should have: clients see a search, and three tools that call what it finds.
//!
//! ```sh
//! cargo run --example search -- call search_tools '{"query": "freeze account"}'
//! cargo run --example search -- --http 127.0.0.1:8080
//! ```

use mcp_runtime::{
    ServerBuilder,
    prelude::*,
    tool::{ToolCall, ToolDef},
};
use mcp_runtime_search::Search;
use serde_json::json;

/// What can be done with each kind of record, and whether that destroys something; `None` if it only reads.
const ACTIONS: [(&str, Option<bool>); 5] = [
    ("list", None),
    ("read", None),
    ("create", Some(false)),
    ("freeze", Some(false)),
    ("delete", Some(true)),
];

const RECORDS: [&str; 13] = [
    "account",
    "branch",
    "card",
    "contract",
    "customer",
    "dispute",
    "fee",
    "invoice",
    "loan",
    "mandate",
    "payment",
    "statement",
    "transfer",
];

/// Who is logged in.
#[mcp_tool(read_only)]
fn whoami() -> &'static str {
    "Ada"
}

fn tool(action: &'static str, record: &'static str, destroys: Option<bool>) -> ToolDef {
    ToolDef::builder(format!("{action}_{record}"))
        .description(format!("The {action} operation on a {record} of the bank."))
        .input_schema(json!({ "type": "object", "properties": { "id": { "type": "string" } } }))
        .hints(|hints| {
            hints.read_only = Some(destroys.is_none());
            hints.destructive = destroys;
        })
        .handler(move |call: ToolCall| async move { format!("{action} {record} {}", call.arguments["id"]) })
}

pub(crate) fn server() -> ServerBuilder {
    let records = RECORDS
        .into_iter()
        .flat_map(|record| ACTIONS.map(|(action, destroys)| tool(action, record, destroys)));
    let server = mcp_runtime::server!().tool::<whoami>().add(Search::bm25().always(["whoami"]));
    records.fold(server, ServerBuilder::add)
}

fn main() -> mcp_runtime::Result<()> {
    server().run()
}
