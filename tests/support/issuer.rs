//! An authorization server for tests: its metadata and keys, tokens that it signs, and introspection. It can be out of
//! order, and its keys can be changed.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Json, Router,
    extract::Form,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::serve_router;

/// A key for ES256.
#[derive(Clone)]
pub struct TestKey {
    /// Its name.
    pub kid: String,
    pair: Arc<EcdsaKeyPair>,
}

impl TestKey {
    /// A new key.
    pub fn new(kid: &str) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("a key");
        Self { kid: kid.to_owned(), pair: Arc::new(pair) }
    }

    fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The public key, as JSON.
    pub fn jwk(&self) -> Value {
        let (x, y) = self.public()[1..].split_at(32);
        json!({ "kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y) })
    }

    /// The thumbprint of the public key.
    pub fn thumbprint(&self) -> String {
        let jwk = self.jwk();
        let text = format!(r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#, jwk["x"], jwk["y"]);
        URL_SAFE_NO_PAD.encode(Sha256::digest(text))
    }

    /// Signs these claims, under any header.
    pub fn sign_with(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// Signs a header and claims as they are written.
    pub fn sign_text(&self, header: &str, claims: &str) -> String {
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).expect("a signature");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Signs these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(&json!({ "alg": "ES256", "typ": "at+jwt", "kid": self.kid }), claims)
    }

    /// Takes the bytes of the public key for a secret, and signs with that: an attack on careless verifiers.
    pub fn sign_as_secret(&self, claims: &Value) -> String {
        let text = unsigned(&json!({ "alg": "HS256", "typ": "at+jwt", "kid": self.kid }), claims);
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, self.public()), text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// A proof of possession for a request with this token.
    pub fn proof(&self, method: &str, url: &str, token: &str, jti: &str) -> String {
        self.proof_with(method, url, token, json!({ "jti": jti }))
    }

    /// The same with these claims besides.
    pub fn proof_with(&self, method: &str, url: &str, token: &str, mut claims: Value) -> String {
        let header = json!({ "alg": "ES256", "typ": "dpop+jwt", "jwk": self.jwk() });
        let ath = URL_SAFE_NO_PAD.encode(Sha256::digest(token));
        let request = json!({ "htm": method, "htu": url, "iat": unix_now(), "ath": ath });
        claims.as_object_mut().expect("an object").extend(request.as_object().expect("an object").clone());
        self.sign_with(&header, &claims)
    }
}

/// A token without its signature.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// Seconds since 1970.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

#[derive(Default)]
struct IssuerState {
    keys: Mutex<Vec<TestKey>>,
    is_down: AtomicBool,
    key_requests: AtomicUsize,
    introspections: AtomicUsize,
    /// What is said about opaque tokens.
    tokens: Mutex<HashMap<String, Value>>,
}

/// A running authorization server, for as long as the test's runtime lives.
#[derive(Clone)]
pub struct Issuer {
    /// Its URL.
    pub url: String,
    state: Arc<IssuerState>,
}

impl Issuer {
    /// Starts one with a key.
    pub async fn start() -> Self {
        let state = Arc::new(IssuerState::default());
        state.keys.lock().unwrap().push(TestKey::new("first"));
        let (keys, introspected) = (state.clone(), state.clone());
        let metadata = |headers: HeaderMap| async move {
            let issuer = format!("http://{}", headers["host"].to_str().unwrap());
            Json(json!({
                "issuer": issuer,
                "jwks_uri": format!("{issuer}/keys"),
                "introspection_endpoint": format!("{issuer}/introspect"),
            }))
        };
        let app = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/keys", get(move || async move { keys.published() }))
            .route(
                "/introspect",
                post(move |headers: HeaderMap, Form(form): Form<HashMap<String, String>>| async move {
                    introspected.introspect(&headers, &form)
                }),
            );
        let address = serve_router(app).await;
        Self { url: format!("http://{address}"), state }
    }

    /// The newest key.
    pub fn key(&self) -> TestKey {
        self.state.keys.lock().unwrap().last().expect("a key").clone()
    }

    /// Replaces all keys.
    pub fn rotate(&self, kid: &str) {
        *self.state.keys.lock().unwrap() = vec![TestKey::new(kid)];
    }

    /// Publishes one more key, of any name.
    pub fn add_key(&self, key: TestKey) {
        self.state.keys.lock().unwrap().push(key);
    }

    /// Answers everything with an error from now on, or no longer.
    pub fn set_down(&self, is_down: bool) {
        self.state.is_down.store(is_down, Ordering::SeqCst);
    }

    /// How often the keys were fetched.
    pub fn key_requests(&self) -> usize {
        self.state.key_requests.load(Ordering::SeqCst)
    }

    /// How often a token was asked about.
    pub fn introspections(&self) -> usize {
        self.state.introspections.load(Ordering::SeqCst)
    }

    /// Sets what is said about an opaque token.
    pub fn set_token(&self, token: &str, claims: Value) {
        self.state.tokens.lock().unwrap().insert(token.to_owned(), claims);
    }

    /// The claims of a good token.
    pub fn claims(&self, subject: &str, resource: &str, scope: &str) -> Value {
        let now = unix_now();
        json!({
            "iss": self.url, "sub": subject, "aud": resource, "client_id": "test", "scope": scope,
            "iat": now, "exp": now + 600, "tenant": "acme",
        })
    }

    /// A good token.
    pub fn token(&self, subject: &str, resource: &str, scope: &str) -> String {
        self.key().sign(&self.claims(subject, resource, scope))
    }
}

type Answer = Result<Json<Value>, StatusCode>;

impl IssuerState {
    fn published(&self) -> Answer {
        self.key_requests.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) {
            return Err(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let key = |key: &TestKey| {
            let mut jwk = key.jwk();
            jwk["kid"] = key.kid.clone().into();
            jwk["use"] = "sig".into();
            jwk
        };
        let mut keys: Vec<Value> = self.keys.lock().unwrap().iter().map(key).collect();
        // a kind that no one knows
        keys.push(json!({ "kty": "quantum", "kid": "q" }));
        Ok(Json(json!({ "keys": keys })))
    }

    fn introspect(&self, headers: &HeaderMap, form: &HashMap<String, String>) -> Answer {
        self.introspections.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) {
            return Err(StatusCode::INTERNAL_SERVER_ERROR);
        }
        // `mcp` and `s&cret`, form-encoded before base64
        let credentials = headers.get("authorization").and_then(|value| value.to_str().ok());
        if credentials != Some("Basic bWNwOnMlMjZjcmV0") {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let tokens = self.tokens.lock().unwrap();
        let claims = form.get("token").and_then(|token| tokens.get(token)).cloned();
        Ok(Json(claims.unwrap_or_else(|| json!({ "active": false }))))
    }
}
