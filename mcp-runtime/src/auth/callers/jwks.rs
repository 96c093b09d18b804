//! The keys of an authorization server: found through its metadata, kept, and fetched again when they are old or a token
//! names a key that is not known yet.
//!
//! An attacker can name unknown keys, so there is a pause between two fetches. While the server cannot be reached, the
//! keys that are known serve on, for a limited time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    compact_jwt::{JsonWebKey, SigningAlgorithm, VerifyingKey},
    verifier::Denied,
};
use crate::{
    core::{
        observer::Observers,
        reason::Refusal,
        single_flight::{Flight, SingleFlight},
        sync::RwLock,
    },
    fetch::Fetcher,
};

/// Keys of one set, at most.
const MAX_KEYS: usize = 100;
/// Keys of one name that are tried, at most.
const MAX_NAMESAKES: usize = 4;

/// How long keys are used.
#[derive(Clone, Copy)]
pub(super) struct KeyTimes {
    /// After this they are fetched again.
    pub(super) max_age: Duration,
    /// After this without success they are not used any more.
    pub(super) max_outage: Duration,
    /// Between two fetches.
    pub(super) cooldown: Duration,
}

/// What is read of the metadata that an authorization server publishes.
#[derive(Clone, Deserialize)]
pub(super) struct IssuerMetadata {
    jwks_uri: Option<String>,
    pub(super) introspection_endpoint: Option<String>,
}

/// An authorization server, as far as a protected resource needs it.
pub(super) struct IssuerEndpoint {
    pub(super) issuer: String,
    pub(super) fetcher: Fetcher,
    /// Are told what it is asked.
    pub(super) observers: Observers,
}

impl IssuerEndpoint {
    /// A question to the server has been answered, or not.
    pub(super) fn observe(&self, question: &'static str, outcome: &'static str, started: Instant) {
        for observer in self.observers.iter() {
            observer.issuer_asked(&self.issuer, question, outcome, started.elapsed());
        }
    }

    /// The server's metadata, which must be of exactly this issuer.
    ///
    /// # Errors
    /// The server publishes none, or cannot be reached; for the log.
    pub(super) async fn metadata(&self) -> Result<IssuerMetadata, String> {
        self.fetcher.issuer_metadata(&self.issuer).await
    }
}

/// The keys of an authorization server.
pub(super) struct KeySource {
    endpoint: Arc<IssuerEndpoint>,
    /// Unset: the value in the metadata.
    jwks_uri: Option<String>,
    times: KeyTimes,
    state: RwLock<KeyState>,
    /// At most one fetch runs at a time; a client that disconnects does not end it.
    fetches: SingleFlight<()>,
}

#[derive(Default)]
struct KeyState {
    keys: Arc<[KnownKey]>,
    /// When these keys were fetched.
    fetched: Option<Instant>,
    /// When a fetch last began.
    attempted: Option<Instant>,
    /// Rises when keys change.
    generation: u64,
}

/// A key, with its name.
#[derive(Clone)]
struct KnownKey {
    kid: Option<String>,
    key: Arc<VerifyingKey>,
    /// The JSON of the set, to detect changes.
    source: Value,
}

impl KeySource {
    pub(super) fn new(endpoint: Arc<IssuerEndpoint>, jwks_uri: Option<String>, times: KeyTimes) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            jwks_uri,
            times,
            state: RwLock::default(),
            fetches: SingleFlight::default(),
        })
    }

    /// A number that rises when keys change, so that what was verified with them is examined again; `None` if no key may
    /// be used.
    pub(super) fn generation(self: &Arc<Self>) -> Option<u64> {
        self.read(Instant::now(), |state| state.generation)
    }

    /// Reads the keys, if they may be used. Once they are old, they are fetched again in the background.
    fn read<T>(self: &Arc<Self>, now: Instant, read: impl FnOnce(&KeyState) -> T) -> Option<T> {
        let state = self.state.read();
        let age = now.saturating_duration_since(state.fetched?);
        let output = (age <= self.times.max_outage).then(|| read(&state));
        drop(state);
        if age > self.times.max_age && self.may_fetch(now) {
            let _in_background = self.refresh();
        }
        output
    }

    /// The keys that a token names, if they are known: those of that name, which need not be one, as names are not unique
    /// while keys are replaced.
    ///
    /// # Errors
    /// No key has that name, or keys have never been fetched, or too long ago.
    pub(super) fn known(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: SigningAlgorithm,
        now: Instant,
    ) -> Result<Vec<Arc<VerifyingKey>>, Denied> {
        let keys = self.read(now, |state| {
            let suited = state.keys.iter().filter(|known| known.key.suits(algorithm));
            let named = suited.filter(|known| kid.is_none() || known.kid.as_deref() == kid);
            named.take(MAX_NAMESAKES).map(|known| known.key.clone()).collect::<Vec<_>>()
        });
        match keys {
            None => Err(Denied::unavailable("the keys of the authorization server cannot be fetched")),
            // without a name there must be no choice
            Some(keys) if keys.is_empty() || (kid.is_none() && keys.len() > 1) => {
                Err(Denied::token(Refusal::TokenUnknownKey, "the key of the token is not known").for_now())
            }
            Some(keys) => Ok(keys),
        }
    }

    /// Whether the keys may be fetched at this time.
    pub(super) fn may_fetch(&self, now: Instant) -> bool {
        let attempted = self.state.read().attempted;
        attempted.is_none_or(|attempted| now.saturating_duration_since(attempted) >= self.times.cooldown)
    }

    /// The keys that a token names, after another fetch, unless that was tried a moment ago.
    ///
    /// # Errors
    /// No key has that name, or the keys cannot be fetched.
    pub(super) async fn find_again(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: SigningAlgorithm,
    ) -> Result<Vec<Arc<VerifyingKey>>, Denied> {
        // the fetch does not panic
        let _fetched = self.refresh().outcome().await;
        self.known(kid, algorithm, Instant::now())
    }

    /// The fetch of the keys that is in progress, or another one.
    fn refresh(self: &Arc<Self>) -> Flight<()> {
        let source = self.clone();
        self.fetches.join(|| async move { source.fetch_unless_recent().await })
    }

    /// Fetches the keys, unless that was tried a moment ago.
    async fn fetch_unless_recent(&self) {
        let now = Instant::now();
        if !self.may_fetch(now) {
            return;
        }
        self.state.write().attempted = Some(now);
        let fetched = self.fetch().await;
        self.endpoint.observe("keys", if fetched.is_ok() { "ok" } else { "error" }, now);
        match fetched {
            Ok(keys) => {
                let mut state = self.state.write();
                let sources =
                    |keys: &[KnownKey]| keys.iter().map(|key| key.source.clone()).collect::<Vec<_>>();
                if sources(&state.keys) != sources(&keys) {
                    state.generation += 1;
                }
                state.keys = keys.into();
                state.fetched = Some(Instant::now());
            }
            Err(error) => {
                tracing::warn!(issuer = %self.endpoint.issuer, %error, "the keys of the authorization server cannot be fetched");
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<KnownKey>, String> {
        let url = match &self.jwks_uri {
            Some(url) => url.clone(),
            None => {
                let metadata = self.endpoint.metadata().await?;
                metadata.jwks_uri.ok_or("the metadata of the authorization server names no `jwks_uri`")?
            }
        };
        let set: JsonWebKeySet =
            self.endpoint.fetcher.get(&url).await.map_err(|error| format!("`{url}`: {error}"))?;
        let keys: Vec<KnownKey> = set.keys.into_iter().take(MAX_KEYS).filter_map(KnownKey::new).collect();
        if keys.is_empty() {
            Err(format!("`{url}` has no key that tokens can be verified with"))
        } else {
            Ok(keys)
        }
    }
}

#[derive(Deserialize)]
struct JsonWebKeySet {
    /// Sets may contain kinds of keys that are not known here.
    keys: Vec<Value>,
}

impl KnownKey {
    fn new(source: Value) -> Option<Self> {
        let jwk: JsonWebKey = serde_json::from_value(source.clone()).ok()?;
        Some(Self { key: Arc::new(VerifyingKey::from_jwk(&jwk)?), kid: jwk.kid, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::resolver::Resolver, fetch::Reach};

    fn source() -> Arc<KeySource> {
        let issuer = "http://127.0.0.1:1".to_owned();
        let endpoint = Arc::new(IssuerEndpoint {
            issuer,
            fetcher: Fetcher::new(Reach::Loopback, Resolver::system().into_function()),
            observers: Arc::new([]),
        });
        let times = KeyTimes {
            max_age: Duration::from_secs(600),
            max_outage: Duration::from_secs(3600),
            cooldown: Duration::from_secs(30),
        };
        KeySource::new(endpoint, None, times)
    }

    fn key(kid: Option<&str>) -> KnownKey {
        let mut jwk = serde_json::json!({
            "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        });
        if let Some(kid) = kid {
            jwk["kid"] = kid.into();
        }
        KnownKey::new(jwk).unwrap()
    }

    #[tokio::test]
    async fn keys_serve_through_an_outage_for_a_limited_time() {
        let source = source();
        let start = Instant::now();
        *source.state.write() = KeyState {
            keys: vec![key(Some("a")), key(Some("b"))].into(),
            fetched: Some(start),
            attempted: Some(start),
            generation: 1,
        };
        let at = |seconds: u64, kid| {
            let keys = source.known(kid, SigningAlgorithm::EdDSA, start + Duration::from_secs(seconds));
            keys.map(|keys| keys.len()).map_err(|denied| denied.cause)
        };
        assert_eq!(at(3600, Some("a")), Ok(1));
        assert_eq!(at(3600, Some("c")), Err(Refusal::TokenUnknownKey));
        assert_eq!(at(0, None), Err(Refusal::TokenUnknownKey), "there are two");
        assert_eq!(at(3601, Some("a")), Err(Refusal::AuthUnavailable));
        assert!(!source.may_fetch(start + Duration::from_secs(29)));
        assert!(source.may_fetch(start + Duration::from_secs(30)));
    }

    #[tokio::test]
    async fn a_token_that_names_no_key_is_verified_if_there_is_one_only() {
        let source = source();
        let keys = vec![key(None)].into();
        *source.state.write() = KeyState { keys, fetched: Some(Instant::now()), ..KeyState::default() };
        let found = |algorithm| source.known(None, algorithm, Instant::now()).is_ok();
        assert!(found(SigningAlgorithm::EdDSA));
        assert!(!found(SigningAlgorithm::ES256), "it is of another kind");
    }
}
