//! A login: what the MCP server and its authorization server publish, the client as that server knows it, and the user's
//! visit, whose answer is checked before its code is used.

use std::{future::Future, pin::pin, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::{sync::watch, time::timeout};
use url::Url;

use super::{
    ClientSecret, FrontEnd, Grant, OAuth, TrustedIssuer,
    kept_tokens::{KeptClient, KeptTokens},
    metadata::{
        ResourceMetadata, ServerMetadata, fetch_error, offers, own_server_metadata, resource_metadata,
        server_metadata,
    },
    random,
    token_endpoint::{Form, TokenEndpoint, reason, refusal},
};
use crate::{
    client::{Error, link::bearer_challenge::Challenge, operation::Operation},
    fetch::{Fetcher, Reach},
};

/// The length of all scopes together, which are a part of URLs.
pub(super) const MAX_SCOPES: usize = 8 << 10;
/// The scope that asks for a refresh token.
const OFFLINE: &str = "offline_access";

/// What was found out about a server that refused a request.
pub(super) struct Found<'a> {
    oauth: &'a OAuth,
    fetcher: Fetcher,
    /// The id of the MCP server for authorization servers.
    resource_id: String,
    resource: Option<ResourceMetadata>,
    server: ServerMetadata,
}

impl<'a> Found<'a> {
    /// Fetches the metadata of the MCP server at `url`, which a challenge has `named`, and of its authorization server.
    ///
    /// # Errors
    /// One of them publishes none, or it is an authorization server that the client does not use.
    pub(super) async fn fetch(
        oauth: &'a OAuth,
        url: &Url,
        fetcher: Fetcher,
        named: Option<&str>,
    ) -> Result<Self, Error> {
        let resource = resource_metadata(&fetcher, url, named).await?;
        let is_named =
            |issuer| resource.as_ref().is_none_or(|found| found.authorization_servers.contains(issuer));
        let server = match (&oauth.issuer, &resource) {
            (TrustedIssuer::Only(issuer), _) if !is_named(issuer) => {
                return Err(Error::invalid(format!(
                    "the client uses the authorization server `{issuer}`, which the MCP server does not name"
                )));
            }
            (TrustedIssuer::Only(issuer), _) => server_metadata(&fetcher, issuer).await?,
            (_, None) => own_server_metadata(&fetcher, url).await?,
            (_, Some(resource)) => {
                let first = resource.authorization_servers.first();
                let first =
                    first.ok_or_else(|| Error::invalid("the server names no authorization server"))?;
                server_metadata(&fetcher, first).await?
            }
        };
        let resource_id = resource.as_ref().map_or_else(|| resource_of(url), |found| found.resource.clone());
        Ok(Self { oauth, fetcher, resource_id, resource, server })
    }

    pub(super) fn issuer(&self) -> &str {
        &self.server.issuer
    }

    pub(super) fn resource_id(&self) -> &str {
        &self.resource_id
    }

    pub(super) fn token_url(&self) -> &str {
        &self.server.token_endpoint
    }

    pub(super) fn token_endpoint<'f>(&'f self, client: &'f KeptClient) -> TokenEndpoint<'f> {
        TokenEndpoint::new(&self.fetcher, &self.server.token_endpoint, &self.server.issuer, client)
    }

    /// Whether tokens are bound to a key of the client.
    pub(super) fn binds_tokens(&self) -> bool {
        (self.oauth.binds_tokens
            || self.resource.as_ref().is_some_and(|found| found.dpop_bound_access_tokens_required))
            && offers(self.server.dpop_signing_alg_values_supported.as_deref(), "ES256")
    }

    /// The scopes to request: the challenge's and those granted before, else the ones that the server supports.
    pub(super) fn scopes(&self, granted: &[String], challenge: &Challenge) -> Result<Vec<String>, Error> {
        let mut scopes = granted.to_vec();
        let mut length = 0;
        let mut add = |more: &[String]| {
            for scope in more {
                if length <= MAX_SCOPES && !scopes.contains(scope) {
                    length = scopes.iter().map(|scope| scope.len() + 1).sum::<usize>() + scope.len();
                    scopes.push(scope.clone());
                }
            }
        };
        add(&self.oauth.scopes);
        if !challenge.scopes.is_empty() {
            add(&challenge.scopes);
        } else if self.oauth.scopes.is_empty() {
            add(self
                .resource
                .as_ref()
                .and_then(|found| found.scopes_supported.as_deref())
                .unwrap_or_default());
        }
        if matches!(self.oauth.grant, Grant::AuthorizationCode(_))
            && offers(self.server.scopes_supported.as_deref(), OFFLINE)
        {
            add(&[OFFLINE.to_owned()]);
        }
        if length > MAX_SCOPES {
            return Err(Error::invalid(format!(
                "the server asks for scopes of more than {MAX_SCOPES} bytes\nname those that you need with `.scopes(..)`"
            )));
        }
        Ok(scopes)
    }

    /// The client as this authorization server knows it.
    pub(super) async fn client(&self, kept: &KeptTokens) -> Result<KeptClient, Error> {
        if let Some(registered) = &self.oauth.registered {
            let (secret, method) = match &registered.secret {
                ClientSecret::None => (None, "none"),
                ClientSecret::Key(_) => (None, "private_key_jwt"),
                ClientSecret::Secret(secret) => (Some(secret.as_str()), self.secret_method()),
            };
            return Ok(KeptClient::new(&registered.id, secret, method));
        }
        let has_documents = self.server.client_id_metadata_document_supported;
        if let Some(url) = self.oauth.metadata_url.as_ref().filter(|_| has_documents) {
            return Ok(KeptClient::new(url, None, "none"));
        }
        let known = kept.client.as_ref().filter(|_| kept.issuer == self.server.issuer);
        if let Some(client) = known.filter(|client| client.accepts(&self.oauth.redirect_uri)) {
            return Ok(client.clone());
        }
        self.register().await
    }

    /// Dynamic registration, which the protocol has deprecated and many servers need.
    async fn register(&self) -> Result<KeptClient, Error> {
        #[derive(Deserialize)]
        struct RegistrationReply {
            client_id: String,
            client_secret: Option<String>,
            token_endpoint_auth_method: Option<String>,
        }
        let Some(endpoint) = &self.server.registration_endpoint else {
            return Err(Error::invalid(format!(
                "the authorization server `{}` does not register clients\ngive the client's id with `registered`",
                self.server.issuer
            )));
        };
        let methods = self.server.token_endpoint_auth_methods_supported.as_deref();
        let is_public = methods.is_none_or(<[_]>::is_empty) || offers(methods, "none");
        let method = if is_public { "none" } else { self.secret_method() };
        let body = json!({
            "client_name": self.oauth.name,
            "redirect_uris": [self.oauth.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": application_type(&self.oauth.redirect_uri),
        });
        let url = self.fetcher.check_url(endpoint).map_err(fetch_error)?;
        let headers =
            HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let reply = self.fetcher.send(Method::POST, url, headers, body.to_string()).await;
        let reply = reply.map_err(fetch_error)?;
        let status = reply.status();
        let text = String::from_utf8_lossy(reply.body()).into_owned();
        if !status.is_success() {
            return Err(refusal("the client is not registered", status, &text, &[]));
        }
        let registered: RegistrationReply = serde_json::from_str(&text)
            .map_err(|_| Error::invalid("the reply to the registration has no `client_id`"))?;
        let method = registered.token_endpoint_auth_method.unwrap_or_else(|| {
            if registered.client_secret.is_some() { self.secret_method() } else { "none" }.to_owned()
        });
        Ok(KeptClient {
            id: registered.client_id,
            secret: registered.client_secret,
            method,
            untried_redirect: Some(self.oauth.redirect_uri.clone()),
        })
    }

    /// How a client with a secret authenticates itself.
    fn secret_method(&self) -> &'static str {
        let methods = self.server.token_endpoint_auth_methods_supported.as_deref();
        if offers(methods, "client_secret_post") && !offers(methods, "client_secret_basic") {
            "client_secret_post"
        } else {
            "client_secret_basic"
        }
    }

    /// Sends the user to the authorization server; returns the grant.
    pub(super) async fn authorization_code(
        &self,
        front_end: &FrontEnd,
        user: &UserClock,
        client: &KeptClient,
        scopes: &[String],
    ) -> Result<Form, Error> {
        let has_s256 = offers(self.server.code_challenge_methods_supported.as_deref(), "S256");
        if !self.server.is_assumed && !has_s256 {
            return Err(Error::invalid(format!(
                "the authorization server `{}` does not offer PKCE with S256",
                self.server.issuer
            )));
        }
        let verifier = format!("{}{}", random()?, random()?);
        let state = random()?;
        let mut url = self.fetcher.check_url(&self.server.authorization_endpoint).map_err(fetch_error)?;
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", &self.oauth.redirect_uri)
                .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier)))
                .append_pair("code_challenge_method", "S256")
                .append_pair("state", &state)
                .append_pair("resource", &self.resource_id);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
        }
        #[cfg(feature = "client-browser")]
        if self.oauth.opens_browser {
            super::browser::open_in_background(url.clone());
        }
        let limit = self.oauth.login_timeout;
        let answer = match front_end {
            FrontEnd::User(visit) => user.wait(limit, visit(url.into())).await,
            FrontEnd::None => self.fetch_redirect(url).await,
            FrontEnd::Loopback(listener) => user.wait(limit, listener.visit(&url, &state)).await,
        };
        let answer =
            answer.map_err(|message| Error::Handler { method: "authorization".to_owned(), message })?;
        Ok(vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", self.code_of(&answer, &state)?),
            ("redirect_uri", self.oauth.redirect_uri.clone()),
            ("code_verifier", verifier),
        ])
    }

    /// Visits a URL without a user: the authorization server redirects at once.
    async fn fetch_redirect(&self, url: Url) -> Result<String, String> {
        let reply = self.fetcher.send(Method::GET, url, HeaderMap::new(), "").await;
        let reply = reply.map_err(|error| error.to_string())?;
        let location = reply.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        location.map(str::to_owned).ok_or_else(|| "the authorization server did not redirect".to_owned())
    }

    /// The code in the URL to which the user was redirected.
    ///
    /// # Errors
    /// The answer is of another request or another server, or a refusal.
    fn code_of(&self, answer: &str, state: &str) -> Result<String, Error> {
        let answer: Url =
            answer.parse().map_err(|_| Error::invalid("the user was not redirected to a URL"))?;
        let parameter = |name: &str| {
            answer.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        if parameter("state").as_deref() != Some(state) {
            return Err(Error::invalid("the answer of the authorization server is of another request"));
        }
        match parameter("iss") {
            Some(issuer) if issuer == self.server.issuer => {}
            None if !self.server.authorization_response_iss_parameter_supported => {}
            // not even its error is shown
            _ => return Err(Error::invalid("the answer is not of the authorization server that was asked")),
        }
        if let Some(error) = parameter("error") {
            return Err(Error::invalid(format!("the authorization server refused: {}", reason(&error, &[]))));
        }
        parameter("code").ok_or_else(|| Error::invalid("the authorization server sent no code"))
    }
}

/// The id of a server that publishes none: its URL, without what is not a part of such ids.
fn resource_of(server: &Url) -> String {
    let mut resource = server.clone();
    // fails for URLs without a host, which have neither
    let _without_host = (resource.set_username(""), resource.set_password(None));
    resource.set_fragment(None);
    resource.into()
}

/// The kind of a client with this redirect, for its registration.
fn application_type(redirect_uri: &str) -> &'static str {
    let is_web = redirect_uri
        .parse()
        .is_ok_and(|uri: Url| uri.scheme() == "https" && Reach::of(&uri) != Reach::Loopback);
    if is_web { "web" } else { "native" }
}

/// Whether a user is about to log in, for which the time limits of calls stand still.
#[derive(Default)]
pub(super) struct UserClock(watch::Sender<bool>);

impl UserClock {
    /// The output of `future`; the clock of the operation that waits for it stands still while the user logs in, for
    /// whichever call that is.
    pub(super) async fn pause<F: Future>(&self, operation: Option<&Operation>, future: F) -> F::Output {
        let Some(operation) = operation else { return future.await };
        let mut user_acts = self.0.subscribe();
        let mut future = pin!(future);
        loop {
            let acts = *user_acts.borrow_and_update();
            let _paused = acts.then(|| operation.pause());
            tokio::select! {
                biased;
                output = &mut future => return output,
                Ok(()) = user_acts.changed() => {}
            }
        }
    }

    /// Gives the user the time for a login.
    async fn wait(
        &self,
        limit: Duration,
        login: impl Future<Output = Result<String, String>>,
    ) -> Result<String, String> {
        struct UserActs<'a>(&'a watch::Sender<bool>);
        impl Drop for UserActs<'_> {
            fn drop(&mut self) {
                self.0.send_replace(false);
            }
        }
        self.0.send_replace(true);
        let _acts = UserActs(&self.0);
        let late = |_| Err("the user did not answer in time".to_owned());
        timeout(limit, login).await.unwrap_or_else(late)
    }
}
