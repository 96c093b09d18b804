//! Contents of resources that the server allows to keep, for as long as it says or until it reports a change.

use std::{collections::HashMap, time::Duration};

use serde::Deserialize;
use tokio::time::Instant;

use super::inbox::Stale;
use crate::sync::Mutex;

/// Bounds of what is kept.
const MAX_KEPT: usize = 1000;
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Results of `resources/read` by URI, as raw JSON.
#[derive(Debug, Default)]
pub(super) struct ReadCache(Mutex<KeptReads>);

#[derive(Debug, Default)]
struct KeptReads {
    results: HashMap<String, KeptRead>,
    bytes: usize,
}

#[derive(Debug)]
struct KeptRead {
    json: String,
    until: Instant,
}

impl ReadCache {
    pub(super) fn get(&self, uri: &str) -> Option<String> {
        let mut kept = self.0.lock();
        let read = kept.results.get(uri)?;
        if Instant::now() < read.until {
            return Some(read.json.clone());
        }
        kept.remove(uri);
        None
    }

    /// Keeps a result that has a lifetime.
    pub(super) fn keep(&self, uri: &str, json: &str) {
        #[derive(Deserialize)]
        struct Lifetime {
            #[serde(rename = "ttlMs")]
            ttl_ms: Option<f64>,
        }
        let lifetime = serde_json::from_str::<Lifetime>(json).ok().and_then(|lifetime| lifetime.ttl_ms);
        let Some(millis) = lifetime.filter(|millis| *millis > 0.0) else { return };
        if json.len() > MAX_KEPT_BYTES / 4 {
            return;
        }
        let until = Instant::now() + Duration::from_millis(millis.min(3.2e10) as u64);
        let mut kept = self.0.lock();
        kept.remove(uri);
        while kept.results.len() >= MAX_KEPT || kept.bytes + json.len() > MAX_KEPT_BYTES {
            // what ends first
            let first = kept.results.iter().min_by_key(|(_, read)| read.until).map(|(uri, _)| uri.clone());
            let Some(first) = first else { return };
            kept.remove(&first);
        }
        kept.bytes += json.len();
        kept.results.insert(uri.to_owned(), KeptRead { json: json.to_owned(), until });
    }

    pub(super) fn invalidate(&self, stale: Stale<'_>) {
        match stale {
            Stale::Resource(uri) => self.0.lock().remove(uri),
            // a resource may be gone, or be another one
            Stale::Resources => self.clear(),
            Stale::Tools | Stale::Prompts => {}
        }
    }

    pub(super) fn clear(&self) {
        *self.0.lock() = KeptReads::default();
    }
}

impl KeptReads {
    fn remove(&mut self, uri: &str) {
        if let Some(read) = self.results.remove(uri) {
            self.bytes -= read.json.len();
        }
    }
}
