//! Lists of a server, page by page, with bounds for a server that does not end them.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value};

/// Bounds of one list with all its pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListBounds {
    pub(crate) bytes: usize,
    pub(crate) entries: usize,
    pub(crate) pages: usize,
}

impl ListBounds {
    /// Those of a server in this process.
    #[cfg(any(feature = "cli", feature = "testing", test))]
    pub(crate) const IN_PROCESS: Self = Self { bytes: usize::MAX, entries: 100_000, pages: 10_000 };
}

/// Why a page was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageError {
    Invalid(String),
    /// The list has more than so many bytes.
    TooLarge(usize),
    TooMany {
        what: String,
        option: &'static str,
    },
}

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
    bounds: ListBounds,
    pub(crate) entries: Vec<Value>,
    cursor: Option<Value>,
    /// Digests of the cursors so far: a list that leads back to one of them has no end.
    cursors: HashSet<u64>,
    hasher: RandomState,
    pages: usize,
    /// Of all pages, as the server sent them.
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
            cursor: None,
            cursors: HashSet::new(),
            hasher: RandomState::new(),
            pages: 0,
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
    /// It is not a page, or the list has no end or exceeds a bound.
    pub(crate) fn take(&mut self, result: &str) -> Result<bool, PageError> {
        let method = self.kind.method();
        self.bytes = self.bytes.saturating_add(result.len());
        if self.bytes > self.bounds.bytes {
            return Err(PageError::TooLarge(self.bounds.bytes));
        }
        let mut page: ListPage = serde_json::from_str(result)
            .map_err(|error| PageError::Invalid(format!("the result of `{method}`: {error}")))?;
        let Some(Value::Array(mut entries)) = page.rest.remove(self.kind.member()) else {
            let member = self.kind.member();
            return Err(PageError::Invalid(format!("the result of `{method}` has no `{member}`")));
        };
        self.entries.append(&mut entries);
        if self.entries.len() > self.bounds.entries {
            let what = format!("`{method}` has more than {} entries", self.bounds.entries);
            return Err(PageError::TooMany { what, option: "list_entries" });
        }
        if let Some(millis) = page.ttl_ms {
            // at most a year, so that its end can be computed
            let ttl = Duration::from_millis(millis.clamp(0.0, 3.2e10) as u64);
            self.ttl = Some(self.ttl.map_or(ttl, |shortest| shortest.min(ttl)));
        }
        let Some(next) = page.next_cursor.filter(|next| !next.is_null()) else { return Ok(true) };
        if !self.cursors.insert(self.hasher.hash_one(&next)) {
            return Err(PageError::Invalid(format!("`{method}` repeats a cursor: the list has no end")));
        }
        self.pages += 1;
        if self.pages == self.bounds.pages {
            let what = format!("`{method}` has more than {} pages", self.bounds.pages);
            return Err(PageError::TooMany { what, option: "list_pages" });
        }
        self.cursor = Some(next);
        Ok(false)
    }
}
