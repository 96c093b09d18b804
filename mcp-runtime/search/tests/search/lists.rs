//! Which tools are listed, and from when on.

use mcp_runtime::{
    Principal, Revision,
    prelude::*,
    testing::TestServer,
    tool::{TaskMode, ToolCall, ToolDef},
};
use mcp_runtime_search::Search;
use serde_json::json;

use crate::support::{found, listed, many, tool};

const OWN: [&str; 4] = ["search_tools", "call_read_only", "call_tool", "call_destructive"];

#[tokio::test]
async fn a_small_server_lists_its_tools_and_a_large_one_the_search() {
    for (count, searched) in [(59, false), (60, true)] {
        let server = TestServer::new(many(count).add(Search::bm25())).unwrap();
        let names = listed(&server).await;
        assert_eq!(names.len(), if searched { 4 } else { count }, "{names:?}");
        assert_eq!(names == OWN, searched);
    }
    let long = (0..10).fold(mcp_runtime::server!(), |builder, n| {
        builder.add(tool(&format!("tool_{n}"), &"A long description. ".repeat(200)))
    });
    assert_eq!(listed(&TestServer::new(long.add(Search::bm25())).unwrap()).await, OWN, "8,000 tokens");
    let off = TestServer::new(many(100).add(Search::bm25().enabled(false))).unwrap();
    assert_eq!(listed(&off).await.len(), 100);
    let on = TestServer::new(many(3).add(Search::bm25().enabled(true))).unwrap();
    assert_eq!(listed(&on).await, OWN);
    let at = TestServer::new(many(10).add(Search::bm25().at_least(10))).unwrap();
    assert_eq!(listed(&at).await, OWN);
    let tokens = TestServer::new(many(10).add(Search::bm25().at_least_tokens(100))).unwrap();
    assert_eq!(listed(&tokens).await, OWN);
}

#[tokio::test]
async fn the_list_is_the_same_for_clients_of_every_revision_and_for_every_caller() {
    let server = many(100).add(Search::bm25()).build().unwrap();
    let mut lists = vec![listed(&TestServer::of(&server)).await];
    lists.push(listed(&TestServer::of(&server).caller(Principal::new("test", "ada"))).await);
    lists.push(listed(&TestServer::of(&server).legacy(Revision::V2024_11_05)).await);
    lists.push(listed(&TestServer::of(&server).legacy(Revision::V2025_11_25)).await);
    assert!(lists.iter().all(|list| list == &OWN), "{lists:?}");
}

/// Is told a region
#[mcp_tool]
fn regional(#[mcp(header = "Region")] region: String) -> String {
    region
}

#[tokio::test]
async fn what_must_be_listed_is_and_what_is_not_is_called_by_its_name_too() {
    let job = ToolDef::builder("job").task(TaskMode::Required).handler(|_: ToolCall| async { "done" });
    let page = ToolDef::builder("page_only").meta(json!({ "ui": { "visibility": ["app"] } }));
    let page = page.handler(|_: ToolCall| async { "for the page" });
    let builder = many(100).tool::<regional>().add(job).add(page).add(tool("login", "Logs in."));
    let server = TestServer::new(builder.add(Search::bm25().always(["login"]))).unwrap();
    let names = listed(&server).await;
    assert_eq!(names[..4], ["regional", "job", "page_only", "login"]);
    assert_eq!(names[4..], OWN);
    server.call("part7_read", json!({})).await.expect_text("part7_read");
    for name in ["regional", "job", "page_only"] {
        assert!(found(&server, name).await.is_empty(), "{name}");
    }
    assert_eq!(found(&server, "login").await, ["login"]);
}

#[tokio::test]
async fn the_list_and_the_search_follow_what_is_added_and_removed_at_run_time() {
    let server = many(59).add(Search::bm25()).build().unwrap();
    let client = TestServer::of(&server);
    assert_eq!(found(&client, "purple").await, [""; 0]);
    server.handle().add(tool("purple_read", "Reads what is purple.")).unwrap();
    assert_eq!(listed(&client).await, OWN);
    assert_eq!(found(&client, "purple").await, ["purple_read"]);
    server.handle().remove_tool("purple_read").unwrap();
    assert_eq!(listed(&client).await.len(), 59);
    assert_eq!(found(&client, "purple").await, [""; 0]);
}

#[tokio::test]
async fn mounts_and_transforms_are_followed() {
    let inner = mcp_runtime::server!()
        .add(tool("forecast", "The weather."))
        .transform(|item| item.only("forecast", |tool| tool.describe("What the sky does tomorrow.")));
    let server = many(100).mount("europe", inner).add(Search::bm25());
    let server = TestServer::new(server).unwrap();
    assert_eq!(found(&server, "weather").await, [""; 0]);
    assert_eq!(found(&server, "tomorrow").await, ["europe_forecast"]);
    assert_eq!(found(&server, "europe").await, ["europe_forecast"]);
}

#[test]
fn a_search_is_one_of_the_outermost_server() {
    let inner = many(1).add(Search::bm25());
    let refused = mcp_runtime::server!().mount("inner", inner).build().unwrap_err().to_string();
    assert!(refused.contains("mounted as `inner` decides what lists show"), "{refused}");
    let twice = many(1).add(Search::bm25()).add(Search::bm25()).build().unwrap_err().to_string();
    assert!(twice.contains("two tools are `search_tools`"), "{twice}");
}
