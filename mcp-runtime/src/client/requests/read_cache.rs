//! Contents of resources that the server allows to keep: for as long as it says, until it reports a change, and for the
//! caller that received them. Readers of one URI at the same time share one request.
//!
//! See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{lists::require, rounds::CompleteReply};
use crate::{
    client::{
        Error,
        connect::shared_client::{CallOptions, SharedClient, params},
        large_text::parse_text,
        link::ServerLink,
        receive::inbox::Stale,
    },
    core::{recent_map::RecentMap, sync::Mutex},
};

/// The longest time that a result is kept, so that its end can be computed: about a year.
const LONGEST_TTL: Duration = Duration::from_millis(32_000_000_000);
/// Headers that differ from request to request, and say nothing about the caller.
const TRACE_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("baggage"),
];

/// How much is kept.
#[derive(Clone, Copy)]
pub(in crate::client) struct ReadCacheBounds {
    pub(in crate::client) entries: usize,
    pub(in crate::client) bytes: usize,
}

impl Default for ReadCacheBounds {
    fn default() -> Self {
        Self { entries: 1000, bytes: 64 << 20 }
    }
}

/// For whom a result was made: a digest of what the client sends about its caller.
pub(super) type Caller = [u8; 32];

#[derive(Clone, PartialEq, Eq, Hash)]
struct ReadKey {
    /// `None` for results that the server calls public.
    principal: Option<Caller>,
    uri: String,
}

/// Where a result came from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum ReadFrom {
    Cache,
    /// From the request of another reader, which was in progress already.
    OtherReader,
    Server,
}

/// Results of `resources/read`, as raw JSON, and the requests for them that are in progress.
pub(in crate::client) struct ReadCache {
    bounds: ReadCacheBounds,
    state: Mutex<ReadState>,
}

struct ReadState {
    results: RecentMap<ReadKey, KeptRead>,
    flights: HashMap<ReadKey, Arc<ReadFlight>>,
}

struct KeptRead {
    json: Arc<str>,
    received: Instant,
    /// `None` if the server did not say.
    ttl: Option<Duration>,
}

/// The size that counts against the budget. URIs count too, because a server may choose them, by links.
fn size_of(json: &str, uri: &str) -> usize {
    json.len() + uri.len()
}

/// A request in progress: the reader that has the lock sends it, the others wait for the lock and find the result.
#[derive(Default)]
struct ReadFlight(tokio::sync::Mutex<Option<Result<Arc<str>, Error>>>);

/// A reader's place in a flight. The last one to leave it without a result removes the flight.
struct FlightSeat<'a> {
    cache: &'a ReadCache,
    key: ReadKey,
    flight: Arc<ReadFlight>,
}

impl Drop for FlightSeat<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        // the map's and this one
        if state.is_current(&self.key, &self.flight) && Arc::strong_count(&self.flight) <= 2 {
            state.flights.remove(&self.key);
        }
    }
}

/// The server's hints.
#[derive(Clone, Copy)]
struct ReadHints {
    /// `None` if the server did not say.
    ttl: Option<Duration>,
    is_public: bool,
}

impl ReadHints {
    fn parse(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct WireHints<'a> {
            #[serde(rename = "ttlMs")]
            ttl_ms: Option<f64>,
            #[serde(rename = "cacheScope", borrow)]
            scope: Option<Cow<'a, str>>,
        }
        let hints: WireHints<'_> = serde_json::from_str(json).ok()?;
        let ttl = hints.ttl_ms.map(|millis| Duration::from_millis(millis.max(0.0) as u64).min(LONGEST_TTL));
        Some(Self { ttl, is_public: hints.scope.as_deref() == Some("public") })
    }
}

impl ReadCache {
    pub(in crate::client) fn new(bounds: ReadCacheBounds) -> Self {
        let size = |key: &ReadKey, read: &KeptRead| size_of(&read.json, &key.uri);
        // the largest results may exceed what the map has, each by a quarter of the budget
        let results = RecentMap::with_bytes(bounds.entries, bounds.bytes / 2, size);
        Self { bounds, state: Mutex::new(ReadState { results, flights: HashMap::new() }) }
    }

    /// The entry for this caller, or for all callers; `fallback` is the lifetime of entries that have none themselves.
    fn get(&self, principal: Caller, uri: &str, fallback: Option<Duration>) -> Option<Arc<str>> {
        let mut state = self.state.lock();
        for principal in [None, Some(principal)] {
            let key = ReadKey { principal, uri: uri.to_owned() };
            let Some(read) = state.results.get(&key) else { continue };
            // without a lifetime it is kept for those who have a fallback
            let Some(ttl) = read.ttl.or(fallback) else { continue };
            if read.received.elapsed() < ttl {
                return Some(read.json.clone());
            }
            state.results.retain(|other| *other != key);
        }
        None
    }

    /// The read of a URI that is in progress, or a new one if there is none or it must be `new`.
    fn join(&self, principal: Caller, uri: &str, new: bool) -> FlightSeat<'_> {
        let key = ReadKey { principal: Some(principal), uri: uri.to_owned() };
        let mut state = self.state.lock();
        if new {
            state.flights.remove(&key);
        }
        let flight = state.flights.entry(key.clone()).or_default().clone();
        FlightSeat { cache: self, key, flight }
    }

    /// Ends a flight, and keeps its result if the server allows and nothing was invalidated in between.
    fn land(
        &self,
        seat: &FlightSeat<'_>,
        json: &Arc<str>,
        hints: Option<ReadHints>,
        received: Instant,
        fallback: Option<Duration>,
    ) {
        let mut state = self.state.lock();
        if !state.is_current(&seat.key, &seat.flight) {
            return;
        }
        state.flights.remove(&seat.key);
        let Some(ReadHints { ttl, is_public }) = hints else { return };
        let is_kept = ttl.or(fallback).is_some_and(|ttl| !ttl.is_zero());
        if !is_kept || !self.has_room_for(size_of(json, &seat.key.uri)) {
            return;
        }
        let principal = seat.key.principal.filter(|_| !is_public);
        let key = ReadKey { principal, uri: seat.key.uri.clone() };
        drop(state.results.trim());
        state.results.insert(key, KeptRead { json: json.clone(), received, ttl });
    }

    /// Whether a result of that size may be kept: one that would displace most of the others is not worth it.
    fn has_room_for(&self, size: usize) -> bool {
        self.bounds.entries > 1 && size <= self.bounds.bytes / 4
    }

    /// Forgets what changed. Requests in progress may have an old answer: it is not kept, and later readers send their
    /// own.
    pub(in crate::client) fn invalidate(&self, stale: Stale<'_>) {
        match stale {
            Stale::Resource(uri) => {
                let mut state = self.state.lock();
                state.flights.retain(|key, _| key.uri != uri);
                state.results.retain(|key| key.uri != uri);
            }
            // a resource may be gone, or be another one
            Stale::Resources => self.clear(),
            Stale::Tools | Stale::Prompts | Stale::Events => {}
        }
    }

    pub(in crate::client) fn clear(&self) {
        let mut state = self.state.lock();
        state.results.retain(|_| false);
        state.flights.clear();
    }
}

impl ReadState {
    fn is_current(&self, key: &ReadKey, flight: &Arc<ReadFlight>) -> bool {
        self.flights.get(key).is_some_and(|current| Arc::ptr_eq(current, flight))
    }
}

impl SharedClient {
    /// Reads a resource: what is kept, unless the options have `refresh`, or else from the server. `fallback` is how long a result is kept
    /// if the server says nothing about it; without it, such results are not kept.
    pub(in crate::client) async fn read(
        &self,
        uri: &str,
        fallback: Option<Duration>,
        options: &CallOptions,
    ) -> Result<(Arc<str>, ReadFrom), Error> {
        require(&*self.connection()?, "resources")?;
        // a result may depend on the request's own `_meta`
        if !options.meta.is_empty() {
            let (json, _) = self.read_from_server(uri, options).await?;
            return Ok((json, ReadFrom::Server));
        }
        let principal = self.caller();
        if !options.refresh
            && let Some(json) = self.reads.get(principal, uri, fallback)
        {
            return Ok((json, ReadFrom::Cache));
        }
        // progress of another reader's request would not be reported
        let seat = self.reads.join(principal, uri, options.refresh || options.progress.is_some());
        let mut landed = seat.flight.0.lock().await;
        if let Some(result) = &*landed {
            return Ok((result.clone()?, ReadFrom::OtherReader));
        }
        let result = self.read_from_server(uri, options).await;
        let received = Instant::now();
        let hints = match &result {
            Ok((json, false)) if self.reads.has_room_for(size_of(json, uri)) => {
                parse_text(json.clone(), |json| Ok(ReadHints::parse(json))).await?
            }
            _ => None,
        };
        match &result {
            // contents that depend on the user's answers are not the resource's
            Ok((_, true)) => {}
            Ok((json, false)) => {
                *landed = Some(Ok(json.clone()));
                // a caller that changed in between may be the one that the result is for
                if self.caller() == principal {
                    self.reads.land(&seat, json, hints, received, fallback);
                }
            }
            // other readers have limits of their own
            Err(Error::Timeout { .. } | Error::Cancelled) => {}
            Err(error) => *landed = Some(Err(error.clone())),
        }
        drop(landed);
        Ok((result?.0, ReadFrom::Server))
    }

    async fn read_from_server(&self, uri: &str, options: &CallOptions) -> Result<(Arc<str>, bool), Error> {
        let members = params(json!({ "uri": uri }));
        let read = self.request("resources/read", members, options).await;
        let CompleteReply { json, has_repeated, .. } = read.map_err(|error| error.of_resource(uri))?;
        Ok((json.into(), has_repeated))
    }

    /// The caller, as far as the server can tell callers apart: by the headers that the program sends, and by the user who
    /// has authorized the client, here or in another process that shares its tokens.
    pub(super) fn caller(&self) -> Caller {
        let users = match self.connection().as_deref().map(|connection| &*connection.link) {
            Ok(ServerLink::Http(link)) => link.users(),
            _ => 0,
        };
        let mut headers = HeaderMap::new();
        match &self.options.hook {
            Some(hook) => hook(&mut headers),
            None if users == 0 => return Caller::default(),
            None => {}
        }
        let mut pairs: Vec<_> = headers
            .iter()
            .filter(|(name, _)| !TRACE_HEADERS.contains(name))
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        pairs.sort_unstable();
        let mut digest = Sha256::new();
        digest.update(users.to_le_bytes());
        for (name, value) in pairs {
            for part in [name.as_bytes(), value] {
                digest.update((part.len() as u64).to_le_bytes());
                digest.update(part);
            }
        }
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Caller = [1; 32];
    const BEN: Caller = [2; 32];
    const HOUR: Option<Duration> = Some(Duration::from_secs(3600));

    fn cache(entries: usize, bytes: usize) -> ReadCache {
        ReadCache::new(ReadCacheBounds { entries, bytes })
    }

    fn keep(cache: &ReadCache, principal: Caller, uri: &str, json: &str) {
        let seat = cache.join(principal, uri, false);
        cache.land(&seat, &json.into(), ReadHints::parse(json), Instant::now(), None);
    }

    #[test]
    fn what_is_in_use_stays_within_the_budgets() {
        let of = |length: usize| format!(r#"{{"ttlMs":60000,"x":"{}"}}"#, "x".repeat(length - 23));
        for (entries, bytes) in [(6, 1 << 20), (1000, 1020)] {
            let cache = cache(entries, bytes);
            let kept = || {
                let state = cache.state.lock();
                let sizes: Vec<_> = state.results.iter().map(|(_, read)| read.json.len()).collect();
                (sizes.len(), sizes.into_iter().sum::<usize>())
            };
            keep(&cache, ADA, "used", &of(200));
            for number in 0..20 {
                keep(&cache, ADA, &number.to_string(), &of(200));
                assert!(cache.get(ADA, "used", None).is_some(), "after {number}");
                assert!(kept().0 <= entries && kept().1 <= bytes, "{:?}", kept());
            }
            assert!(cache.get(ADA, "0", None).is_none());
            assert!(cache.get(ADA, "19", None).is_some());
        }
        let cache = cache(1000, 1020);
        keep(&cache, ADA, "large", &of(300));
        assert!(cache.get(ADA, "large", None).is_none());
    }

    #[test]
    fn private_results_are_kept_for_their_caller_and_public_ones_for_all() {
        let cache = cache(10, 1 << 20);
        keep(&cache, ADA, "private", r#"{"ttlMs":60000,"cacheScope":"private"}"#);
        keep(&cache, ADA, "silent", r#"{"ttlMs":60000}"#);
        keep(&cache, ADA, "public", r#"{"ttlMs":60000,"cacheScope":"public"}"#);
        assert!(["private", "silent", "public"].iter().all(|uri| cache.get(ADA, uri, None).is_some()));
        let others = ["private", "silent", "public"].map(|uri| cache.get(BEN, uri, None).is_some());
        assert_eq!(others, [false, false, true]);
    }

    #[test]
    fn a_result_without_a_lifetime_is_kept_only_for_those_who_have_a_fallback() {
        let cache = cache(10, 1 << 20);
        let land = |uri: &str, json: &str, fallback| {
            let seat = cache.join(ADA, uri, false);
            cache.land(&seat, &json.into(), ReadHints::parse(json), Instant::now(), fallback);
        };
        land("a", "{}", None);
        assert!(cache.get(ADA, "a", HOUR).is_none());
        land("b", "{}", HOUR);
        assert!(cache.get(ADA, "b", None).is_none() && cache.get(ADA, "b", HOUR).is_some());
        land("c", r#"{"ttlMs":0}"#, HOUR);
        assert!(cache.get(ADA, "c", HOUR).is_none(), "the server says that it is stale");
    }

    #[test]
    fn what_changes_while_it_is_read_is_not_kept() {
        let cache = cache(10, 1 << 20);
        for stale in [Stale::Resource("a"), Stale::Resources] {
            let seat = cache.join(ADA, "a", false);
            cache.invalidate(stale);
            assert!(
                !Arc::ptr_eq(&seat.flight, &cache.join(ADA, "a", false).flight),
                "a new reader asks again"
            );
            let json = r#"{"ttlMs":60000}"#;
            cache.land(&seat, &json.into(), ReadHints::parse(json), Instant::now(), None);
            assert!(cache.get(ADA, "a", None).is_none());
        }
    }

    #[test]
    fn a_flight_without_readers_is_forgotten() {
        let cache = cache(10, 1 << 20);
        let (first, second) = (cache.join(ADA, "a", false), cache.join(ADA, "a", false));
        assert!(Arc::ptr_eq(&first.flight, &second.flight));
        drop(first);
        assert_eq!(cache.state.lock().flights.len(), 1);
        drop(second);
        assert_eq!(cache.state.lock().flights.len(), 0);
    }
}
