//! The tools that are searched: words that were read once for each state of the items, as far as callers have seen them.

use std::sync::{Mutex, PoisonError};

use mcp_runtime::{config::ItemView, tool::Tools};
use mcp_runtime_schema::beginning;
use serde_json::Value;

use crate::{
    ranking::{Ranking, Visible, WordCounts},
    search::is_callable,
    words::words,
};

/// The words of a query that count.
const MAX_WORDS: usize = 32;
/// The bytes of a description that are read.
const MAX_DESCRIPTION: usize = 4096;

/// How much the name of an argument counts beside a word of the description.
const ARGUMENT: f32 = 0.25;

#[derive(Default)]
pub(crate) struct Catalogue(Mutex<Index>);

/// The words of the tools of one state of the items.
#[derive(Default)]
struct Index {
    generation: u64,
    /// By place, whether the tool there can be found; `None` if no caller has seen it yet.
    read: Vec<Option<bool>>,
    ranking: Ranking,
    /// By place, which tools the last caller sees.
    seen: Vec<bool>,
    /// What that decides; most callers see the same.
    visible: Visible,
}

/// What a query has found.
pub(crate) struct Found<'a> {
    /// The best, in order.
    pub(crate) tools: Vec<ItemView<'a>>,
    /// How many tools have one of the words.
    pub(crate) count: usize,
}

impl Catalogue {
    /// The tools of a caller that have words of the query.
    pub(crate) fn find<'a>(&self, tools: &'a Tools, query: &str, limit: usize) -> Found<'a> {
        let mut asked = Vec::new();
        words(query, |word| {
            if asked.len() < MAX_WORDS && !asked.contains(&word) {
                asked.push(word);
            }
        });
        let seen = tools.visible();
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if index.generation != tools.generation() {
            *index = Index { generation: tools.generation(), ..Index::default() };
        }
        if index.seen != seen {
            index.read(tools, seen);
        }
        let (best, count) = index.ranking.best(&asked, &index.visible, limit);
        drop(index);
        Found { tools: best.into_iter().filter_map(|place| tools.at(place)).collect(), count }
    }
}

impl Index {
    /// Reads the words of tools that are seen for the first time, and decides which of those that are seen can be found.
    fn read(&mut self, tools: &Tools, seen: Vec<bool>) {
        self.read.resize(seen.len(), None);
        let mut visible = seen.clone();
        for (place, (is_visible, read)) in visible.iter_mut().zip(&mut self.read).enumerate() {
            if *is_visible
                && read.is_none()
                && let Some(tool) = tools.at(place)
            {
                let is_found = is_callable(&tool);
                if is_found {
                    self.ranking.add(place, words_of(&tool));
                }
                *read = Some(is_found);
            }
            *is_visible &= *read == Some(true);
        }
        self.visible = self.ranking.count(visible);
        self.seen = seen;
    }
}

fn words_of(tool: &ItemView<'_>) -> WordCounts {
    let mut words = WordCounts::default();
    words.add_head(tool.name());
    words.add_head(tool.title().unwrap_or_default());
    tool.tags().iter().for_each(|tag| words.add_body(tag, 1.0));
    let description = tool.description().unwrap_or_default();
    words.add_body(beginning(description, MAX_DESCRIPTION), 1.0);
    let arguments = tool.input_schema().and_then(|schema| schema.get("properties")?.as_object());
    for name in arguments.into_iter().flat_map(serde_json::Map::<String, Value>::keys) {
        words.add_body(name, ARGUMENT);
    }
    words
}
