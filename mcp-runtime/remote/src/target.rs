//! The server that is mounted, as the program names it, and the credentials that the program has for it. A target can be
//! connected to again; credentials go nowhere but there, and never without them where the program has set some.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header::AUTHORIZATION};
use mcp_runtime::{
    addition::AddedItems,
    client::{ChangeEvent, Client, ClientBuilder, Error, LogMessage},
};

/// How long a connection may take, with the start of a process.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a list may take with all its pages.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// Entries of one list.
const MAX_ENTRIES: usize = 10_000;
/// The longest log message of the other server that is written to the log, in characters.
const MAX_LOGGED: usize = 1000;

/// A value that the program has in its state; `None` while that is not made.
pub(crate) type FromState = Arc<dyn Fn(&AddedItems) -> Option<String> + Send + Sync>;

/// A server, and what the program sends to it with every request or at its start.
pub(crate) struct Target {
    /// A URL, or a command line.
    text: String,
    is_url: bool,
    headers: Vec<(HeaderName, FromState)>,
    environment: Vec<(String, FromState)>,
    error: Option<String>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // neither a URL nor a command: both may have credentials
        f.write_str(if self.is_url { "Target::Url" } else { "Target::Command" })
    }
}

impl Target {
    pub(crate) fn new(text: String) -> Self {
        let is_url = text.split_once("://").is_some_and(|(scheme, _)| {
            scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
        });
        let error = match is_url {
            true => check_url(&text).err(),
            false => text.trim().is_empty().then(|| "it has neither a URL nor a command line".to_owned()),
        };
        Self { text, is_url, headers: Vec::new(), environment: Vec::new(), error }
    }

    pub(crate) fn add_header(&mut self, name: &str, value: FromState) {
        match HeaderName::try_from(name) {
            _ if !self.is_url => {
                self.fail(
                    "a process has no headers\npass credentials to it with `.env(name, ..)`".to_owned(),
                );
            }
            Ok(name) => self.headers.push((name, value)),
            Err(_) => self.fail(format!("`{}` is not the name of a header", name.escape_debug())),
        }
    }

    pub(crate) fn add_variable(&mut self, name: String, value: FromState) {
        if self.is_url {
            self.fail(
                "a URL has no environment\npass credentials with `.bearer(..)` or `.header(name, ..)`"
                    .to_owned(),
            );
        } else {
            self.environment.push((name, value));
        }
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// What is wrong with it.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The program of a process, without its arguments.
    pub(crate) fn program(&self) -> Option<&str> {
        self.text.split_whitespace().next().filter(|_| !self.is_url)
    }

    /// Connects to it, with the credential of a caller or else with those of the program, and never with both.
    ///
    /// # Errors
    /// It cannot be reached or started, or a credential is missing.
    pub(crate) async fn connect(
        &self,
        name: &str,
        items: &AddedItems,
        credential: Option<&HeaderValue>,
        on_change: impl Fn(ChangeEvent) + Send + Sync + 'static,
    ) -> Result<Client, String> {
        let logged = name.to_owned();
        let mut builder = Client::builder()
            .info(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .limits(|limits| {
                limits.connect_timeout(CONNECT_TIMEOUT).list_timeout(LIST_TIMEOUT).list_entries(MAX_ENTRIES)
            })
            .read_cache(0, 0)
            .on_log(move |message| log(&logged, &message));
        builder = match credential.cloned() {
            Some(credential) => builder.headers_with(move |map: &mut HeaderMap| {
                map.insert(AUTHORIZATION, credential.clone());
            }),
            None => self.with_credentials(builder, items)?.on_change(on_change),
        };
        builder.connect(&self.text).await.map_err(|error: Error| error.to_string())
    }

    /// Whether lists are read with credentials of the program.
    pub(crate) fn has_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    pub(crate) fn is_url(&self) -> bool {
        self.is_url
    }

    fn with_credentials(
        &self,
        mut builder: ClientBuilder,
        items: &AddedItems,
    ) -> Result<ClientBuilder, String> {
        for (variable, value) in &self.environment {
            let value = value(items);
            builder = builder.env(variable, value.ok_or_else(|| format!("`{variable}` has no value"))?);
        }
        for (header, value) in &self.headers {
            let value = value(items).and_then(|value| header_value(&value));
            value.ok_or_else(|| format!("the header `{header}` has no valid value"))?;
        }
        if self.headers.is_empty() {
            return Ok(builder);
        }
        let (headers, items) = (self.headers.clone(), items.clone());
        Ok(builder.headers_with(move |map: &mut HeaderMap| {
            for (name, value) in &headers {
                // nothing to fall back to: the server refuses an empty credential
                let value = value(&items).and_then(|value| header_value(&value));
                map.insert(name.clone(), value.unwrap_or_else(|| HeaderValue::from_static("")));
            }
        }))
    }
}

/// The header with a token; `None` if it cannot be one.
pub(crate) fn bearer(token: &str) -> Option<HeaderValue> {
    header_value(&format!("Bearer {token}"))
}

fn header_value(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Checks that what is sent cannot be read on the way.
fn check_url(text: &str) -> Result<(), String> {
    let url: Uri = text.parse().map_err(|_| "its URL is not valid".to_owned())?;
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(
            "its URL has credentials, which logs would show\nuse `.bearer(..)` or `.header(name, ..)`"
                .to_owned(),
        );
    }
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_loopback = host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    match url.scheme_str() {
        Some("https") => Ok(()),
        Some(_) if is_loopback => Ok(()),
        _ => Err("its URL is `http`, which others on the way can read and change\nwrite `https`".to_owned()),
    }
}

/// Writes a log message of the other server to the log of this one.
fn log(name: &str, message: &LogMessage) {
    let text = match &message.data {
        serde_json::Value::String(text) => text.clone(),
        data => data.to_string(),
    };
    let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_LOGGED).collect();
    tracing::info!(remote = name, level = ?message.level, "{text}");
}
