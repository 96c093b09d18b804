//! Lists of a server, page by page, with bounds for a server that does not end them.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

/// Bounds of one list with all its pages.
#[derive(Clone, Copy)]
pub(crate) struct ListBounds {
    pub(crate) bytes: usize,
    pub(crate) entries: usize,
    pub(crate) pages: usize,
}

impl ListBounds {
    /// The pages of a server in this process.
    pub(crate) const IN_PROCESS: Self = Self { bytes: usize::MAX, entries: 100_000, pages: 10_000 };
}

/// Why a page was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageError {
    Invalid(String),
    /// The list has more than this many bytes.
    TooLarge(usize),
    TooMany {
        what: String,
        option: &'static str,
    },
}

/// A list that servers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListedKind {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
    /// `events/list`
    #[cfg(any(feature = "cli", feature = "client"))]
    Events,
    /// `skills/list`
    #[cfg(all(feature = "client", feature = "skills"))]
    Skills,
}

impl ListedKind {
    /// Those that the command line prints.
    #[cfg(feature = "cli")]
    pub const ALL: [Self; 5] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts, Self::Events];

    /// The method that lists them.
    #[must_use]
    pub const fn method(self) -> &'static str {
        self.names().0
    }

    /// The member of the result that has the entries.
    #[must_use]
    pub const fn member(self) -> &'static str {
        self.names().1
    }

    /// The capability, or the extension, of servers that have the list.
    #[cfg(any(feature = "cli", feature = "client"))]
    #[must_use]
    pub const fn capability(self) -> &'static str {
        self.names().2
    }

    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Tools => ("tools/list", "tools", "tools"),
            Self::Resources => ("resources/list", "resources", "resources"),
            Self::Templates => ("resources/templates/list", "resourceTemplates", "resources"),
            Self::Prompts => ("prompts/list", "prompts", "prompts"),
            #[cfg(any(feature = "cli", feature = "client"))]
            Self::Events => ("events/list", "events", "events"),
            #[cfg(all(feature = "client", feature = "skills"))]
            Self::Skills => ("skills/list", "skills", crate::core::protocol::SKILLS_EXTENSION),
        }
    }
}

/// The longest name of an entry that is left out, in characters.
const MAX_NAME: usize = 256;

/// The `name` of an entry that is left out, if that can be read, and why: a schema that is nested too deeply must not cost
/// the other entries.
fn dropped(entry: &RawValue, error: &serde_json::Error) -> (String, String) {
    #[derive(Default, Deserialize)]
    struct Named {
        #[serde(default)]
        name: String,
    }
    let named = serde_json::from_str::<Named>(entry.get()).unwrap_or_default();
    // without the place, which is counted from the beginning of the entry
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
    (named.name.chars().take(MAX_NAME).collect(), reason)
}

/// The pages of a list that have come so far.
pub(crate) struct ListPages {
    kind: ListedKind,
    bounds: ListBounds,
    pub(crate) entries: Vec<Value>,
    /// The names of entries that are left out, and why.
    pub(crate) dropped: Vec<(String, String)>,
    cursor: Option<Value>,
    /// The cursors of the pages so far: one that repeats leads to pages that have come already.
    seen: HashSet<String>,
    /// Bytes of all pages, as the server sent them.
    pub(crate) bytes: usize,
    /// The shortest time that one of the pages may be kept.
    pub(crate) ttl: Option<Duration>,
}

impl ListPages {
    pub(crate) fn new(kind: ListedKind, bounds: ListBounds) -> Self {
        Self {
            kind,
            bounds,
            entries: Vec::new(),
            dropped: Vec::new(),
            cursor: None,
            seen: HashSet::new(),
            bytes: 0,
            ttl: None,
        }
    }

    /// The params of the request for the next page.
    pub(crate) fn params(&self) -> Map<String, Value> {
        let mut params = Map::new();
        if let Some(cursor) = &self.cursor {
            params.insert("cursor".to_owned(), cursor.clone());
        }
        params
    }

    /// Takes a page: the result of a request. Whether it is the last one.
    ///
    /// # Errors
    /// It is not a page, or the list exceeds a bound.
    pub(crate) fn take(&mut self, result: &str) -> Result<bool, PageError> {
        let method = self.kind.method();
        self.bytes = self.bytes.saturating_add(result.len());
        if self.bytes > self.bounds.bytes {
            return Err(PageError::TooLarge(self.bounds.bytes));
        }
        let invalid = |error| PageError::Invalid(format!("the result of `{method}`: {error}"));
        let page: HashMap<String, &RawValue> = serde_json::from_str(result).map_err(invalid)?;
        let entries = page.get(self.kind.member()).map(|entries| serde_json::from_str(entries.get()));
        let Some(Ok(entries)): Option<Result<Vec<&RawValue>, _>> = entries else {
            let member = self.kind.member();
            return Err(PageError::Invalid(format!("the result of `{method}` has no `{member}`")));
        };
        let count = self.entries.len() + self.dropped.len() + entries.len();
        for entry in entries.into_iter().take(self.bounds.entries) {
            match serde_json::from_str(entry.get()) {
                Ok(value) => self.entries.push(value),
                Err(error) => self.dropped.push(dropped(entry, &error)),
            }
        }
        if count > self.bounds.entries {
            let what = format!("`{method}` has more than {} entries", self.bounds.entries);
            return Err(PageError::TooMany { what, option: "list_entries" });
        }
        let ttl_ms = page.get("ttlMs").map(|ttl| serde_json::from_str::<Option<f64>>(ttl.get()));
        if let Some(millis) = ttl_ms.transpose().map_err(invalid)?.flatten() {
            // at most a year, so that its end can be computed
            let ttl = Duration::from_millis(millis.clamp(0.0, 3.2e10) as u64);
            self.ttl = Some(self.ttl.map_or(ttl, |shortest| shortest.min(ttl)));
        }
        let next = page.get("nextCursor").map(|next| serde_json::from_str::<Value>(next.get()));
        let next = next.transpose().map_err(invalid)?;
        let Some(next) = next.filter(|next| !next.is_null()) else { return Ok(true) };
        if !self.seen.insert(next.to_string()) {
            let error = "its `nextCursor` repeats that of an earlier page, so the list has no end";
            return Err(PageError::Invalid(format!("the result of `{method}`: {error}")));
        }
        if self.seen.len() == self.bounds.pages {
            let what = format!("`{method}` has more than {} pages", self.bounds.pages);
            return Err(PageError::TooMany { what, option: "list_pages" });
        }
        self.cursor = Some(next);
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_that_repeats_ends_the_list_with_an_error_that_says_so() {
        for cursors in [&["1", "1"][..], &["1", "2", "1"]] {
            let mut pages = ListPages::new(ListedKind::Tools, ListBounds::IN_PROCESS);
            let (last, first) = cursors.split_last().unwrap();
            let page = |cursor: &str| format!(r#"{{"tools":[],"nextCursor":"{cursor}"}}"#);
            for cursor in first {
                assert_eq!(pages.take(&page(cursor)), Ok(false));
            }
            let Err(PageError::Invalid(error)) = pages.take(&page(last)) else { panic!("it goes on") };
            assert!(error.contains("`nextCursor` repeats"), "{error}");
        }
    }

    #[test]
    fn an_entry_that_is_nested_too_deeply_is_left_out_and_the_others_are_not() {
        let deep = format!("{}{{}}{}", "{\"properties\":".repeat(200), "}".repeat(200));
        let page = format!(
            r#"{{"tools":[{{"name":"a"}},{{"name":"deep","inputSchema":{deep}}},{{"name":"b"}},{{"name":"c","x":1e999}}]}}"#
        );
        let mut pages = ListPages::new(ListedKind::Tools, ListBounds::IN_PROCESS);
        assert_eq!(pages.take(&page), Ok(true));
        let names: Vec<_> = pages.entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b"]);
        let dropped = |name: &str, reason: &str| (name.to_owned(), reason.to_owned());
        assert_eq!(
            pages.dropped,
            [dropped("deep", "recursion limit exceeded"), dropped("c", "number out of range")]
        );
    }
}
