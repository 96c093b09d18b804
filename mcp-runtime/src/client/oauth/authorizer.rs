//! Gets tokens, renews them and gets others when the server asks for more. Concurrent calls wait for the token in
//! progress, also across processes that share a store.
//!
//! [`AuthorizedRequest`](super::AuthorizedRequest) asks for a token before each request ([`Authorizer::token`], which renews
//! one that is about to end), and for another one after `401`, or `403` with `insufficient_scope` ([`Authorizer::challenged`]).
//! Grants are chosen here, and requested from a [`TokenEndpoint`].

use std::{
    io,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustls::ClientConfig;
use tokio::sync::{Mutex, OwnedMutexGuard};
use url::Url;

use super::{
    ClientSecret, Grant, IdentityProvider, OAuth, TokenStore, TrustedIssuer,
    access_token::AccessToken,
    kept_tokens::{KeptClient, KeptTokens},
    login::{Found, MAX_SCOPES, UserClock},
    now,
    proof_key::ProofKey,
    token_endpoint::{Answer, Form, TokenEndpoint, TokenReply},
};
use crate::{
    client::{
        Error,
        link::{
            bearer_challenge::Challenge,
            http_link::{Login, network},
        },
    },
    core::{blocking, es256::SigningKey},
    fetch::{Fetcher, Reach},
};

/// How long before its end a token is renewed.
const LEEWAY: u64 = 30;

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
    /// How many authorizations and renewals failed, and the last error, for the calls that waited for it.
    failures: crate::core::sync::Mutex<(u64, Option<Error>)>,
    user: UserClock,
}

/// The stored entry, for one call at a time.
type Kept = OwnedMutexGuard<KeptTokens>;

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
            user: UserClock::default(),
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
        let (mut kept, failure) = self.kept().await?;
        let needs_scopes = challenge.needs_scopes();
        if kept.valid_token().is_some_and(|token| Some(token) != refused) {
            // another call has got one meanwhile
            return Ok(NewToken::Renewed);
        }
        let was_asked_for = challenge.scopes.iter().all(|scope| kept.scopes.contains(scope));
        if self.logins() != logins && (!needs_scopes || was_asked_for) {
            return Ok(NewToken::Useless);
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let found = self.find(&mut kept, challenge, peer).await.map_err(|error| self.failed(error))?;
        if !needs_scopes {
            kept.access_token = None;
            if kept.refresh_token.is_some() {
                kept = self.refresh(kept).await?;
                if kept.access_token.is_some() {
                    return Ok(NewToken::Renewed);
                }
            }
        }
        // the user is not asked twice for what happens in the background
        if matches!(login, Login::Background) && self.oauth.has_user() && self.users() > 0 {
            return Err(self.failed(Error::Unauthorized { challenge: None }));
        }
        self.users.fetch_add(1, Ordering::SeqCst);
        let authorized = self.authorize(&mut kept, &found, challenge).await;
        authorized.map(|()| NewToken::Authorized).map_err(|error| self.failed(error))
    }

    /// Finds the authorization server that the MCP server names now. Nothing of one issuer is shown to another.
    async fn find(
        &self,
        kept: &mut KeptTokens,
        challenge: &Challenge,
        peer: Option<IpAddr>,
    ) -> Result<Found<'_>, Error> {
        // the addresses that the MCP server may refer to, given that it is at `peer`
        let reach = if self.oauth.any_address { Reach::Any } else { Reach::of_server(&self.server, peer) };
        let named = challenge.resource_metadata.as_deref();
        let found = Found::fetch(&self.oauth, &self.server, self.fetcher(reach), named).await?;
        if found.issuer() != kept.issuer {
            *kept = KeptTokens::none();
        }
        kept.reach = reach;
        Ok(found)
    }

    /// Counts a failure while `kept` is locked, so that the calls which wait for that find it.
    fn failed(&self, error: Error) -> Error {
        let mut failures = self.failures.lock();
        *failures = (failures.0 + 1, Some(error.clone()));
        error
    }

    /// What stops the clocks of calls while a user logs in.
    pub(super) fn user(&self) -> &UserClock {
        &self.user
    }

    /// How many authorizations have led to a token.
    pub(super) fn logins(&self) -> u64 {
        self.logins.load(Ordering::SeqCst)
    }

    /// How many authorizations were begun.
    pub(in crate::client) fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::SeqCst)
    }

    fn fetcher(&self, reach: Reach) -> Fetcher {
        Fetcher::of_client(network(reach, self.tls.clone()))
    }

    /// Locks the stored entry for one call at a time; the first call loads it from the store. The error is that of an
    /// attempt that failed while this one waited.
    async fn kept(&self) -> Result<(Kept, Option<Error>), Error> {
        let before = self.failures.lock().0;
        let mut kept = self.kept.clone().lock_owned().await;
        if !kept.is_loaded {
            *kept =
                self.load().await?.filter(|kept| self.trusts(&kept.issuer)).unwrap_or_else(KeptTokens::none);
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
        let stored: Option<KeptTokens> = stored.and_then(|stored| serde_json::from_value(stored).ok());
        Ok(stored.map(|stored| KeptTokens { is_loaded: true, ..stored }))
    }

    /// Uses the store on a thread that may block.
    async fn with_store<T: Send + 'static>(
        &self,
        f: impl FnOnce(&dyn TokenStore, &str) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (store, server) = (self.oauth.store.clone(), self.server.clone());
        let done = blocking::run(move || f(&*store, server.as_str())).await;
        done.map_err(|error| Error::invalid(error.to_string()))?
            .map_err(|error| Error::invalid(format!("the token store: {error}")))
    }

    /// Counts what may have changed the user for whom the client acts.
    pub(in crate::client) fn users(&self) -> u64 {
        self.users.load(Ordering::SeqCst)
    }

    /// Renews the token in a task of its own: a call that is dropped meanwhile must not lose a refresh token that the
    /// server has just replaced.
    async fn refresh(self: &Arc<Self>, mut kept: Kept) -> Result<Kept, Error> {
        let this = self.clone();
        let renewed = tokio::spawn(async move {
            let renewed = this.renew(&mut kept).await.map_err(|error| this.failed(error));
            renewed.map(|()| kept)
        });
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
            *kept = stored;
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
            Answer::Token(reply) => accept(kept, reply),
            Answer::Refused(refused) => {
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
        found: &Found<'_>,
        challenge: &Challenge,
    ) -> Result<(), Error> {
        let scopes = found.scopes(&kept.scopes, challenge)?;
        let client = found.client(kept).await?;
        let is_registered_anew = client.untried_redirect.is_some()
            && kept.client.as_ref().is_none_or(|known| known.id != client.id);
        found.issuer().clone_into(&mut kept.issuer);
        kept.client = Some(client.clone());
        if is_registered_anew {
            // a registration outlives a login that fails, and the program
            self.keep(kept).await?;
        }
        let form = self.grant(found, &client, &scopes).await?;
        match &kept.proof_key {
            None if found.binds_tokens() => kept.proof_key = Some(ProofKey::generate()?),
            Some(_) if !found.binds_tokens() => kept.proof_key = None,
            _ => {}
        }
        let proof_key = self.proof_key(kept.proof_key.as_deref())?;
        let endpoint = found.token_endpoint(&client).with_keys(self.signing_key(), proof_key.as_deref());
        let reply = endpoint.access_token(form).await?.token()?;
        found.resource_id().clone_into(&mut kept.resource);
        found.token_url().clone_into(&mut kept.token_endpoint);
        kept.scopes = scopes;
        if let Some(client) = &mut kept.client {
            client.untried_redirect = None;
        }
        accept(kept, reply);
        self.logins.fetch_add(1, Ordering::SeqCst);
        self.keep(kept).await
    }

    /// The parameters of the grant that was chosen.
    async fn grant(&self, found: &Found<'_>, client: &KeptClient, scopes: &[String]) -> Result<Form, Error> {
        let mut form = vec![("resource", found.resource_id().to_owned())];
        // those of a code are in the URL that the user has visited
        let is_in_url = matches!(self.oauth.grant, Grant::AuthorizationCode(_));
        if !is_in_url && !scopes.is_empty() {
            form.push(("scope", scopes.join(" ")));
        }
        match &self.oauth.grant {
            Grant::AuthorizationCode(visit) => {
                form.extend(Box::pin(found.authorization_code(visit, &self.user, client, scopes)).await?);
            }
            Grant::ClientCredentials => form.push(("grant_type", "client_credentials".to_owned())),
            Grant::JwtBearer(token) => {
                let assertion = token(())
                    .await
                    .map_err(|message| Error::Handler { method: "workload identity".to_owned(), message })?;
                form.extend([("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion)]);
            }
            Grant::Enterprise(idp) => {
                let assertion = self.enterprise_grant(idp, found, scopes).await?;
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
            ..KeptTokens::none()
        };
        // the next user may be another one
        self.users.fetch_add(1, Ordering::SeqCst);
        self.keep(&kept).await
    }

    async fn keep(&self, kept: &KeptTokens) -> Result<(), Error> {
        let value = serde_json::to_value(kept).map_err(|error| Error::invalid(error.to_string()))?;
        self.with_store(move |store, server| store.save(server, &value)).await
    }

    /// Exchanges a token of the user for a grant of the enterprise.
    async fn enterprise_grant(
        &self,
        idp: &IdentityProvider,
        found: &Found<'_>,
        scopes: &[String],
    ) -> Result<String, Error> {
        let token = (idp.token)(())
            .await
            .map_err(|message| Error::Handler { method: "enterprise authorization".to_owned(), message })?;
        let mut form: Form = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange".to_owned()),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag".to_owned()),
            ("audience", found.issuer().to_owned()),
            ("resource", found.resource_id().to_owned()),
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
        let endpoint = TokenEndpoint::new(&fetcher, &idp.token_endpoint, found.issuer(), &client);
        Ok(endpoint.token(form).await?.token()?.access_token)
    }
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::fetch::tls_config;

    /// A token endpoint that is busy: its URL, and the number of requests.
    async fn busy_endpoint() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/token", listener.local_addr().expect("an address"));
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut request = Vec::new();
                while !String::from_utf8_lossy(&request).contains("refresh_token=") {
                    stream.read_buf(&mut request).await.expect("a request");
                }
                let reply =
                    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(reply).await.expect("a reply");
            }
        });
        (url, requests)
    }

    #[tokio::test]
    async fn concurrent_calls_share_the_failure_of_a_renewal_and_later_ones_try_again() {
        const SERVER: &str = "http://127.0.0.1:1/mcp";
        let (token_endpoint, requests) = busy_endpoint().await;
        let oauth = OAuth::headless("http://localhost:1/callback");
        let kept = KeptTokens {
            refresh_token: Some("refresh".to_owned()),
            client: Some(KeptClient::new("client", None, "none")),
            reach: Reach::Any,
            token_endpoint,
            ..KeptTokens::default()
        };
        oauth.store.save(SERVER, &serde_json::to_value(kept).expect("JSON")).expect("a store");
        let tls = tls_config(&[]).expect("TLS");
        let authorizer = Arc::new(Authorizer::new(oauth, SERVER, tls).expect("an authorizer"));
        // each waits for the lock before the first one is answered
        let failed = tokio::join!(authorizer.token(), authorizer.token(), authorizer.token());
        assert!(failed.0.is_err() && failed.1.is_err() && failed.2.is_err());
        assert_eq!(requests.load(Ordering::SeqCst), 1);
        assert!(authorizer.token().await.is_err());
        assert_eq!(requests.load(Ordering::SeqCst), 2);
    }
}
