//! Pagination of lists, and completion of arguments.

use serde_json::{Value, json};

use super::{Protocol, Seen, builder, capable, cells, connect, connect_to, no_requests, tool};

#[tokio::test]
async fn lists_are_paginated_with_sealed_cursors() {
    for cell in cells("pagination") {
        let seen = std::sync::Arc::<Seen>::default();
        let more = (0..4).fold(builder(&seen), |builder, n| builder.add_tool(tool(&format!("late_{n}"))));
        let server = more.lists(|lists| lists.page_size(3)).build().unwrap();
        let mut client = connect_to(&server, cell, capable(), no_requests).await;
        let (tools, pages) = client.list("tools/list", "tools").await;
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
        let all = ["hold", "steps", "talk", "publish", "late_0", "late_1", "late_2", "late_3"];
        assert_eq!((names.as_slice(), pages), (all.as_slice(), 3), "{cell:?}");
        for (method, member, name) in [
            ("resources/list", "resources", "page"),
            ("resources/templates/list", "resourceTemplates", "item"),
            ("prompts/list", "prompts", "poem"),
        ] {
            let (entries, pages) = client.list(method, member).await;
            assert_eq!((&entries[0]["name"], entries.len(), pages), (&json!(name), 1, 1), "{cell:?}");
        }
        let first = client.request("tools/list", json!({})).await.reply;
        let second = client.request("tools/list", json!({ "cursor": first["nextCursor"] })).await.reply;
        assert_eq!(first.get("cacheScope"), second.get("cacheScope"), "{cell:?}");
        let stray = json!({ "cursor": first["nextCursor"] });
        for (method, params) in [("tools/list", json!({ "cursor": "made up" })), ("prompts/list", stray)] {
            let refused = client.request(method, params).await.reply;
            assert_eq!(refused["error"]["code"], -32602, "{cell:?}: {refused}");
        }
    }
}

#[tokio::test]
async fn arguments_are_completed() {
    for cell in cells("completion") {
        let (mut client, _) = connect(cell).await;
        let mut complete = async |of: Value, name: &str, value: &str, chosen: Value| {
            let params = json!({
                "ref": of, "argument": { "name": name, "value": value }, "context": { "arguments": chosen },
            });
            client.request("completion/complete", params).await.reply
        };
        let poem = || json!({ "type": "ref/prompt", "name": "poem" });
        let offered = complete(poem(), "topic", "T", json!({})).await;
        assert_eq!(
            offered["completion"],
            json!({ "values": ["tea", "toast"], "total": 2, "hasMore": false }),
            "{cell:?}"
        );
        assert_eq!(offered.get("resultType").is_some(), cell.1 == Protocol::Modern, "{cell:?}");
        let item = json!({ "type": "ref/resource", "uri": "item://{country}/{town}" });
        let offered = complete(item, "town", "Ham", json!({ "country": "Germany" })).await;
        assert_eq!(offered["completion"]["values"], json!(["Hamburg in Germany"]), "{cell:?}");
        let unknown = complete(poem(), "tpic", "", json!({})).await;
        assert_eq!(unknown["completion"]["values"], json!([]), "{cell:?}: {unknown}");
        let poet = json!({ "type": "ref/prompt", "name": "poet" });
        let unknown = complete(poet, "topic", "", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32602, "{cell:?}: {unknown}");
    }
}
