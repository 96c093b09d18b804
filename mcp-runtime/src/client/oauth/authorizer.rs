//! Gets tokens, renews them and gets others when the server asks for more. Concurrent calls wait for the token in
//! progress, also across processes that share a store.
//!
//! [`AuthorizedRequest`](super::AuthorizedRequest) asks for a token before each request ([`Authorizer::token`], which renews
//! one that is about to end), and for another one after `401`, or `403` with `insufficient_scope` ([`Authorizer::challenged`]).
//! Grants are chosen here, and requested from a [`TokenEndpoint`].

use std::{
    future::Future,
    io,
    net::IpAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Method, header};
use rustls::ClientConfig;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::{Mutex, OwnedMutexGuard, watch},
    time::timeout,
};
use url::Url;

use super::{
    ClientSecret, FrontEnd, Grant, IdentityProvider, OAuth, TokenStore, TrustedIssuer,
    access_token::AccessToken,
    kept_tokens::{KeptClient, KeptTokens},
    metadata::{
        ResourceMetadata, ServerMetadata, fetch_error, offers, own_server_metadata, resource_metadata,
        server_metadata,
    },
    now,
    proof_key::ProofKey,
    random,
    token_endpoint::{Form, TokenEndpoint, TokenReply, reason, refusal},
};
use crate::{
    client::{
        Error,
        link::{
            bearer_challenge::Challenge,
            http_link::{Login, network},
        },
        operation::Operation,
    },
    core::{blocking, es256::SigningKey},
    fetch::{Fetcher, Reach},
};

/// How long before its end a token is renewed.
const LEEWAY: u64 = 30;
/// The length of all scopes together, which are a part of URLs.
const MAX_SCOPES: usize = 8 << 10;
/// The scope that asks for a refresh token.
const OFFLINE: &str = "offline_access";

/// Authorizes the requests to one server.
pub(in crate::client) struct Authorizer {
    oauth: OAuth,
    server: Url,
    tls: Arc<ClientConfig>,
    /// At most one request for a token runs at a time.
    kept: Arc<Mutex<KeptTokens>>,
    /// The key of `kept`, with its text.
    proof_key: crate::core::sync::Mutex<Option<(String, Arc<ProofKey>)>>,
    /// Counts authorizations and tokens of another process that were taken over: after each the user may be another one.
    users: AtomicU64,
    /// Counts authorizations that were begun.
    attempts: AtomicU64,
    /// Counts those that led to a token.
    logins: AtomicU64,
    /// How many of them failed, and the last error, for the calls that waited for it.
    failures: crate::core::sync::Mutex<(u64, Option<Error>)>,
    /// Whether a user is about to log in.
    user_acts: watch::Sender<bool>,
}

/// The result of handling a refused token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NewToken {
    /// A renewed one, or that of another call.
    Renewed,
    /// The client was authorized again.
    Authorized,
    /// None: the refused one is of a login since the request was begun, which another one would only repeat.
    Useless,
}

impl Authorizer {
    pub(in crate::client) fn new(oauth: OAuth, server: &str, tls: Arc<ClientConfig>) -> Result<Self, Error> {
        oauth.check()?;
        let server: Url = server.parse().map_err(|_| Error::invalid(format!("`{server}` is not a URL")))?;
        Ok(Self {
            oauth,
            server,
            tls,
            kept: Arc::default(),
            proof_key: crate::core::sync::Mutex::default(),
            users: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            logins: AtomicU64::new(0),
            failures: crate::core::sync::Mutex::default(),
            user_acts: watch::Sender::new(false),
        })
    }

    /// The token to send; one that is about to end is renewed first. `None`: the server has not been asked yet.
    pub(super) async fn token(self: &Arc<Self>) -> Result<Option<AccessToken>, Error> {
        let (mut kept, failure) = self.kept().await?;
        let mut token = kept.valid_token().map(str::to_owned);
        if let Some(failure) = failure.filter(|_| token.is_none()) {
            return Err(failure);
        }
        if token.is_none() && kept.refresh_token.is_some() {
            kept = self.refresh(kept).await?;
            // one that ends at once is worth an attempt
            token.clone_from(&kept.access_token);
        }
        let Some(text) = token else { return Ok(None) };
        let proof_key = if kept.is_bound { self.proof_key(kept.proof_key.as_deref())? } else { None };
        Ok(Some(AccessToken::new(text, proof_key)))
    }

    /// The key of this text.
    fn proof_key(&self, text: Option<&str>) -> Result<Option<Arc<ProofKey>>, Error> {
        let Some(text) = text else { return Ok(None) };
        let mut known = self.proof_key.lock();
        if let Some((_, key)) = known.as_ref().filter(|(known, _)| known == text) {
            return Ok(Some(key.clone()));
        }
        let key = Arc::new(ProofKey::parse(text)?);
        *known = Some((text.to_owned(), key.clone()));
        Ok(Some(key))
    }

    /// Gets another token than the one that the server refused. `logins` is their number when the request was begun.
    pub(super) async fn challenged(
        self: &Arc<Self>,
        refused: Option<&str>,
        logins: u64,
        challenge: &Challenge,
        peer: Option<IpAddr>,
        login: Login<'_>,
    ) -> Result<NewToken, Error> {
        let (kept, failure) = self.kept().await?;
        let needs_scopes = challenge.error.as_deref() == Some("insufficient_scope");
        if kept.valid_token().is_some_and(|token| Some(token) != refused) {
            // another call has got one meanwhile
            return Ok(NewToken::Renewed);
        }
        let was_asked_for = || challenge.scopes.iter().all(|scope| kept.scopes.contains(scope));
        if self.logins() != logins && (!needs_scopes || was_asked_for()) {
            return Ok(NewToken::Useless);
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let (kept, obtained) = self.obtain(kept, challenge, peer, login).await;
        if let Err(error) = &obtained {
            let mut failures = self.failures.lock();
            *failures = (failures.0 + 1, Some(error.clone()));
        }
        // only now, so that who waits finds the failure
        drop(kept);
        obtained
    }

    /// Gets a token for a challenge.
    async fn obtain(
        self: &Arc<Self>,
        mut kept: OwnedMutexGuard<KeptTokens>,
        challenge: &Challenge,
        peer: Option<IpAddr>,
        login: Login<'_>,
    ) -> (Option<OwnedMutexGuard<KeptTokens>>, Result<NewToken, Error>) {
        let needs_scopes = challenge.error.as_deref() == Some("insufficient_scope");
        let reach = self.reach(peer);
        let fetcher = self.fetcher(reach);
        let named = challenge.resource_metadata.as_deref();
        let found = async {
            let resource = resource_metadata(&fetcher, &self.server, named).await?;
            let server = self.authorization_server(&fetcher, resource.as_ref()).await?;
            Ok((resource, server))
        };
        let (resource, server) = match found.await {
            Ok(found) => found,
            Err(error) => return (Some(kept), Err(error)),
        };
        if server.issuer != kept.issuer {
            // nothing of one issuer is shown to another
            *kept = KeptTokens { is_loaded: true, ..KeptTokens::default() };
        }
        kept.reach = reach;
        if !needs_scopes {
            kept.access_token = None;
            if kept.refresh_token.is_some() {
                kept = match self.refresh(kept).await {
                    Ok(kept) => kept,
                    Err(error) => return (None, Err(error)),
                };
                if kept.access_token.is_some() {
                    return (Some(kept), Ok(NewToken::Renewed));
                }
            }
        }
        if matches!(login, Login::Background) && self.asks_user() && self.has_asked() {
            return (Some(kept), Err(Error::Unauthorized { challenge: None }));
        }
        self.users.fetch_add(1, Ordering::SeqCst);
        let authorized = self.authorize(&mut kept, &fetcher, challenge, resource.as_ref(), &server).await;
        (Some(kept), authorized.map(|()| NewToken::Authorized))
    }

    /// The output of `future`; the clock of the operation that waits for it stands still while the user logs in, for
    /// whichever call that is.
    pub(super) async fn stop_clock<T>(
        &self,
        operation: Option<&Operation>,
        future: impl Future<Output = T>,
    ) -> T {
        let Some(operation) = operation else { return future.await };
        let mut user_acts = self.user_acts.subscribe();
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

    /// Whether a token takes a user's time.
    fn asks_user(&self) -> bool {
        self.oauth.has_user()
    }

    fn has_asked(&self) -> bool {
        self.users() > 0 || self.failures.lock().0 > 0
    }

    /// How many authorizations have led to a token.
    pub(super) fn logins(&self) -> u64 {
        self.logins.load(Ordering::SeqCst)
    }

    /// How many authorizations were begun.
    pub(in crate::client) fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::SeqCst)
    }

    /// The addresses that the MCP server may refer to, given that it is at `peer`.
    fn reach(&self, peer: Option<IpAddr>) -> Reach {
        if self.oauth.any_address { Reach::Any } else { Reach::of_server(&self.server, peer) }
    }

    fn fetcher(&self, reach: Reach) -> Fetcher {
        Fetcher::of_client(network(reach, self.tls.clone()))
    }

    /// Locks the stored entry for one call at a time; the first call loads it from the store. The error is that of an
    /// authorization that failed while this one waited.
    async fn kept(&self) -> Result<(OwnedMutexGuard<KeptTokens>, Option<Error>), Error> {
        let before = self.failures.lock().0;
        let mut kept = self.kept.clone().lock_owned().await;
        if !kept.is_loaded {
            *kept = self.load().await?.filter(|kept| self.trusts(&kept.issuer)).unwrap_or_default();
            kept.is_loaded = true;
        }
        let (failures, last) = self.failures.lock().clone();
        Ok((kept, last.filter(|_| failures != before)))
    }

    /// Whether an authorization server may be used.
    fn trusts(&self, issuer: &str) -> bool {
        !matches!(&self.oauth.issuer, TrustedIssuer::Only(only) if only != issuer)
    }

    async fn load(&self) -> Result<Option<KeptTokens>, Error> {
        let stored = self.with_store(|store, server| store.load(server)).await?;
        Ok(stored.and_then(|stored| serde_json::from_value(stored).ok()))
    }

    /// Uses the store on a thread that may block.
    async fn with_store<T: Send + 'static>(
        &self,
        f: impl FnOnce(&dyn TokenStore, &str) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (store, server) = (self.oauth.store.clone(), self.server.clone());
        let done = blocking::run(move || f(&*store, server.as_str())).await;
        done.map_err(|error| Error::invalid(error.to_string()))?.map_err(|error| store_error(&error))
    }

    /// Counts what may have changed the user for whom the client acts.
    pub(in crate::client) fn users(&self) -> u64 {
        self.users.load(Ordering::SeqCst)
    }

    async fn authorization_server(
        &self,
        fetcher: &Fetcher,
        resource: Option<&ResourceMetadata>,
    ) -> Result<ServerMetadata, Error> {
        let issuer = match (&self.oauth.issuer, resource) {
            (TrustedIssuer::Only(issuer), resource) => {
                let is_named = |resource: &ResourceMetadata| resource.authorization_servers.contains(issuer);
                if !resource.is_none_or(is_named) {
                    return Err(Error::invalid(format!(
                        "the client uses the authorization server `{issuer}`, which the MCP server does not name"
                    )));
                }
                issuer
            }
            (_, None) => return own_server_metadata(fetcher, &self.server).await,
            (_, Some(resource)) => {
                let first = resource.authorization_servers.first();
                first.ok_or_else(|| Error::invalid("the server names no authorization server"))?
            }
        };
        server_metadata(fetcher, issuer).await
    }

    /// Renews the token in a task of its own: a call that is dropped meanwhile must not lose a refresh token that the
    /// server has just replaced.
    async fn refresh(
        self: &Arc<Self>,
        mut kept: OwnedMutexGuard<KeptTokens>,
    ) -> Result<OwnedMutexGuard<KeptTokens>, Error> {
        let this = self.clone();
        let renewed = tokio::spawn(async move { this.renew(&mut kept).await.map(|()| kept) });
        renewed.await.map_err(|error| Error::invalid(error.to_string()))?
    }

    /// Renews the token. A server that refuses leaves nothing, so that authorization is asked for again.
    async fn renew(&self, kept: &mut KeptTokens) -> Result<(), Error> {
        // held until the renewed tokens are kept: a refresh token that rotates counts once
        let _lock = self.with_store(|store, _| store.lock()).await?;
        if let Some(stored) = self.load().await?.filter(|stored| stored.issuer == kept.issuer)
            && stored.refresh_token != kept.refresh_token
        {
            // another process has renewed it, or has authorized another user
            self.users.fetch_add(1, Ordering::SeqCst);
            *kept = KeptTokens { is_loaded: true, ..stored };
            if kept.valid_token().is_some() {
                return Ok(());
            }
        }
        let (Some(refresh_token), Some(client)) = (kept.refresh_token.clone(), kept.client.clone()) else {
            return Ok(());
        };
        let form: Form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh_token),
            ("resource", kept.resource.clone()),
        ];
        let proof_key = self.proof_key(kept.proof_key.as_deref())?;
        let fetcher = self.fetcher(if self.oauth.any_address { Reach::Any } else { kept.reach });
        let endpoint = TokenEndpoint::new(&fetcher, &kept.token_endpoint, &kept.issuer, &client);
        let endpoint = endpoint.with_keys(self.signing_key(), proof_key.as_deref());
        match endpoint.access_token(form).await? {
            Ok(reply) => accept(kept, reply),
            Err(refused) => {
                tracing::debug!(error = refused.in_one_line(), "the refresh token is refused");
                kept.access_token = None;
                kept.refresh_token = None;
            }
        }
        self.keep(kept).await
    }

    /// Gets a token by the grant that was chosen.
    async fn authorize(
        &self,
        kept: &mut KeptTokens,
        fetcher: &Fetcher,
        challenge: &Challenge,
        resource: Option<&ResourceMetadata>,
        server: &ServerMetadata,
    ) -> Result<(), Error> {
        let resource_id = resource.map_or_else(|| resource_of(&self.server), |r| r.resource.clone());
        let scopes = self.scopes(kept, challenge, resource, server)?;
        let client = self.client(kept, fetcher, server).await?;
        let is_registered_anew = client.untried_redirect.is_some()
            && kept.client.as_ref().is_none_or(|known| known.id != client.id);
        kept.issuer.clone_from(&server.issuer);
        kept.client = Some(client.clone());
        if is_registered_anew {
            // a registration outlives a login that fails, and the program
            self.keep(kept).await?;
        }
        let form = self.grant(fetcher, server, &client, &resource_id, &scopes).await?;
        let binds = (self.oauth.binds_tokens
            || resource.is_some_and(|r| r.dpop_bound_access_tokens_required))
            && offers(server.dpop_signing_alg_values_supported.as_deref(), "ES256");
        match &kept.proof_key {
            None if binds => kept.proof_key = Some(ProofKey::generate()?),
            Some(_) if !binds => kept.proof_key = None,
            _ => {}
        }
        let proof_key = self.proof_key(kept.proof_key.as_deref())?;
        let endpoint = TokenEndpoint::new(fetcher, &server.token_endpoint, &server.issuer, &client);
        let reply = endpoint.with_keys(self.signing_key(), proof_key.as_deref()).access_token(form).await??;
        kept.resource = resource_id;
        kept.token_endpoint.clone_from(&server.token_endpoint);
        kept.scopes = scopes;
        if let Some(client) = &mut kept.client {
            client.untried_redirect = None;
        }
        accept(kept, reply);
        self.logins.fetch_add(1, Ordering::SeqCst);
        self.keep(kept).await
    }

    /// The parameters of the grant that was chosen.
    async fn grant(
        &self,
        fetcher: &Fetcher,
        server: &ServerMetadata,
        client: &KeptClient,
        resource: &str,
        scopes: &[String],
    ) -> Result<Form, Error> {
        let mut form = vec![("resource", resource.to_owned())];
        if !scopes.is_empty() {
            form.push(("scope", scopes.join(" ")));
        }
        match &self.oauth.grant {
            Grant::AuthorizationCode(visit) => {
                let code =
                    Box::pin(self.authorization_code(visit, fetcher, server, client, resource, scopes))
                        .await?;
                form.retain(|(name, _)| *name != "scope");
                form.extend([
                    ("grant_type", "authorization_code".to_owned()),
                    ("code", code.code),
                    ("redirect_uri", self.oauth.redirect_uri.clone()),
                    ("code_verifier", code.verifier),
                ]);
            }
            Grant::ClientCredentials => form.push(("grant_type", "client_credentials".to_owned())),
            Grant::JwtBearer(token) => {
                let assertion = token(())
                    .await
                    .map_err(|message| Error::Handler { method: "workload identity".to_owned(), message })?;
                form.extend([("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion)]);
            }
            Grant::Enterprise(idp) => {
                let assertion = self.enterprise_grant(idp, &server.issuer, resource, scopes).await?;
                form.extend([("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion)]);
            }
        }
        Ok(form)
    }

    /// Signs the assertions of the client, if it has a private key.
    fn signing_key(&self) -> Option<&SigningKey> {
        match &self.oauth.registered.as_ref()?.secret {
            ClientSecret::Key(key) => Some(key),
            _ => None,
        }
    }

    /// Forgets the tokens, here and in the store; the client stays registered.
    pub(in crate::client) async fn forget(&self) -> Result<(), Error> {
        let (mut kept, _) = self.kept().await?;
        *kept = KeptTokens {
            issuer: std::mem::take(&mut kept.issuer),
            reach: kept.reach,
            client: kept.client.take(),
            is_loaded: true,
            ..KeptTokens::default()
        };
        // the next user may be another one
        self.users.fetch_add(1, Ordering::SeqCst);
        self.keep(&kept).await
    }

    async fn keep(&self, kept: &KeptTokens) -> Result<(), Error> {
        let value = serde_json::to_value(kept).map_err(|error| Error::invalid(error.to_string()))?;
        self.with_store(move |store, server| store.save(server, &value)).await
    }

    /// The scopes to request: the challenge's and those granted before, else the ones that the server supports.
    fn scopes(
        &self,
        kept: &KeptTokens,
        challenge: &Challenge,
        resource: Option<&ResourceMetadata>,
        server: &ServerMetadata,
    ) -> Result<Vec<String>, Error> {
        let mut scopes = kept.scopes.clone();
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
            add(resource.and_then(|resource| resource.scopes_supported.as_deref()).unwrap_or_default());
        }
        if matches!(self.oauth.grant, Grant::AuthorizationCode(_))
            && offers(server.scopes_supported.as_deref(), OFFLINE)
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
    async fn client(
        &self,
        kept: &KeptTokens,
        fetcher: &Fetcher,
        server: &ServerMetadata,
    ) -> Result<KeptClient, Error> {
        if let Some(registered) = &self.oauth.registered {
            let (secret, method) = match &registered.secret {
                ClientSecret::None => (None, "none"),
                ClientSecret::Key(_) => (None, "private_key_jwt"),
                ClientSecret::Secret(secret) => (Some(secret.as_str()), secret_method(server)),
            };
            return Ok(KeptClient::new(&registered.id, secret, method));
        }
        if let Some(url) =
            self.oauth.metadata_url.as_ref().filter(|_| server.client_id_metadata_document_supported)
        {
            return Ok(KeptClient::new(url, None, "none"));
        }
        let known = kept.client.as_ref().filter(|_| kept.issuer == server.issuer);
        if let Some(client) = known.filter(|client| client.accepts(&self.oauth.redirect_uri)) {
            return Ok(client.clone());
        }
        self.register(fetcher, server).await
    }

    /// Dynamic registration, which the protocol has deprecated and many servers need.
    async fn register(&self, fetcher: &Fetcher, server: &ServerMetadata) -> Result<KeptClient, Error> {
        #[derive(Deserialize)]
        struct RegistrationReply {
            client_id: String,
            client_secret: Option<String>,
            token_endpoint_auth_method: Option<String>,
        }
        let Some(endpoint) = &server.registration_endpoint else {
            return Err(Error::invalid(format!(
                "the authorization server `{}` does not register clients\ngive the client's id with `registered`",
                server.issuer
            )));
        };
        let methods = server.token_endpoint_auth_methods_supported.as_deref();
        let is_public = methods.is_none_or(<[_]>::is_empty) || offers(methods, "none");
        let method = if is_public { "none" } else { secret_method(server) };
        let body = json!({
            "client_name": self.oauth.name,
            "redirect_uris": [self.oauth.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": application_type(&self.oauth.redirect_uri),
        });
        let url = fetcher.check_url(endpoint).map_err(fetch_error)?;
        let headers =
            HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let reply = fetcher.send(Method::POST, url, headers, body.to_string()).await.map_err(fetch_error)?;
        let status = reply.status();
        let text = String::from_utf8_lossy(reply.body()).into_owned();
        if !status.is_success() {
            return Err(refusal("the client is not registered", status, &text, &[]));
        }
        let registered: RegistrationReply = serde_json::from_str(&text)
            .map_err(|_| Error::invalid("the reply to the registration has no `client_id`"))?;
        let method = registered.token_endpoint_auth_method.unwrap_or_else(|| {
            if registered.client_secret.is_some() { secret_method(server) } else { "none" }.to_owned()
        });
        Ok(KeptClient {
            id: registered.client_id,
            secret: registered.client_secret,
            method,
            untried_redirect: Some(self.oauth.redirect_uri.clone()),
        })
    }

    /// Sends the user to the authorization server, and checks the answer before its code is used.
    async fn authorization_code(
        &self,
        front_end: &FrontEnd,
        fetcher: &Fetcher,
        server: &ServerMetadata,
        client: &KeptClient,
        resource: &str,
        scopes: &[String],
    ) -> Result<AuthorizationCode, Error> {
        let has_s256 = offers(server.code_challenge_methods_supported.as_deref(), "S256");
        if !server.is_assumed && !has_s256 {
            return Err(Error::invalid(format!(
                "the authorization server `{}` does not offer PKCE with S256",
                server.issuer
            )));
        }
        let verifier = format!("{}{}", random()?, random()?);
        let state = random()?;
        let mut url = fetcher.check_url(&server.authorization_endpoint).map_err(fetch_error)?;
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", &self.oauth.redirect_uri)
                .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier)))
                .append_pair("code_challenge_method", "S256")
                .append_pair("state", &state)
                .append_pair("resource", resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
        }
        #[cfg(feature = "client-browser")]
        if self.oauth.opens_browser {
            super::browser::open_in_background(url.clone());
        }
        let answer = match front_end {
            FrontEnd::User(visit) => self.wait_for_user(visit(url.into())).await,
            FrontEnd::None => fetch_redirect(fetcher, url).await,
            FrontEnd::Loopback(listener) => self.wait_for_user(listener.visit(&url, &state)).await,
        };
        let answer =
            answer.map_err(|message| Error::Handler { method: "authorization".to_owned(), message })?;
        let code = code_of(&answer, &state, server)?;
        Ok(AuthorizationCode { code, verifier })
    }

    /// Gives the user the time for a login.
    async fn wait_for_user(
        &self,
        login: impl Future<Output = Result<String, String>>,
    ) -> Result<String, String> {
        struct UserActs<'a>(&'a watch::Sender<bool>);
        impl Drop for UserActs<'_> {
            fn drop(&mut self) {
                self.0.send_replace(false);
            }
        }
        self.user_acts.send_replace(true);
        let _acts = UserActs(&self.user_acts);
        let late = |_| Err("the user did not answer in time".to_owned());
        timeout(self.oauth.login_timeout, login).await.unwrap_or_else(late)
    }

    /// Exchanges a token of the user for a grant of the enterprise.
    async fn enterprise_grant(
        &self,
        idp: &IdentityProvider,
        issuer: &str,
        resource: &str,
        scopes: &[String],
    ) -> Result<String, Error> {
        let token = (idp.token)(())
            .await
            .map_err(|message| Error::Handler { method: "enterprise authorization".to_owned(), message })?;
        let mut form: Form = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange".to_owned()),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag".to_owned()),
            ("audience", issuer.to_owned()),
            ("resource", resource.to_owned()),
            ("subject_token", token),
            ("subject_token_type", idp.token_type.to_owned()),
        ];
        if !scopes.is_empty() {
            form.push(("scope", scopes.join(" ")));
        }
        let secret = idp.client_secret.as_deref();
        let method = if secret.is_some() { "client_secret_basic" } else { "none" };
        let client = KeptClient::new(&idp.client_id, secret, method);
        // the program names this address
        let fetcher = self.fetcher(Reach::Any);
        let endpoint = TokenEndpoint::new(&fetcher, &idp.token_endpoint, issuer, &client);
        Ok(endpoint.token(form).await??.access_token)
    }
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

struct AuthorizationCode {
    code: String,
    verifier: String,
}

/// The code in the URL to which the user was redirected.
///
/// # Errors
/// The answer is of another request or another server, or a refusal.
fn code_of(answer: &str, state: &str, server: &ServerMetadata) -> Result<String, Error> {
    let answer: Url = answer.parse().map_err(|_| Error::invalid("the user was not redirected to a URL"))?;
    let parameter =
        |name: &str| answer.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    if parameter("state").as_deref() != Some(state) {
        return Err(Error::invalid("the answer of the authorization server is of another request"));
    }
    match parameter("iss") {
        Some(issuer) if issuer == server.issuer => {}
        None if !server.authorization_response_iss_parameter_supported => {}
        // not even its error is shown
        _ => return Err(Error::invalid("the answer is not of the authorization server that was asked")),
    }
    if let Some(error) = parameter("error") {
        return Err(Error::invalid(format!("the authorization server refused: {}", reason(&error, &[]))));
    }
    parameter("code").ok_or_else(|| Error::invalid("the authorization server sent no code"))
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

/// Takes over what a token endpoint has sent.
fn accept(kept: &mut KeptTokens, reply: TokenReply) {
    kept.access_token = Some(reply.access_token.clone());
    kept.is_bound = kept.proof_key.is_some() && reply.is_bound();
    kept.renew_at = reply.seconds().map(|seconds| {
        let lifetime = seconds.clamp(0.0, 1e9) as u64;
        now() + lifetime - LEEWAY.min(lifetime / 2)
    });
    // scopes that are too long were not asked for
    if reply.scopes().map(str::len).sum::<usize>() <= MAX_SCOPES {
        for scope in reply.scopes() {
            if !kept.scopes.iter().any(|known| known == scope) {
                kept.scopes.push(scope.to_owned());
            }
        }
    }
    if reply.refresh_token.is_some() {
        kept.refresh_token = reply.refresh_token;
    }
}

/// How a client with a secret authenticates itself.
fn secret_method(server: &ServerMetadata) -> &'static str {
    let methods = server.token_endpoint_auth_methods_supported.as_deref();
    if offers(methods, "client_secret_post") && !offers(methods, "client_secret_basic") {
        "client_secret_post"
    } else {
        "client_secret_basic"
    }
}

fn store_error(error: &io::Error) -> Error {
    Error::invalid(format!("the token store: {error}"))
}

/// Visits a URL without a user: the authorization server redirects at once.
async fn fetch_redirect(fetcher: &Fetcher, url: Url) -> Result<String, String> {
    let reply =
        fetcher.send(Method::GET, url, HeaderMap::new(), "").await.map_err(|error| error.to_string())?;
    let location = reply.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
    location.map(str::to_owned).ok_or_else(|| "the authorization server did not redirect".to_owned())
}
