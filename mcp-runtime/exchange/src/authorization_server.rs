//! The authorization server: where its token endpoint is, how the program authenticates itself there, and what it
//! answers.

use std::time::Duration;

use mcp_runtime::config::Secret;
use mcp_runtime_fetch::{Fetcher, Reach, system_look_up};
use serde::Deserialize;
use tokio::sync::OnceCell;
use url::Url;

use crate::refusal::Refusal;

/// The fields of a form.
pub(crate) type Form = Vec<(&'static str, String)>;

/// A token, and for how long it is valid.
pub(crate) type Issued = Result<(Secret<String>, Duration), Refusal>;

/// The longest token that is kept and sent, in bytes.
const MAX_TOKEN: usize = 16 << 10;

/// What an authorization server publishes of itself
/// ([RFC 8414, section 2](https://www.rfc-editor.org/rfc/rfc8414#section-2)).
#[derive(Deserialize)]
struct Metadata {
    token_endpoint: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// A successful answer ([RFC 8693, section 2.2.1](https://www.rfc-editor.org/rfc/rfc8693#section-2.2.1)).
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: f64,
}

pub(crate) struct AuthorizationServer {
    /// The URL of the token endpoint, or of an issuer whose metadata names it.
    url: String,
    is_issuer: bool,
    client_id: String,
    secret: Secret<String>,
    /// The token endpoint, and whether it takes the secret in a header.
    endpoint: OnceCell<(Url, bool)>,
    fetcher: Fetcher,
}

impl AuthorizationServer {
    pub(crate) fn new(url: String, is_issuer: bool, client_id: String, secret: Secret<String>) -> Self {
        let is_local = Url::parse(&url).is_ok_and(|url| Reach::of(&url) == Reach::Loopback);
        let fetcher = Fetcher::new(if is_local { Reach::Loopback } else { Reach::Private }, system_look_up());
        Self { url, is_issuer, client_id, secret, endpoint: OnceCell::new(), fetcher }
    }

    /// Posts a form, and returns the token and for how long it is valid: not at all, as far as is known, if the server
    /// does not say it.
    ///
    /// # Errors
    /// The server refuses it, cannot be reached, or answers something else.
    pub(crate) async fn ask(&self, mut form: Form, by_post: bool) -> Issued {
        let (url, takes_basic) = self.endpoint.get_or_try_init(|| self.find_endpoint()).await?;
        let (id, secret) = (self.client_id.as_str(), self.secret.expose().as_str());
        let credentials = Some((id, secret)).filter(|_| *takes_basic && !by_post);
        if credentials.is_none() {
            form.extend([("client_id", id.to_owned()), ("client_secret", secret.to_owned())]);
        }
        let answer = self.fetcher.send_form(url.clone(), &form, credentials).await;
        let answer = answer.map_err(|error| Refusal::unavailable(format!("the token endpoint: {error}")))?;
        if !answer.status().is_success() {
            return Err(Refusal::of_answer(answer.status().as_u16(), answer.body()));
        }
        let wrong = || Refusal::configuration("the answer of the token endpoint has no bearer token");
        // the message of serde_json may quote the answer
        let answer: TokenResponse = serde_json::from_slice(answer.body()).map_err(|_| wrong())?;
        let (token, is_bearer) = (answer.access_token, answer.token_type.eq_ignore_ascii_case("bearer"));
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_bearer || !is_plain || !(1..=MAX_TOKEN).contains(&token.len()) {
            return Err(wrong());
        }
        Ok((Secret::new(token), Duration::try_from_secs_f64(answer.expires_in).unwrap_or_default()))
    }

    async fn find_endpoint(&self) -> Result<(Url, bool), Refusal> {
        // the error of the fetcher has the URL, which may have a password
        let why = "the URL of the authorization server is not `https:`, or has credentials";
        let checked = |url| self.fetcher.check_url(url).map_err(|_| Refusal::configuration(why));
        let base = checked(&self.url)?;
        if !self.is_issuer {
            return Ok((base, true));
        }
        let metadata = self.fetcher.issuer_metadata(&self.url).await;
        let Metadata { token_endpoint, token_endpoint_auth_methods_supported: methods } =
            metadata.map_err(Refusal::unavailable)?;
        let takes_basic = methods.is_none_or(|methods| methods.iter().any(|it| it == "client_secret_basic"));
        Ok((checked(&token_endpoint)?, takes_basic))
    }
}
