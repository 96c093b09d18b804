//! Every kind of result, in every revision, is valid against the schema of that revision. The matrix of the integration
//! tests checks that every transport sends the same.

use std::collections::{BTreeMap, VecDeque};

use mcp_external_tests::skip;
use mcp_runtime::{Revision, Server, testing::TestServer};
use mcp_tests::support::{LineConnection, answering, request};
use serde_json::{Value, json};

use crate::{
    sample_server::{builder, requests},
    schemas::Schema,
    suite::Suite,
};

/// The definition of a request of the server, by its method.
fn request_of(method: &str) -> &'static str {
    match method {
        "elicitation/create" => "ElicitRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "roots/list" => "ListRootsRequest",
        other => panic!("unexpected request `{other}`"),
    }
}

/// The result of `initialize` or `server/discover`.
async fn lifecycle_result(server: &Server, revision: Revision) -> Value {
    LineConnection::serve(server, 1 << 16).initialize(revision.as_str()).await
}

/// Everything that the server sends in a revision: the definition it must match, and the value.
async fn messages(revision: Revision) -> Vec<(&'static str, Value)> {
    let built = builder().build().expect("a server");
    let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    let (server, asked) = answering(TestServer::of(&built), capabilities, |method, _| match method {
        "elicitation/create" => Ok(json!({ "action": "decline" })),
        _ => Err("no".to_owned()),
    });
    let server = server.legacy(revision);
    let mut messages = Vec::new();
    if !revision.is_modern() {
        messages.push(("InitializeResult", lifecycle_result(&built, revision).await));
    }
    messages.push(if revision.is_modern() {
        ("DiscoverResult", server.request("server/discover", json!({})).await.value().clone())
    } else {
        ("EmptyResult", server.request("ping", json!({})).await.value().clone())
    });
    let mut requests = VecDeque::from(requests());
    while let Some((what, method, params)) = requests.pop_front() {
        let reply = server.request(method, params).await;
        if let Some(cursor) = reply.value().get("nextCursor").filter(|_| reply.error().is_none()) {
            requests.push_front((what, method, json!({ "cursor": cursor })));
        }
        let value = match (what, reply.error()) {
            ("Error", Some(error)) => {
                json!({ "code": error.code, "message": error.message, "data": error.data })
            }
            ("Error", None) => panic!("{method} went well: {reply}"),
            (_, Some(error)) => panic!("{method}: {error:?}"),
            (_, None) => reply.value().clone(),
        };
        let asks = value["resultType"] == "input_required";
        messages.push((if asks { "InputRequiredResult" } else { what }, value));
        for notification in reply.notifications().iter().filter(|message| message.get("id").is_none()) {
            messages.push(match notification["method"].as_str() {
                Some("notifications/progress") => ("ProgressNotification", notification.clone()),
                Some("notifications/message") => ("LoggingMessageNotification", notification.clone()),
                other => panic!("unexpected {other:?}"),
            });
        }
    }
    if !revision.is_modern() {
        messages.extend(
            asked
                .take()
                .into_iter()
                .map(|(method, params)| (request_of(&method), request(1, &method, params))),
        );
    }
    messages
}

#[tokio::test]
async fn every_kind_of_result_is_valid_in_its_revision_and_has_nothing_newer() {
    let suite = match Suite::install() {
        Ok(suite) => suite,
        Err(missing) => return skip("schemas", &missing),
    };
    let schemas = Schema::all(&suite);
    let revisions: Vec<_> = schemas.iter().map(|(revision, _)| *revision).collect();
    assert_eq!(revisions, Revision::ALL[1..], "the suite's schemas are not what they were");
    let mut wrong = BTreeMap::new();
    for (revision, schema) in schemas {
        let mut kinds = Vec::new();
        for (what, value) in messages(revision).await {
            // an error is a member of the response; some revisions have no definition for it, or another name
            if what == "Error" && !schema.has(what) {
                assert!(value["code"].is_i64() && value["message"].is_string(), "{value}");
                continue;
            }
            kinds.push(what);
            for violation in schema.violations(what, &value) {
                wrong
                    .entry((revision, what))
                    .or_insert_with(Vec::new)
                    .push(format!("{violation} in {value}"));
            }
        }
        let asks: &[&str] = match revision {
            Revision::V2026_07_28 => &["InputRequiredResult"],
            Revision::V2025_03_26 => &["CreateMessageRequest", "ListRootsRequest"],
            _ => &["CreateMessageRequest", "ListRootsRequest", "ElicitRequest"],
        };
        for expected in
            asks.iter().chain(&["ProgressNotification", "LoggingMessageNotification", "CompleteResult"])
        {
            assert!(kinds.contains(expected), "{revision}: no message is a {expected}: {kinds:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
