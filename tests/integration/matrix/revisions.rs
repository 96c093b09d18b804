//! What the server sends in each revision: the same over every transport, and nothing newer than the revision. The
//! conformance tests validate the same server against the schemas.

use std::collections::VecDeque;

use super::{Protocol, cells, sample_server};
use crate::prelude::*;

fn answers(method: &str, _: &Value) -> Value {
    match method {
        "elicitation/create" => json!({ "action": "decline" }),
        "sampling/createMessage" => {
            json!({ "role": "assistant", "content": { "type": "text", "text": "4" }, "model": "m" })
        }
        _ => json!({ "roots": [] }),
    }
}

/// Everything that the server sends in a revision, without random values.
async fn messages(server: &Server, transport: Transport, revision: Revision) -> Vec<Value> {
    let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    let mut client = Client::connect(server, transport, revision, capabilities, answers).await;
    let mut messages = Vec::new();
    let mut requests = VecDeque::from(sample_server::requests());
    while let Some((what, method, params)) = requests.pop_front() {
        let (mut seen, mut reply) = client.round_trip(method, params).await;
        if let Some(cursor) = reply.get("nextCursor") {
            requests.push_front((what, method, json!({ "cursor": cursor })));
        }
        for message in &mut seen {
            if message.get("id").is_some() {
                message["id"] = json!("random");
            }
        }
        for sealed in ["requestState", "nextCursor"] {
            if reply.get(sealed).is_some() {
                reply[sealed] = json!("random");
            }
        }
        messages.extend(seen);
        messages.push(reply);
    }
    messages
}

/// What each revision added.
const NEW: [(Revision, &[&str]); 4] = [
    (
        Revision::V2025_03_26,
        &["\"readOnlyHint\"", "\"destructiveHint\"", "\"audio\"", "\"message\":\"half\""],
    ),
    (
        Revision::V2025_06_18,
        &[
            "\"title\"",
            "\"outputSchema\"",
            "\"structuredContent\"",
            "\"resource_link\"",
            "\"lastModified\"",
            "elicitation/create",
        ],
    ),
    (Revision::V2025_11_25, &["\"icons\"", "\"oneOf\"", "\"mode\""]),
    (Revision::V2026_07_28, &["\"resultType\"", "\"ttlMs\"", "\"cacheScope\"", "\"inputRequests\""]),
];

#[tokio::test]
async fn every_transport_sends_the_same_in_each_revision_and_nothing_newer() {
    let server = sample_server::builder().build().unwrap();
    for &revision in Revision::ALL {
        let expected = messages(&server, Transport::Memory, revision).await;
        let text = json!(expected).to_string();
        for (since, members) in NEW {
            for member in members {
                assert_eq!(text.contains(member), since <= revision, "{revision}: {member} in {text}");
            }
        }
        let protocol = if revision.is_modern() { Protocol::Modern } else { Protocol::Legacy };
        for (transport, _) in cells("revisions").filter(|cell| cell.1 == protocol) {
            let messages = messages(&server, transport, revision).await;
            for (message, expected) in messages.iter().zip(&expected) {
                assert_eq!(message, expected, "{transport:?} {revision}");
            }
            assert_eq!(messages.len(), expected.len(), "{transport:?} {revision}");
        }
    }
}
