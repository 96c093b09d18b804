//! The search over the operations of GitHub's API: how many of forty tasks it finds, by the words that a model writes and by
//! those of a person, beside a plain count of words; and what the list of tools costs. `tasks.txt` was written before the
//! ranking.

use std::fmt::Write as _;

use mcp_external_tests::skip;
use mcp_runtime::testing::TestServer;
use mcp_runtime_search::Search;
use serde_json::{Value, json};

use crate::openapi;

/// How many of forty the search must find by a model's words.
const ENOUGH: usize = 34;
/// How many tools one search answers with.
const LIMIT: usize = 5;

struct Task {
    tool: String,
    of_model: &'static str,
    of_person: &'static str,
}

fn tasks() -> Vec<Task> {
    let lines = include_str!("tasks.txt").lines().filter(|line| !line.starts_with('#'));
    let task = |line: &'static str| {
        let mut parts = line.split('|').map(str::trim);
        let mut part = || parts.next().expect("three parts");
        Task { tool: part().replace(['/', '-'], "_"), of_model: part(), of_person: part() }
    };
    lines.map(task).collect()
}

/// The names of the tools with the most words of a text, each counted once: what a program without a ranking does.
fn by_plain_words(tools: &[Value], query: &str) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let asked = split(query);
    let mut counted: Vec<(usize, &str)> = Vec::new();
    for tool in tools {
        let text = format!("{} {}", tool["name"], tool["description"]);
        let words = split(&text);
        let count = asked.iter().filter(|word| words.contains(word)).count();
        counted.push((count, tool["name"].as_str().expect("a name")));
    }
    counted.sort_by(|(a, _), (b, _)| b.cmp(a));
    counted.into_iter().take(LIMIT).map(|(_, name)| name.to_owned()).collect()
}

async fn by_search(server: &TestServer, query: &str) -> Vec<String> {
    let reply = server.call("search_tools", json!({ "query": query, "limit": LIMIT })).await;
    let text = reply.text();
    let blocks = text.split("\n\n").skip(1);
    blocks.filter_map(|block| Some(block.split_once('(')?.0.to_owned())).collect()
}

/// The size of a list of tools, in tokens of 4 bytes.
fn tokens(tools: &[Value]) -> usize {
    tools.iter().map(|tool| tool.to_string().len()).sum::<usize>() / 4
}

#[tokio::test(flavor = "multi_thread")]
async fn a_models_words_find_the_right_operation_among_five() {
    let folder = match openapi::descriptions() {
        Ok(folder) => folder,
        Err(missing) => return skip("the search over GitHub's operations", &missing),
    };
    let api = || openapi::parse(&folder, openapi::GITHUB).allow_all();
    let all = TestServer::new(mcp_runtime::server!().add(api())).expect("a server").list_tools().await;
    let server = TestServer::new(mcp_runtime::server!().add(api()).add(Search::bm25())).expect("a server");
    let listed = server.list_tools().await;
    let (mut of_model, mut of_person, mut plain_model, mut plain_person) = (0, 0, 0, 0);
    let (mut missed, mut answers) = (String::new(), 0);
    let tasks = tasks();
    assert_eq!(tasks.len(), 40);
    for Task { tool, of_model: model, of_person: person } in &tasks {
        assert!(all.iter().any(|known| known["name"] == **tool), "{tool}");
        let found = by_search(&server, model).await;
        match found.contains(tool) {
            true => of_model += 1,
            false => writeln!(missed, "{tool}: {model}: {found:?}").expect("a text"),
        }
        answers += server.call("search_tools", json!({ "query": model })).await.text().len();
        of_person += usize::from(by_search(&server, person).await.contains(tool));
        plain_model += usize::from(by_plain_words(&all, model).contains(tool));
        plain_person += usize::from(by_plain_words(&all, person).contains(tool));
    }
    let report = format!(
        "search: by a model's words {of_model}, by a person's {of_person}; plain words: {plain_model}, {plain_person}\n\
         list: {} tokens of {} tools, {} of {}; an answer: {} on average\n{missed}",
        tokens(&all),
        all.len(),
        tokens(&listed),
        listed.len(),
        answers / 4 / tasks.len(),
    );
    std::io::Write::write_all(&mut std::io::stdout(), report.as_bytes()).expect("to say it");
    assert!(of_model >= ENOUGH, "{report}");
}
