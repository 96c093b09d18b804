//! The `notes` example.

use std::{path::PathBuf, sync::Arc};

use mcp_runtime::testing::TestServer;
use mcp_tests::support::TestFolder;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::programs::run;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/notes/main.rs"]
mod example;

/// A file for the database of one test, with what SQLite puts beside it.
struct File(TestFolder);

impl File {
    fn new() -> Self {
        Self(TestFolder::default())
    }

    fn path(&self) -> PathBuf {
        self.0.join("notes.sqlite")
    }

    fn server(&self) -> TestServer {
        TestServer::new(example::server().state(self.open())).unwrap()
    }

    fn open(&self) -> Arc<example::Database> {
        Arc::new(example::Database::open(self.path()).unwrap())
    }

    /// Breaks the database behind the server's back.
    fn lose_tables(&self) {
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch("DROP TABLE tags; DROP TABLE notes;").unwrap();
    }
}

async fn add(server: &TestServer, title: &str, text: &str, tags: &[&str]) {
    server.call("add_note", json!({ "title": title, "text": text, "tags": tags })).await.expect_ok();
}

async fn titles_with(server: &TestServer, tag: &str) -> Vec<String> {
    let notes: Vec<Value> = server.read(&format!("notes://tagged/{tag}")).await.json();
    notes.iter().map(|note| note["title"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn notes_are_kept_found_and_read() {
    let file = File::new();
    let server = file.server();
    add(&server, "Tea", "Sencha is empty", &["home", "shop"]).await;
    add(&server, "Roof", "A tile is loose", &["home"]).await;
    let found = server.call("find_notes", json!({ "words": "SENCHA" })).await;
    found.expect_json(&json!([{ "id": 1, "title": "Tea", "text": "Sencha is empty" }]));
    server.read("note://2").await.expect_text("# Roof\n\nA tile is loose\n");
    server.read("note://3").await.expect_code(-32602);
    assert_eq!(titles_with(&server, "home").await, ["Tea", "Roof"]);
    let tags = server.complete("notes://tagged/{tag}", "tag", "s").await;
    assert_eq!(tags.value()["completion"]["values"], json!(["shop"]));
}

#[tokio::test]
async fn what_a_model_can_act_on_is_public_and_a_failing_database_is_not() {
    let file = File::new();
    let server = file.server();
    add(&server, "Tea", "Sencha", &[]).await;
    let again = server.call("add_note", json!({ "title": "Tea", "text": "Assam" })).await;
    again.expect_failure("there is a note with the title `Tea`\nchoose another title");
    server.call("merge_notes", json!({ "from": 7, "into": 1 })).await.expect_failure("note 7 does not exist");

    file.lose_tables();
    let failed = server.call("find_notes", json!({ "words": "tea" })).await;
    failed.expect_failure("tool 'find_notes' failed");
    assert!(!failed.to_string().contains("no such table"), "{failed}");
    let failed = server.request("resources/list", json!({})).await;
    failed.expect_code(-32603);
    assert!(!failed.to_string().contains("no such table"), "{failed}");
}

#[tokio::test]
async fn a_transaction_that_fails_leaves_everything_as_it_was() {
    let file = File::new();
    let server = file.server();
    add(&server, "Tea", "Sencha", &["home"]).await;
    server.call("merge_notes", json!({ "from": 1, "into": 2 })).await.expect_failure("note 2 does not exist");
    server.read("note://1").await.expect_text("# Tea\n\nSencha\n");
    assert_eq!(titles_with(&server, "home").await, ["Tea"]);

    add(&server, "Drinks", "Water", &[]).await;
    server.call("merge_notes", json!({ "from": 1, "into": 2 })).await.expect_ok();
    server.read("note://2").await.expect_text("# Drinks\n\nWater\n\nSencha\n");
    server.read("note://1").await.expect_code(-32602);
    assert_eq!(titles_with(&server, "home").await, ["Drinks"]);
}

#[tokio::test]
async fn a_note_is_deleted_only_when_the_user_agrees() {
    let file = File::new();
    let server = file.server();
    add(&server, "Tea", "Sencha", &["home"]).await;
    server.call("delete_note", json!({ "id": 1 })).await.expect_code(-32021);

    let asks = json!({ "elicitation": {} });
    let answers = [
        (json!({ "action": "decline" }), "the user declined"),
        (json!({ "action": "accept", "content": { "value": false } }), "the user wants to keep the note"),
    ];
    for (answer, expected) in answers {
        let user = file.server().answering(asks.clone(), move |_, params| {
            assert_eq!(params["message"], "Delete the note `Tea`?");
            Ok(answer.clone())
        });
        user.call("delete_note", json!({ "id": 1 })).await.expect_failure(expected);
        server.read("note://1").await.expect_ok();
    }
    let user =
        file.server().answering(asks, |_, _| Ok(json!({ "action": "accept", "content": { "value": true } })));
    user.call("delete_note", json!({ "id": 1 })).await.expect_text("`Tea` is deleted");
    user.call("delete_note", json!({ "id": 1 })).await.expect_failure("note 1 does not exist");
    server.read("note://1").await.expect_code(-32602);
    assert_eq!(titles_with(&server, "home").await, [""; 0]);
}

#[test]
fn the_program_keeps_notes_between_runs() {
    let file = File::new();
    let path = file.path();
    let variables = [("NOTES_DB", path.as_os_str())];
    let tea = r#"{"title": "Tea", "text": "Sencha", "tags": ["home"]}"#;
    assert_eq!(run("notes", &["call", "add_note", tea], &variables).trim(), "1");
    assert!(run("notes", &["read", "note://1"], &variables).contains("Sencha"));
}

#[tokio::test]
async fn the_contract_is_the_one_in_the_lock() {
    let file = File::new();
    let settings: example::Settings = serde_json::from_value(json!({ "database": file.path() })).unwrap();
    let server = example::server().config::<example::Settings>().state(settings).state(file.open());
    let server = TestServer::new(server).unwrap();
    // what is in the database is not a part of it
    add(&server, "Tea", "Sencha", &[]).await;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/notes/mcp.lock.json");
    server.contract().check(path).await;
}
