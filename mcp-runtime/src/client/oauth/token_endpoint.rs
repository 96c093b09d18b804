//! Requests to the token endpoint of an authorization server: the client authenticates itself, and proves its key, once more
//! if the server asks for a nonce. A refusal is told apart from a server that does not decide, and repeats nothing that the
//! client has sent in secret.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::{
    access_token::header_value,
    kept_tokens::KeptClient,
    metadata::{fetch_error, shortened},
    now,
    proof_key::{DPOP, ProofKey},
    random,
};
use crate::{client::Error, core::es256::SigningKey, fetch::Fetcher};

/// The longest code of an error that is shown.
const MAX_ERROR_CODE: usize = 64;
/// The codes of servers that do not decide now.
const BUSY_CODES: [&str; 3] = ["server_error", "slow_down", "temporarily_unavailable"];
/// The parameters that no error repeats.
const SECRETS: [&str; 7] = [
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "refresh_token",
    "subject_token",
];

/// The parameters of a request.
pub(super) type Form = Vec<(&'static str, String)>;

/// The token endpoint of an authorization server, for one client.
pub(super) struct TokenEndpoint<'a> {
    fetcher: &'a Fetcher,
    url: &'a str,
    /// For whom assertions are meant.
    issuer: &'a str,
    client: &'a KeptClient,
    /// Signs assertions.
    key: Option<&'a SigningKey>,
    /// Whose tokens are bound to it.
    proof_key: Option<&'a ProofKey>,
}

/// The decision of the authorization server.
pub(super) enum Answer {
    Token(TokenReply),
    /// It gives none for this grant.
    Refused(Error),
}

impl Answer {
    pub(super) fn token(self) -> Result<TokenReply, Error> {
        match self {
            Self::Token(reply) => Ok(reply),
            Self::Refused(error) => Err(error),
        }
    }
}

/// An access token, and what the server has sent with it.
#[derive(Deserialize)]
pub(super) struct TokenReply {
    pub(super) access_token: String,
    token_type: Option<String>,
    pub(super) refresh_token: Option<String>,
    /// A number; of some servers, as text.
    expires_in: Option<Value>,
    /// Scopes with spaces between them; of some servers, an array.
    scope: Option<Value>,
}

impl TokenReply {
    pub(super) fn seconds(&self) -> Option<f64> {
        let seconds = self.expires_in.as_ref()?;
        seconds.as_f64().or_else(|| seconds.as_str()?.trim().parse().ok()).filter(|seconds| !seconds.is_nan())
    }

    pub(super) fn scopes(&self) -> impl Iterator<Item = &str> {
        let one = self.scope.iter().filter_map(Value::as_str);
        let several = self.scope.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
        one.chain(several).flat_map(str::split_whitespace)
    }

    /// Whether the token is bound to the key of the client.
    pub(super) fn is_bound(&self) -> bool {
        self.token_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("dpop"))
    }
}

impl<'a> TokenEndpoint<'a> {
    pub(super) fn new(fetcher: &'a Fetcher, url: &'a str, issuer: &'a str, client: &'a KeptClient) -> Self {
        Self { fetcher, url, issuer, client, key: None, proof_key: None }
    }

    /// With the private key of the client, and the key to which its tokens are bound.
    pub(super) fn with_keys(self, key: Option<&'a SigningKey>, proof_key: Option<&'a ProofKey>) -> Self {
        Self { key, proof_key, ..self }
    }

    /// Asks for an access token.
    ///
    /// # Errors
    /// The server did not decide, so the same grant may be used again; or the token is of a type that the client does not
    /// have.
    pub(super) async fn access_token(&self, form: Form) -> Result<Answer, Error> {
        let answer = self.token(form).await?;
        let is_known = |kind: &str| {
            kind.eq_ignore_ascii_case("bearer")
                || (self.proof_key.is_some() && kind.eq_ignore_ascii_case("dpop"))
        };
        // some servers leave the type out, and mean a bearer
        match &answer {
            Answer::Token(reply) if !reply.token_type.as_deref().is_none_or(is_known) => {
                Err(Error::invalid("the token is of a type that the client does not have"))
            }
            _ => Ok(answer),
        }
    }

    /// As [`access_token`](Self::access_token), for a token of any type.
    pub(super) async fn token(&self, mut form: Form) -> Result<Answer, Error> {
        let headers = self.authenticate(&mut form)?;
        let (status, text) = self.post(headers, &form).await?;
        let of_form = form.iter().filter(|(name, _)| SECRETS.contains(name)).map(|(_, value)| value.as_str());
        let secrets: Vec<&str> = of_form.chain(self.client.secret.as_deref()).collect();
        let code = error_code(&text);
        // a busy server says nothing of the grant
        let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
            || status.is_server_error()
            || code.as_deref().is_some_and(|code| BUSY_CODES.contains(&code));
        // some servers refuse with the status of a success
        if !is_busy && (status.is_client_error() || code.is_some()) {
            let refused = refusal("the authorization server gave no token", status, &text, &secrets);
            return Ok(Answer::Refused(refused));
        }
        if is_busy || !status.is_success() {
            let body = code.map(|_| reason_of(&text, &secrets)).unwrap_or_default();
            return Err(Error::Http { status: status.as_u16(), content_type: None, body });
        }
        let reply = serde_json::from_str(&text);
        reply.map(Answer::Token).map_err(|_| Error::invalid("the authorization server sent no token"))
    }

    /// Adds what authenticates the client to the form, or to the headers, which are returned.
    fn authenticate(&self, form: &mut Form) -> Result<HeaderMap, Error> {
        let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, form_type)]);
        let client = self.client;
        let mut add = |name, value: &str| form.push((name, value.to_owned()));
        match (client.method.as_str(), &client.secret) {
            ("client_secret_post", Some(secret)) => {
                add("client_id", &client.id);
                add("client_secret", secret);
            }
            ("private_key_jwt", _) => {
                add("client_id", &client.id);
                add("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
                add("client_assertion", &self.assertion()?);
            }
            // some servers give public clients a secret too, and refuse it later
            ("none", _) | (_, None) => add("client_id", &client.id),
            (_, Some(secret)) => {
                let credentials = STANDARD.encode(format!("{}:{}", encode(&client.id), encode(secret)));
                headers.insert(header::AUTHORIZATION, header_value(&format!("Basic {credentials}"))?);
            }
        }
        Ok(headers)
    }

    /// Posts a form: the status and the body of the response.
    async fn post(&self, mut headers: HeaderMap, form: &Form) -> Result<(StatusCode, String), Error> {
        let url = self.fetcher.check_url(self.url).map_err(fetch_error)?;
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut is_repeated = false;
        loop {
            let nonce = self.proof_key.and_then(|key| key.nonce(&url));
            if let Some(key) = self.proof_key {
                headers.insert(DPOP, header_value(&key.proof(&Method::POST, &url, None)?)?);
            }
            let reply = self.fetcher.send(Method::POST, url.clone(), headers.clone(), body.clone()).await;
            let reply = reply.map_err(fetch_error)?;
            let has_new_nonce =
                self.proof_key.is_some_and(|key| key.keep_nonce(&url, reply.headers(), nonce.as_deref()));
            if !reply.status().is_client_error()
                || !has_new_nonce
                || std::mem::replace(&mut is_repeated, true)
            {
                return Ok((reply.status(), String::from_utf8_lossy(reply.body()).into_owned()));
            }
        }
    }

    fn assertion(&self) -> Result<String, Error> {
        let Some(key) = self.key else {
            return Err(Error::invalid("the client has no private key"));
        };
        let issued = now();
        let claims = json!({
            "iss": self.client.id,
            "sub": self.client.id,
            "aud": self.issuer,
            "iat": issued,
            "exp": issued + 300,
            "jti": random()?,
        });
        let signed = key.sign(&json!({ "alg": "ES256", "typ": "JWT" }), &claims);
        signed.map_err(|_| Error::invalid("the assertion cannot be signed"))
    }
}

/// The error for a refusal of the authorization server.
pub(super) fn refusal(what: &str, status: StatusCode, body: &str, secrets: &[&str]) -> Error {
    Error::invalid(format!("{what} (HTTP {}): {}", status.as_u16(), reason_of(body, secrets)))
}

/// The `error` of a body and its `error_description`, without what the client has sent in secret, and without the other
/// members of the body.
fn reason_of(body: &str, secrets: &[&str]) -> String {
    let mut body: Map<String, Value> = serde_json::from_str(body).unwrap_or_default();
    let (code, description) = (body.remove("error"), body.remove("error_description"));
    let description = description.as_ref().and_then(Value::as_str).filter(|text| !text.is_empty());
    let code = code.as_ref().and_then(Value::as_str).map_or("no reason given", |code| reason(code, secrets));
    let mut text = code.to_owned();
    if let Some(description) = description {
        let of_body = body.values().filter_map(Value::as_str);
        let mut description = description.to_owned();
        // a text that is shorter is a word
        for secret in secrets.iter().copied().chain(of_body).filter(|secret| secret.len() >= 6) {
            description = description.replace(secret, "***").replace(&encode(secret), "***");
        }
        text = format!("{text}: {}", shortened(&description));
    }
    text
}

/// The `error` of a body.
fn error_code(body: &str) -> Option<String> {
    match serde_json::from_str::<Map<String, Value>>(body).ok()?.remove("error")? {
        Value::String(code) => Some(code),
        _ => None,
    }
}

/// The reason of a refusal, for errors and logs: what has the form of a code, and nothing else of what the authorization
/// server has sent, which may repeat a secret.
pub(super) fn reason<'a>(error: &'a str, secrets: &[&str]) -> &'a str {
    let is_code = error.len() <= MAX_ERROR_CODE && error.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let has_secret = secrets.iter().any(|secret| !secret.is_empty() && error.contains(secret));
    if is_code && !has_secret { error } else { "an error with an unregistered code" }
}

/// As forms are encoded.
fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
