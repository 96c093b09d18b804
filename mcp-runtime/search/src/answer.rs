//! What `search_tools` answers: for each tool its description and its arguments in one line, both bounded.

use std::{collections::BTreeMap, fmt::Write as _};

use mcp_runtime::{config::ItemView, tool::Tools};
use mcp_runtime_schema::{beginning, signature};
use serde_json::json;

use crate::{catalogue::Found, class::Class, search::is_callable};

/// The bytes of a description, and those of arguments.
const MAX_TEXT: usize = 300;
const MAX_SIGNATURE: usize = 2_000;
/// The tags that are named where nothing was found.
const MAX_TAGS: usize = 40;

pub(crate) fn answer(tools: &Tools, found: &Found<'_>) -> String {
    if found.tools.is_empty() {
        return nothing(tools);
    }
    let mut text = format!("{} of {} tools with some of these words", found.tools.len(), found.count);
    for tool in &found.tools {
        let name = tool.name();
        // names in a schema are those of its author, who may not be the server's: an answer has the lines that are written here
        let arguments =
            signature(name, tool.input_schema().unwrap_or(&json!({}))).replace(char::is_control, " ");
        let _ = write!(text, "\n\n{}\n  by {}", cut(&arguments, MAX_SIGNATURE), Class::of(tool).caller());
        if let Some(description) = tool.description().or(tool.title()) {
            let _ = write!(text, ": {}", cut(&one_line(description), MAX_TEXT));
        }
    }
    text
}

/// The answer if no tool has one of the words.
fn nothing(tools: &Tools) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let seen = || tools.iter().map(|(_, tool)| tool).filter(is_callable);
    seen()
        .flat_map(|tool: ItemView<'_>| tool.tags().iter())
        .for_each(|tag| *counts.entry(tag).or_default() += 1);
    let what = if counts.is_empty() { "their names begin with" } else { "their tags are" };
    if counts.is_empty() {
        seen().for_each(|tool| {
            let name = tool.name();
            let begin = name.split(['_', '-', '.']).next().unwrap_or(name);
            *counts.entry(begin).or_default() += 1;
        });
    }
    let mut tags: Vec<_> = counts.into_iter().collect();
    tags.sort_by(|(_, a), (_, b)| b.cmp(a));
    tags.truncate(MAX_TAGS);
    let tags: Vec<_> = tags.into_iter().map(|(tag, count)| format!("{tag} ({count})")).collect();
    let total = seen().count();
    format!("no tool has one of these words\nthere are {total} tools, and {what}: {}", tags.join(", "))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str, bytes: usize) -> String {
    match beginning(text, bytes) {
        cut if cut.len() < text.len() => format!("{cut}…"),
        text => text.to_owned(),
    }
}
