//! Lists of a server, page by page, with bounds for a server that does not end them.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Bounds of one list.
const MAX_PAGES: usize = 10_000;
const MAX_ENTRIES: usize = 100_000;

/// A list that servers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedKind {
    Tools,
    Resources,
    Templates,
    Prompts,
    #[cfg(all(feature = "client", feature = "skills"))]
    Skills,
}

impl ListedKind {
    #[cfg(feature = "cli")]
    pub(crate) const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
            #[cfg(all(feature = "client", feature = "skills"))]
            Self::Skills => "skills/list",
        }
    }

    /// The member of the result that has the entries.
    pub(crate) const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
            #[cfg(all(feature = "client", feature = "skills"))]
            Self::Skills => "skills",
        }
    }

    /// The capability, or the extension, of servers that have the list.
    #[cfg(any(feature = "cli", feature = "client"))]
    pub(crate) const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
            #[cfg(all(feature = "client", feature = "skills"))]
            Self::Skills => crate::protocol::SKILLS_EXTENSION,
        }
    }
}

#[derive(Deserialize)]
struct ListPage {
    #[serde(rename = "nextCursor")]
    next_cursor: Option<Value>,
    #[serde(rename = "ttlMs")]
    ttl_ms: Option<f64>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The pages of a list that have come so far.
#[derive(Debug)]
pub(crate) struct ListPages {
    kind: ListedKind,
    pub(crate) entries: Vec<Value>,
    cursor: Option<Value>,
    pages: usize,
    /// The shortest time that one of the pages may be kept.
    pub(crate) ttl: Option<Duration>,
}

impl ListPages {
    pub(crate) fn new(kind: ListedKind) -> Self {
        Self { kind, entries: Vec::new(), cursor: None, pages: 0, ttl: None }
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
    /// It is not a page, or the list has no end.
    pub(crate) fn take(&mut self, result: &str) -> Result<bool, String> {
        let method = self.kind.method();
        let mut page: ListPage =
            serde_json::from_str(result).map_err(|error| format!("the result of `{method}`: {error}"))?;
        let Some(Value::Array(mut entries)) = page.rest.remove(self.kind.member()) else {
            return Err(format!("the result of `{method}` has no `{}`", self.kind.member()));
        };
        self.entries.append(&mut entries);
        if let Some(millis) = page.ttl_ms {
            // at most a year, so that its end can be computed
            let ttl = Duration::from_millis(millis.clamp(0.0, 3.2e10) as u64);
            self.ttl = Some(self.ttl.map_or(ttl, |shortest| shortest.min(ttl)));
        }
        let Some(next) = page.next_cursor.filter(|next| !next.is_null()) else { return Ok(true) };
        if self.cursor.as_ref() == Some(&next) {
            return Err(format!("`{method}` repeats the cursor {next}"));
        }
        self.pages += 1;
        if self.entries.len() > MAX_ENTRIES || self.pages == MAX_PAGES {
            return Err(format!("`{method}` has more than {MAX_ENTRIES} entries or {MAX_PAGES} pages"));
        }
        self.cursor = Some(next);
        Ok(false)
    }
}
