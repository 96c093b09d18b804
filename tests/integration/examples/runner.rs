//! The `runner` example: its tools in memory.

#![cfg(unix)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use example::{Outputs, ToolFile};
use mcp_tests::programs::fifo;

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/runner/main.rs"]
mod example;

/// A folder of one test.
struct Folder(TestFolder);

impl Folder {
    fn new() -> Self {
        Self(TestFolder::default())
    }

    fn file(&self) -> PathBuf {
        self.0.join("tools.json")
    }

    /// Writes the file of the tools.
    fn describe(&self, tools: &Value) {
        // in one step, since the program reads it at any time
        let new = self.0.join("new.json");
        fs::write(&new, tools.to_string()).unwrap();
        fs::rename(new, self.file()).unwrap();
    }
}

/// A tool that runs a script, with `value` as its first argument.
fn script(name: &str, script: &str) -> Value {
    json!({
        "name": name,
        "description": "Runs a script.",
        "command": ["/bin/sh", "-c", script, "sh", "{value}"],
        "parameters": { "value": { "type": "string", "default": "nothing" } },
        "timeout_seconds": 20,
    })
}

/// A server with these tools, and what reloads them.
fn serve(folder: &Folder, tools: &Value) -> (Server, ToolFile, Arc<Outputs>) {
    folder.describe(tools);
    let (mut file, outputs) = (ToolFile::new(folder.file()), Arc::default());
    let server = example::server(&mut file, &outputs).unwrap().build().unwrap();
    (server, file, outputs)
}

fn with_tool(folder: &Folder, tool: &Value) -> TestServer {
    TestServer::of(&serve(folder, &json!([tool])).0)
}

#[tokio::test]
async fn a_program_gets_each_value_as_one_argument_and_its_failure_is_shown() {
    let folder = Folder::new();
    let missing =
        json!({ "name": "none", "description": "", "command": ["no-such-program-7"], "timeout_seconds": 5 });
    let show = script("show", r#"printf '%s|%s' "$#" "$1""#);
    let fail = script("fail", "echo no such thing >&2; exit 3");
    let server = TestServer::of(&serve(&folder, &json!([show, fail, missing])).0);
    server.call("show", json!({ "value": "a b; rm *" })).await.expect_text("1|a b; rm *");
    server.call("show", json!({ "value": 7 })).await.expect_failure("value");
    let reply = server.call("fail", json!({})).await;
    reply.expect_failure("no such thing");
    reply.expect_failure("3");
    server.call("none", json!({})).await.expect_failure("tool 'none' failed");
}

#[tokio::test]
async fn lines_are_progress() {
    let folder = Folder::new();
    let server = with_tool(&folder, &script("count", "echo one; sleep 0.3; echo two"));
    let reply = server.call("count", json!({})).await;
    let messages: Vec<_> = reply.notifications().iter().map(|one| one["params"]["message"].clone()).collect();
    assert_eq!(messages, ["one", "two"]);
}

#[tokio::test]
async fn a_long_output_is_linked_and_read_in_parts() {
    let folder = Folder::new();
    let server = with_tool(&folder, &script("seq", "seq 20000"));
    let reply = server.call("seq", json!({})).await;
    let content = reply.expect_ok().value()["content"].as_array().unwrap().clone();
    assert!(content[0]["text"].as_str().unwrap().ends_with("\n20000\n"));
    assert!(reply.text().len() < 5000, "{}", reply.text().len());
    assert_eq!((&content[1]["type"], &content[1]["uri"]), (&json!("resource_link"), &json!("output://1")));
    assert_eq!(server.list_resources().await[0]["uri"], "output://1");

    let whole = server.read("output://1").await.text();
    assert_eq!((whole.lines().count(), whole.len() as u64), (20000, content[1]["size"].as_u64().unwrap()));
    server.read("output://1?from=7&lines=2").await.expect_text("7\n8\n");
    server.read("output://2").await.expect_code(-32602);
}

#[tokio::test]
async fn an_output_without_end_is_cut() {
    let folder = Folder::new();
    let server = with_tool(&folder, &script("zeros", "head -c 6000000 /dev/zero | tr '\\0' 'x'"));
    let reply = server.call("zeros", json!({})).await;
    assert!(reply.expect_ok().text().contains("… and more"), "{reply}");
    let listed = server.list_resources().await;
    assert!(listed[0]["size"].as_u64().unwrap() < (4 << 20) + 100, "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_limit_kills_the_program_and_what_it_has_started() {
    let folder = Folder::new();
    let (fifo, lingering) = fifo::lingering(&folder.0);
    let mut tool = script("linger", lingering);
    tool["timeout_seconds"] = 1.into();
    let server = with_tool(&folder, &tool);
    let (reply, ended) = tokio::join!(server.call("linger", json!({ "value": fifo })), fifo::opened(&fifo));
    reply.expect_failure("1s");
    ended.await;
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing() {
    let folder = Folder::new();
    let (server, mut file, outputs) = serve(&folder, &json!([script("one", "echo 1")]));
    let (handle, client) = (server.handle(), TestServer::of(&server));
    let mut unknown = script("two", "echo 2");
    unknown["command"][4] = "{other}".into();
    let mut schema = script("two", "echo 2");
    schema["parameters"]["value"] = json!({ "type": "text" });
    for (tools, reason) in [
        (json!({}), "expected a sequence"),
        (json!([{ "name": "two" }]), "missing field `description`"),
        (json!([unknown]), "`{other}`, which is not one of its `parameters`"),
        (json!([schema]), "text"),
        (json!([{ "name": "two", "description": "", "command": [], "timeout_seconds": 1 }]), "is empty"),
    ] {
        folder.describe(&tools);
        let error = file.reload(&handle, &outputs).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        client.call("one", json!({})).await.expect_text("1\n");
    }
    folder.describe(&json!([script("two", "echo 2")]));
    file.reload(&handle, &outputs).unwrap();
    client.call("two", json!({})).await.expect_text("2\n");
    client.call("one", json!({})).await.expect_code(-32602);
}

#[tokio::test]
async fn the_sample_file_is_usable() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = folder.join("examples/runner/tools.json");
    let (mut file, outputs) = (ToolFile::new(file), Arc::default());
    let server = TestServer::new(example::server(&mut file, &outputs).unwrap()).unwrap();
    let arguments = json!({ "folder": folder.join("tests/integration/examples") });
    // `du` is on every machine, and `grep` is not
    let found = server.call("disk_usage", arguments).await.text();
    assert!(found.contains("runner.rs\n"), "{found}");
}
