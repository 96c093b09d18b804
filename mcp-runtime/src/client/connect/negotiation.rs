//! Which revision a server has: `server/discover` first, `initialize` for servers that do not know it. Every path ends:
//! a server that contradicts itself is an error, not another attempt.
//!
//! See [backward compatibility](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#backward-compatibility-with-initialization-based-versions).

use std::{future::pending, pin::pin, sync::LazyLock, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::shared_client::{CallOptions, SharedClient, params};
use crate::{
    client::{
        Error,
        exchange::{RoundOutcome, initialize_params},
        link::{LinkError, ServerLink, outgoing::notification_text},
        requests::result_types::parse,
    },
    core::{
        jsonrpc::replace_lone_surrogates,
        protocol::{
            HEADER_MISMATCH, META_SERVER_INFO, MISSING_CLIENT_CAPABILITY, Revision,
            UNSUPPORTED_PROTOCOL_VERSION,
        },
        recent_map::RecentMap,
        sync::Mutex,
    },
};

/// How long a server may take to open its standalone stream before the client is used without.
const STREAM_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a server that refuses `initialize` may take to answer `server/discover`.
const LAST_PROBE: Duration = Duration::from_secs(5);
/// Servers that are remembered.
const MAX_REMEMBERED: usize = 256;

static REMEMBERED: LazyLock<Mutex<RecentMap<String, Revision>>> =
    LazyLock::new(|| Mutex::new(RecentMap::new(MAX_REMEMBERED)));

/// The revision that a server had the last time in this process, by its command line or URL.
pub(in crate::client) fn remembered(key: &str) -> Option<Revision> {
    REMEMBERED.lock().get(key).copied()
}

pub(in crate::client) fn remember(key: String, revision: Revision) {
    let mut remembered = REMEMBERED.lock();
    // one that is forgotten costs a probe
    drop(remembered.trim());
    remembered.insert(key, revision);
}

/// The server's description of itself.
#[derive(Clone, Default)]
pub(in crate::client) struct ServerFacts {
    pub(in crate::client) name: String,
    pub(in crate::client) version: String,
    pub(in crate::client) instructions: Option<String>,
    pub(in crate::client) capabilities: Value,
}

impl ServerFacts {
    /// Whether the server declares a capability, such as `tools` or `resources.subscribe`, or an extension. Some servers
    /// write `true` where an object is due, and some `false` or null for what they do not have.
    pub(in crate::client) fn declares(&self, capability: &str) -> bool {
        let extension = self.capabilities.get("extensions").and_then(|extensions| extensions.get(capability));
        let found = capability.split('.').try_fold(&self.capabilities, |at, key| at.get(key));
        [extension, found]
            .into_iter()
            .flatten()
            .any(|value| !matches!(value, Value::Null | Value::Bool(false)))
    }
}

/// The revision to use.
pub(in crate::client) struct Agreement {
    pub(in crate::client) revision: Revision,
    pub(in crate::client) server: ServerFacts,
    /// Whether the server may have a newer one: it has not answered the probe in time.
    pub(in crate::client) is_preliminary: bool,
}

/// What a server says of itself in its answer to `server/discover`.
enum Discovery {
    Modern(Agreement),
    /// The server names only these, of which the newest that this client has is a legacy one.
    Legacy(Revision),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Value,
    instructions: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    server_info: Value,
    instructions: Option<String>,
}

/// The requests over a link that agree on a revision.
#[derive(Clone, Copy)]
pub(super) struct Handshake<'a> {
    client: &'a SharedClient,
    link: &'a ServerLink,
    options: &'a CallOptions,
}

impl<'a> Handshake<'a> {
    pub(super) fn new(client: &'a SharedClient, link: &'a ServerLink, options: &'a CallOptions) -> Self {
        Self { client, link, options }
    }

    /// Agrees on a revision; `remembered` is the one of an earlier connection to the same server.
    pub(super) async fn negotiate(&self, remembered: Option<Revision>) -> Result<Agreement, Error> {
        let agreed = self.negotiate_revision(remembered).await?;
        if agreed.revision.is_modern() {
            // `initialize` may have begun a session while the answer to the probe was on its way
            self.link.forget_session();
        }
        self.client.inbox.set_revision(agreed.revision);
        Ok(agreed)
    }

    async fn negotiate_revision(&self, remembered: Option<Revision>) -> Result<Agreement, Error> {
        let options = &self.client.options;
        match options.revision {
            // the transport of a revision that has no other way
            None if options.http_sse => self.initialize(Revision::LATEST_LEGACY).await,
            Some(revision) if options.http_sse && revision.is_modern() => {
                Err(Error::unsupported(format!("the revision `{revision}` over HTTP+SSE")))
            }
            Some(Revision::V2026_07_28) => match self.probe().await {
                Ok(Discovery::Modern(agreement)) => Ok(agreement),
                Ok(Discovery::Legacy(_)) => {
                    Err(Error::unsupported(format!("the revision `{}`", Revision::LATEST)))
                }
                Err(error) if is_of_legacy_server(&error) && !matches!(error, Error::NotConnected { .. }) => {
                    Err(Error::unsupported(format!("the revision `{}`: {error}", Revision::LATEST)))
                }
                Err(error) => Err(error),
            },
            Some(revision) => self.initialize(revision).await,
            None => {
                // a legacy server need not be probed again; if it is another one now, the probe finds out
                if remembered.is_some_and(|revision| !revision.is_modern()) {
                    match self.initialize(Revision::LATEST_LEGACY).await {
                        Err(
                            Error::Protocol { .. }
                            | Error::Http { .. }
                            | Error::Unsupported { .. }
                            | Error::Invalid { .. },
                        ) => {}
                        agreed => return agreed,
                    }
                }
                self.negotiate_any().await
            }
        }
    }

    async fn negotiate_any(&self) -> Result<Agreement, Error> {
        let attempts = self.link.authorization_attempts();
        let is_authorized_meanwhile = || self.link.authorization_attempts() != attempts;
        let mut probing = pin!(self.probe());
        let silence = async {
            sleep(self.client.options.probe_timeout).await;
            if is_authorized_meanwhile() {
                // `initialize` would begin the authorization once more
                pending::<()>().await;
            }
        };
        let probed = tokio::select! {
            probed = &mut probing => probed,
            () = silence => {
                // a legacy server that ignores the request, or one that is slow to start: whichever response comes first
                let mut initializing = pin!(async {
                    let agreed = self.initialize(Revision::LATEST_LEGACY).await?;
                    Ok(Agreement { is_preliminary: true, ..agreed })
                });
                tokio::select! {
                    // of a server that has answered both
                    biased;
                    probed = &mut probing => match probed {
                        Ok(Discovery::Modern(agreement)) => return Ok(agreement),
                        _ => return initializing.await,
                    },
                    initialized = &mut initializing => match initialized {
                        Ok(agreement) => return Ok(agreement),
                        // a server of 2026-07-28 refuses it: its answer to the probe is on its way
                        Err(refused) => {
                            let patience = self.client.options.probe_timeout.max(LAST_PROBE);
                            match timeout(patience, probing).await {
                                Ok(Ok(discovery)) => Ok(discovery),
                                _ => return Err(refused),
                            }
                        }
                    },
                }
            }
        };
        match probed {
            Ok(Discovery::Modern(agreement)) => Ok(agreement),
            Ok(Discovery::Legacy(revision)) => self.initialize(revision).await,
            Err(error @ Error::Timeout { .. }) if is_authorized_meanwhile() => Err(error),
            Err(error) if is_of_legacy_server(&error) => self.initialize(Revision::LATEST_LEGACY).await,
            Err(error) => Err(error),
        }
    }

    /// Sends `server/discover`, again if the server asks for another version.
    async fn probe(&self) -> Result<Discovery, Error> {
        let mut is_retry = false;
        loop {
            let sent = self.send(Revision::LATEST, "server/discover", json!({})).await;
            let supported = match &sent {
                Ok(json) => return discovered(json),
                Err(Error::Protocol { code: UNSUPPORTED_PROTOCOL_VERSION, data, .. }) => {
                    data.as_ref().and_then(|data| data.get("supported"))
                }
                Err(error) => return Err(error.clone()),
            };
            match newest(supported.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str))
            {
                Some(revision) if revision.is_modern() && !is_retry => is_retry = true,
                Some(revision) if !revision.is_modern() => return Ok(Discovery::Legacy(revision)),
                _ => return Err(Error::unsupported("any revision that this client has")),
            }
        }
    }

    /// The handshake of legacy revisions.
    pub(super) async fn initialize(&self, revision: Revision) -> Result<Agreement, Error> {
        let Self { client, link, options } = *self;
        client.inbox.set_revision(revision);
        let offer =
            initialize_params(revision, client.inbox.handlers.capabilities(revision), client.client_info());
        let sent = self.send(revision, "initialize", offer).await;
        let json = sent.map_err(|error| match error {
            Error::Protocol { code: UNSUPPORTED_PROTOCOL_VERSION, message, .. } => {
                Error::unsupported(format!("the revision `{revision}`: {message}"))
            }
            error => error,
        })?;
        let result: InitializeResult = parse(&json, "initialize")?;
        let agreed = result.protocol_version.parse().ok().filter(|agreed: &Revision| {
            !agreed.is_modern() && client.options.revision.is_none_or(|pinned| pinned == *agreed)
        });
        let Some(agreed) = agreed else {
            return Err(Error::unsupported(format!(
                "the revision `{revision}`: it answers with `{}`",
                result.protocol_version
            )));
        };
        link.set_legacy_revision(agreed);
        let initialized = notification_text("notifications/initialized", &serde_json::Map::new());
        let initialized = client.notify_over(link, initialized, options).await;
        initialized.map_err(|error| refused_initialized(error.into_error()))?;
        if let ServerLink::Http(link) = link {
            let first_answer = link.listen();
            // a request that the server sends before the stream is open may be lost
            if client.inbox.handlers.answers_requests() {
                let _answered = timeout(STREAM_TIMEOUT, first_answer).await;
            }
        }
        let server = facts(&result.server_info, result.capabilities, result.instructions);
        Ok(Agreement { revision: agreed, server, is_preliminary: false })
    }

    async fn send(&self, revision: Revision, method: &str, members: Value) -> Result<String, Error> {
        let Self { client, link, options } = *self;
        let sent = client.exchange(link, revision, method, &params(members), options).await;
        let json = sent.map_err(LinkError::into_error)?;
        Ok(replace_lone_surrogates(&json).into_owned())
    }
}

/// Whether a probe that fails like this may have met a server that does not know it. Such servers fail in every way that
/// there is, so everything else is listed: errors that `initialize` would get as well, and those of 2026-07-28.
fn is_of_legacy_server(error: &Error) -> bool {
    !matches!(
        error,
        Error::Unauthorized { .. }
            | Error::Authorization { .. }
            | Error::Forbidden { .. }
            | Error::Closed { .. }
            | Error::Unsupported { .. }
            | Error::Protocol { code: HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY, .. }
    )
}

/// Reads the answer to `server/discover`; a legacy server may answer anything to a method that it does not know.
fn discovered(json: &str) -> Result<Discovery, Error> {
    let result: DiscoverResult = parse(json, "server/discover")?;
    if !matches!(RoundOutcome::read(json), Ok(RoundOutcome::Complete)) {
        return Err(Error::invalid("the result of `server/discover` is not complete"));
    }
    match newest(result.supported_versions.iter().map(String::as_str)) {
        Some(revision) if !revision.is_modern() => return Ok(Discovery::Legacy(revision)),
        Some(_) => {}
        None => return Err(Error::unsupported("any revision that this client has")),
    }
    let info = result.meta.get(META_SERVER_INFO).cloned().unwrap_or_default();
    let server = facts(&info, result.capabilities, result.instructions);
    Ok(Discovery::Modern(Agreement { revision: Revision::LATEST, server, is_preliminary: false }))
}

fn facts(info: &Value, capabilities: Value, instructions: Option<String>) -> ServerFacts {
    let text = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    ServerFacts { name: text("name"), version: text("version"), instructions, capabilities }
}

fn newest<'a>(names: impl Iterator<Item = &'a str>) -> Option<Revision> {
    names.filter_map(|name| name.parse().ok()).max()
}

/// The error of a server that has accepted `initialize`, and refuses what follows it.
fn refused_initialized(error: Error) -> Error {
    let Error::Http { status, content_type, body } = error else { return error };
    let reply: Value = serde_json::from_str(&body).unwrap_or_default();
    let (reason, content_type) = match reply.pointer("/error/message").and_then(Value::as_str) {
        Some(message) => (message, None),
        None => (&*body, content_type),
    };
    let what = "the server accepts `initialize`, and refuses `notifications/initialized`, which follows it";
    let body = if reason.is_empty() { what.to_owned() } else { format!("{what}: {reason}") };
    Error::Http { status, content_type, body }
}
