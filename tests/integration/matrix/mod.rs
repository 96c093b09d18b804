//! Every feature over every transport, for legacy and for modern clients, with one test body each: in memory, over byte
//! streams as on stdio, and over HTTP. The table lists the features and why some combinations do not apply.

mod admission;
mod calls;
mod client_requests;
mod layers;
mod pagination;
mod refusals;
mod request_state;
mod revisions;
mod runtime_items;
pub(crate) mod sample_server;
mod subscriptions;
mod tasks;

use mcp_runtime::Completion;

use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Legacy,
    Modern,
}

type Cell = (Transport, Protocol);

/// A feature; where it is tested: in memory, over stdio and over HTTP, by legacy and then by modern clients; why not in
/// the combinations with a dash.
#[rustfmt::skip]
const TABLE: &[(&str, &str, &str)] = &[
    //                      legacy modern
    ("elicitation",         "mshmsh", ""),
    ("request state",       "---msh", "legacy clients get client requests as JSON-RPC requests: they carry no state between round trips"),
    ("client requests",     "mshmsh", ""),
    ("missing capabilities","mshmsh", ""),
    ("revisions",           "mshmsh", ""),
    ("progress",            "mshmsh", ""),
    ("cancellation",        "mshmsh", ""),
    ("disconnects",         "-shmsh", "an in-memory client disconnects by dropping its request, and has no lasting session"),
    ("list changes",        "mshmsh", ""),
    ("subscriptions",       "mshmsh", ""),
    ("run-time items",      "mshmsh", ""),
    ("tasks",               "mshmsh", ""),
    ("task lifecycle",      "---msh", "legacy clients have no tasks: their calls return results"),
    ("completion",          "mshmsh", ""),
    ("pagination",          "mshmsh", ""),
    ("layers",              "mshmsh", ""),
    ("order of refusals",   "mshmsh", ""),
];

/// The combinations that a feature is tested in.
fn cells(feature: &str) -> impl Iterator<Item = Cell> {
    let row = TABLE.iter().find(|(name, ..)| *name == feature).expect("a feature of the table");
    let all = [Protocol::Legacy, Protocol::Modern]
        .into_iter()
        .flat_map(|protocol| Transport::ALL.into_iter().map(move |transport| (transport, protocol)));
    row.1.chars().zip(all).filter(|(mark, _)| *mark != '-').map(|(_, cell)| cell)
}

#[test]
fn every_feature_of_the_table_is_tested() {
    let driven = [
        include_str!("client_requests.rs"),
        include_str!("calls.rs"),
        include_str!("layers.rs"),
        include_str!("pagination.rs"),
        include_str!("refusals.rs"),
        include_str!("revisions.rs"),
        include_str!("runtime_items.rs"),
        include_str!("request_state.rs"),
        include_str!("subscriptions.rs"),
        include_str!("tasks.rs"),
    ];
    for (feature, marks, why) in TABLE {
        let call = format!("cells(\"{feature}\")");
        assert!(driven.iter().any(|file| file.contains(&call)), "no test for {feature}");
        let whole = marks.chars().zip("mshmsh".chars()).all(|(mark, all)| mark == all || mark == '-');
        assert!(whole && marks.len() == 6, "{feature}: {marks}");
        assert_eq!(marks.contains('-'), !why.is_empty(), "{feature}: every dash has its reason");
    }
}

/// Waits at the gate
#[mcp_tool]
async fn hold(ctx: &Context, gate: &Gate) -> &'static str {
    ctx.progress(1.0).send();
    gate.pass().await
}

/// Reports progress
#[mcp_tool]
async fn steps(ctx: &Context) -> &'static str {
    for step in [1.0, 2.0, 2.0, 1.5, f64::NAN, f64::INFINITY, 3.0] {
        ctx.progress(step).total(3.0).message("working").send();
        tokio::task::yield_now().await;
    }
    ctx.progress(4.0).total(f64::NAN).send();
    "done"
}

/// Publishes a change
#[mcp_tool]
fn publish(what: String, server: &ServerHandle) {
    server.resource_updated(&what);
}

/// Towns of a country
fn towns(typed: &Completion) -> Vec<String> {
    let country = typed.arguments.get("country").map_or("nowhere", String::as_str);
    vec![format!("{}burg in {country}", typed.value)]
}

/// An item
#[mcp_resource(uri = "item://{country}/{town}")]
fn item(country: String, #[mcp(complete = towns)] town: String) -> String {
    format!("{town} in {country}")
}

/// A page
#[mcp_resource(uri = "page://one")]
fn page() -> &'static str {
    "one"
}

/// A poem
#[mcp_prompt]
fn poem(#[mcp(complete("tea", "toast", "rain"))] topic: String) -> String {
    format!("Write about {topic}.")
}

/// A tool made at run time.
fn tool(name: &str) -> ToolDef {
    ToolDef::builder(name).handler(|_: ToolCall| async { "done" })
}

/// A server with everything above, which other files extend.
fn builder(gate: &Gate) -> ServerBuilder {
    Server::builder("matrix", "1.0.0")
        .tool::<hold>()
        .tool::<steps>()
        .tool::<publish>()
        .resource::<item>()
        .resource::<page>()
        .prompt::<poem>()
        .state(gate.clone())
}

/// Every capability except tasks.
fn capable() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// A client with that transport and protocol.
async fn connect_to(server: &Server, cell: Cell, capabilities: Value, answers: Answers) -> Client {
    let revision = match cell.1 {
        Protocol::Legacy => Revision::V2025_11_25,
        Protocol::Modern => Revision::LATEST,
    };
    Client::connect(server, cell.0, revision, capabilities, answers).await
}

/// A client of a server with the items of this file.
async fn connect(cell: Cell) -> (Client, Gate) {
    let gate = Gate::default();
    let server = builder(&gate).build().unwrap();
    (connect_to(&server, cell, capable(), no_requests).await, gate)
}
