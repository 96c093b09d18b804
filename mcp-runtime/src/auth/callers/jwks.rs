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
        protocol::issuer_metadata_urls,
        reason::Refusal,
        single_flight::{Flight, SingleFlight},
        sync::RwLock,
    },
    fetch::{FetchError, Fetcher},
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

/// The metadata that an authorization server publishes: RFC 8414, or OpenID Connect Discovery.
#[derive(Clone, Deserialize)]
pub(super) struct IssuerMetadata {
    issuer: String,
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
        let mut last = String::new();
        for url in issuer_metadata_urls(&self.issuer) {
            match self.fetcher.get::<IssuerMetadata>(&url).await {
                Ok(metadata) if metadata.issuer == self.issuer => return Ok(metadata),
                Ok(_) => return Err(format!("the metadata at `{url}` is of another issuer")),
                Err(error @ FetchError::Status(_)) => last = format!("`{url}`: {error}"),
                Err(error) => return Err(format!("`{url}`: {error}")),
            }
        }
        Err(format!("`{}` publishes no metadata: {last}", self.issuer))
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

/// The result of looking up the key that a token names.
enum Lookup {
    Found {
        /// Those of that name, which need not be one: names are not unique while keys are replaced.
        keys: Vec<Arc<VerifyingKey>>,
        /// They should be fetched again.
        is_old: bool,
    },
    /// The keys that are known do not include it.
    Unknown,
    /// Keys have never been fetched, or too long ago.
    NoKeys,
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
    /// be used. The keys are fetched again in the background once they are old: the caller need not look up any key.
    pub(super) fn generation(self: &Arc<Self>) -> Option<u64> {
        let now = Instant::now();
        let (age, generation) = {
            let state = self.state.read();
            (now.saturating_duration_since(state.fetched?), state.generation)
        };
        if age > self.times.max_age {
            self.refresh_in_background(now);
        }
        (age <= self.times.max_outage).then_some(generation)
    }

    fn refresh_in_background(self: &Arc<Self>, now: Instant) {
        if self.may_fetch(now) {
            let _in_background = self.refresh();
        }
    }

    fn look_up(&self, kid: Option<&str>, algorithm: SigningAlgorithm, now: Instant) -> Lookup {
        let state = self.state.read();
        let age = state.fetched.map(|fetched| now.saturating_duration_since(fetched));
        let Some(age) = age.filter(|age| *age <= self.times.max_outage) else { return Lookup::NoKeys };
        let suited = state.keys.iter().filter(|known| known.key.suits(algorithm));
        let named = suited.filter(|known| kid.is_none() || known.kid.as_deref() == kid);
        let keys: Vec<_> = named.take(MAX_NAMESAKES).map(|known| known.key.clone()).collect();
        match (keys.len(), kid) {
            // without a name there must be no choice
            (0, _) | (2.., None) => Lookup::Unknown,
            _ => Lookup::Found { keys, is_old: age > self.times.max_age },
        }
    }

    /// The keys that a token names, if they are known; they are fetched again in the background once they are old.
    pub(super) fn known(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: SigningAlgorithm,
    ) -> Option<Vec<Arc<VerifyingKey>>> {
        let now = Instant::now();
        let Lookup::Found { keys, is_old } = self.look_up(kid, algorithm, now) else { return None };
        if is_old {
            self.refresh_in_background(now);
        }
        Some(keys)
    }

    /// Whether the keys may be fetched now.
    pub(super) fn may_refresh(&self) -> bool {
        self.may_fetch(Instant::now())
    }

    fn may_fetch(&self, now: Instant) -> bool {
        let attempted = self.state.read().attempted;
        attempted.is_none_or(|attempted| now.saturating_duration_since(attempted) >= self.times.cooldown)
    }

    /// The keys that a token names; fetches them if they are not known.
    ///
    /// # Errors
    /// No key has that name, or the keys cannot be fetched.
    pub(super) async fn find(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: SigningAlgorithm,
    ) -> Result<Vec<Arc<VerifyingKey>>, Denied> {
        if let Some(keys) = self.known(kid, algorithm) {
            return Ok(keys);
        }
        self.find_again(kid, algorithm).await
    }

    /// The same after another fetch, unless that was tried a moment ago.
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
        match self.look_up(kid, algorithm, Instant::now()) {
            Lookup::Found { keys, .. } => Ok(keys),
            Lookup::Unknown => {
                Err(Denied::token(Refusal::TokenUnknownKey, "the key of the token is not known").for_now())
            }
            Lookup::NoKeys => {
                Err(Denied::unavailable("the keys of the authorization server cannot be fetched"))
            }
        }
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

    #[test]
    fn metadata_is_looked_for_where_clients_look_for_it() {
        assert_eq!(
            issuer_metadata_urls("https://id.example.com/tenant"),
            [
                "https://id.example.com/.well-known/oauth-authorization-server/tenant",
                "https://id.example.com/.well-known/openid-configuration/tenant",
                "https://id.example.com/tenant/.well-known/openid-configuration",
            ]
        );
        assert_eq!(issuer_metadata_urls("https://id.example.com/").len(), 2);
        assert_eq!(
            issuer_metadata_urls("https://id.example.com")[0],
            issuer_metadata_urls("https://id.example.com/")[0]
        );
    }

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

    #[test]
    fn keys_serve_through_an_outage_for_a_limited_time() {
        let source = source();
        let start = Instant::now();
        *source.state.write() = KeyState {
            keys: vec![key(Some("a")), key(Some("b"))].into(),
            fetched: Some(start),
            attempted: Some(start),
            generation: 1,
        };
        let at = |seconds: u64, kid| {
            source.look_up(kid, SigningAlgorithm::EdDSA, start + Duration::from_secs(seconds))
        };
        assert!(matches!(at(600, Some("a")), Lookup::Found { is_old: false, .. }));
        assert!(matches!(at(601, Some("a")), Lookup::Found { is_old: true, .. }));
        assert!(matches!(at(3600, Some("c")), Lookup::Unknown));
        assert!(matches!(at(0, None), Lookup::Unknown), "there are two");
        assert!(matches!(at(3601, Some("a")), Lookup::NoKeys));
        assert!(!source.may_fetch(start + Duration::from_secs(29)));
        assert!(source.may_fetch(start + Duration::from_secs(30)));
    }

    #[test]
    fn a_token_that_names_no_key_is_verified_if_there_is_one_only() {
        let source = source();
        let keys = vec![key(None)].into();
        *source.state.write() = KeyState { keys, fetched: Some(Instant::now()), ..KeyState::default() };
        let found = |algorithm| source.look_up(None, algorithm, Instant::now());
        assert!(matches!(found(SigningAlgorithm::EdDSA), Lookup::Found { .. }));
        assert!(matches!(found(SigningAlgorithm::ES256), Lookup::Unknown), "it is of another kind");
    }
}
