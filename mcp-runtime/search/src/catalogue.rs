//! The tools that are searched: words that were read once for each state of the items, as far as callers have seen them.

use std::sync::{Mutex, PoisonError};

use mcp_runtime::{config::ItemView, tool::Tools};
use mcp_runtime_schema::beginning;
use serde_json::Value;

use crate::{
    ranking::{Ranking, WordCounts},
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
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if index.generation != tools.generation() {
            *index = Index { generation: tools.generation(), ..Index::default() };
        }
        // in the order of their places
        let seen: Vec<(usize, ItemView<'a>)> = tools.iter().collect();
        let mut visible = Vec::new();
        for (place, tool) in &seen {
            visible.resize(*place, false);
            visible.push(index.reads(*place, tool));
        }
        let (best, count) = index.ranking.best(&asked, &visible, limit);
        drop(index);
        let view = |place: usize| {
            let at = seen.binary_search_by_key(&place, |(place, _)| *place).ok()?;
            seen.get(at).map(|(_, tool)| *tool)
        };
        Found { tools: best.into_iter().filter_map(view).collect(), count }
    }
}

impl Index {
    /// Whether the tool at a place can be found, whose words are read when a caller first sees it.
    fn reads(&mut self, place: usize, tool: &ItemView<'_>) -> bool {
        if self.read.len() <= place {
            self.read.resize(place + 1, None);
        }
        if let Some(Some(known)) = self.read.get(place) {
            return *known;
        }
        let is_found = is_callable(tool);
        if is_found {
            self.ranking.add(place, words_of(tool));
        }
        if let Some(read) = self.read.get_mut(place) {
            *read = Some(is_found);
        }
        is_found
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
