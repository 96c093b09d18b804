//! The loop's own listing of the tools of a process, by which their arguments are masked.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{known_tools::KnownTools, message};

/// Pages of a listing.
const MAX_PAGES: usize = 64;

/// A listing: calls of tools that are not known wait for it, for a time.
#[derive(Default)]
pub(super) struct Listing {
    is_begun: bool,
    /// The id of the request in flight, and its `_meta`.
    waiting: Option<(String, Value)>,
    pages: usize,
    /// Calls wait for it until then.
    until: Option<Instant>,
}

impl Listing {
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Until when calls wait for it.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Calls wait no longer.
    pub(super) fn give_up(&mut self) {
        self.until = None;
    }

    /// The first request, after which calls wait so long.
    pub(super) fn begin(&mut self, id: String, meta: Value, wait: Duration) -> Vec<u8> {
        self.is_begun = true;
        self.until = Some(Instant::now() + wait).filter(|_| !wait.is_zero());
        self.page(id, meta, None)
    }

    fn page(&mut self, id: String, meta: Value, cursor: Option<&Value>) -> Vec<u8> {
        let mut params = json!({});
        if meta.is_object() {
            params["_meta"] = meta.clone();
        }
        if let Some(cursor) = cursor {
            params["cursor"] = cursor.clone();
        }
        let request = message::request(&id, "tools/list", &params);
        self.pages += 1;
        self.waiting = Some((id, meta));
        request
    }

    /// Takes a page, if a response is one; with the request of the next one.
    pub(super) fn take(
        &mut self,
        id: &str,
        response: &Value,
        tools: &KnownTools,
        next_id: impl FnOnce() -> String,
    ) -> Option<Option<Vec<u8>>> {
        let (_, meta) = self.waiting.take_if(|(own, _)| own == id)?;
        let result = &response["result"];
        tools.learn(result);
        let cursor = result.get("nextCursor").filter(|_| self.pages < MAX_PAGES);
        let next = cursor.map(|cursor| self.page(next_id(), meta, Some(cursor)));
        if next.is_none() {
            self.until = None;
        }
        Some(next)
    }
}
