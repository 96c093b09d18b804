//! Pagination of lists, and completion of arguments.

use mcp_runtime::{
    prompt::{PromptCall, PromptDef},
    resource::{ListedPage, PageRequest},
};

use super::{Protocol, builder, capable, cells, connect, connect_to, no_requests, tool};
use crate::prelude::*;

#[tokio::test]
async fn lists_are_paginated_with_sealed_cursors() {
    for cell in cells("pagination") {
        let gate = Gate::default();
        let more = (0..4).fold(builder(&gate), |builder, n| {
            let prompt = PromptDef::builder(format!("late_{n}")).handler(|_: PromptCall| async { "" });
            builder.add(tool(&format!("late_{n}"))).add(prompt)
        });
        let server = more.lists(|lists| lists.page_size(3).ttl(Duration::from_secs(60))).build().unwrap();
        let mut client = connect_to(&server, cell, capable(), no_requests).await;
        let (tools, pages) = client.list("tools/list", "tools").await;
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
        let all = ["hold", "steps", "publish", "late_0", "late_1", "late_2", "late_3"];
        assert_eq!((names.as_slice(), pages), (all.as_slice(), 3), "{cell:?}");
        for (method, member, name, count) in [
            ("resources/list", "resources", "page", (1, 1)),
            ("resources/templates/list", "resourceTemplates", "item", (1, 1)),
            ("prompts/list", "prompts", "poem", (5, 2)),
        ] {
            let (entries, pages) = client.list(method, member).await;
            assert_eq!((&entries[0]["name"], (entries.len(), pages)), (&json!(name), count), "{cell:?}");
        }
        let first = client.request("tools/list", json!({})).await.reply;
        let second = client.request("tools/list", json!({ "cursor": first["nextCursor"] })).await.reply;
        for page in [&first, &second] {
            let hints = (page.get("ttlMs"), page.get("cacheScope"));
            let modern = (Some(&json!(60_000)), Some(&json!("public")));
            assert_eq!(hints, if cell.1 == Protocol::Modern { modern } else { (None, None) }, "{cell:?}");
        }
        let stray = json!({ "cursor": first["nextCursor"] });
        for (method, params) in [("tools/list", json!({ "cursor": "made up" })), ("prompts/list", stray)] {
            let refused = client.request(method, params).await.reply;
            assert_eq!(refused["error"]["code"], -32602, "{cell:?}: {refused}");
        }
    }
}

/// Some of the numbers from the cursor on, as many as there is room for
async fn numbers(page: &PageRequest, gate: &Gate) -> Result<ListedPage, std::num::ParseIntError> {
    tokio::task::yield_now().await;
    gate.enter().finish();
    let start: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
    let end = (start + page.limit).min(5);
    let uris = (start..end).map(|n| format!("number://{n}"));
    Ok(ListedPage::new(uris).next_cursor((end < 5).then(|| end.to_string())))
}

/// A number
#[mcp_resource(uri = "number://{n}", list = numbers)]
fn number(n: u32) -> String {
    n.to_string()
}

fn letters() -> impl Iterator<Item = &'static str> {
    ["letter://a", "letter://b", "letter://c", "letter://d"].into_iter()
}

/// A letter
#[mcp_resource(uri = "letter://{l}", list = blocking(letters))]
fn letter(l: String) -> String {
    l
}

#[tokio::test]
async fn instances_are_paginated_across_templates_and_mounts() {
    for cell in cells("pagination") {
        let gate = Gate::default();
        let mounted = || Server::builder("mounted", "1").resource::<number>().state(gate.clone());
        let server = builder(&gate)
            .resource::<number>()
            .resource::<letter>()
            .mount("more", mounted())
            .mount("most", mounted())
            .lists(|lists| lists.page_size(3));
        let mut client = connect_to(&server.build().unwrap(), cell, capable(), no_requests).await;
        let (entries, pages) = client.list("resources/list", "resources").await;
        let found: Vec<_> = entries.iter().map(|entry| entry["uri"].as_str().expect("a URI")).collect();
        let numbers = |prefix: &str| (0..5).map(|n| format!("number://{prefix}{n}")).collect::<Vec<_>>();
        let mut all = vec!["page://one".to_owned()];
        all.extend(numbers(""));
        all.extend(letters().map(str::to_owned));
        all.extend(["more/", "most/"].iter().flat_map(|prefix| numbers(prefix)));
        assert_eq!(found, all, "{cell:?}");
        // each function is called once for each page that it is on
        assert_eq!((pages, gate.entered()), (7, 6), "{cell:?}");
        for stray in ["3", "number://"] {
            let refused = client.request("resources/list", json!({ "cursor": stray })).await.reply;
            assert_eq!(refused["error"]["code"], -32602, "{cell:?}: {refused}");
        }
        for uri in found {
            let read = client.request("resources/read", json!({ "uri": uri })).await.reply;
            assert_eq!(read["contents"][0]["uri"], uri, "{cell:?}");
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
