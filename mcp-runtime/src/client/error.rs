//! Errors between a client and its server, as kinds that a program can match on. No error contains a token or a header that
//! was sent.

use std::{fmt, process::ExitStatus, time::Duration};

use serde_json::Value;

use super::CallResult;
use crate::core::{
    protocol,
    visible_text::{in_lines, in_one_line},
};

/// Why a request to a server has no result.
///
/// The result of a tool that failed is not an error: it is a [`CallResult`] with `is_error`, unless
/// [`ok`](CallResult::ok) makes it one.
///
/// `Debug` is the message too, and the causes of an error: `main` prints it so.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// No connection to the server: it was not reached, or the connection broke before the response.
    NotConnected {
        /// The reason, for people.
        reason: String,
    },
    /// The server does not declare this capability, or has no version of the protocol that this client has.
    Unsupported {
        /// The name of the missing capability or version.
        what: String,
    },
    /// The server has no resource with this URI (`-32002`, or `-32602` for `resources/read`).
    NotFound {
        /// The requested URI.
        uri: String,
    },
    /// HTTP 401: the server does not accept the credentials, or requires some.
    Unauthorized {
        /// The value of `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The client could not authorize itself (feature `client-oauth`): the user did not, or the authorization server
    /// refused it, cannot be reached, or is not one that may be used. It is not tried again before the next call.
    Authorization {
        /// The error that caused this one.
        cause: Box<Error>,
    },
    /// HTTP 403: the credentials do not suffice.
    Forbidden {
        /// The scopes that the server asks for; empty if it names none.
        scopes: Vec<String>,
        /// The value of `Content-Type`, which tells a page of a proxy from the server's own reply.
        content_type: Option<String>,
        /// The beginning of the body.
        body: String,
    },
    /// The tool failed; of [`CallResult::ok`].
    Tool {
        /// Its text blocks.
        text: String,
        /// The whole result.
        result: Box<CallResult>,
    },
    /// A JSON-RPC error.
    Protocol {
        /// `code` on the wire.
        code: i64,
        /// `message` on the wire.
        message: String,
        /// `data` on the wire.
        data: Option<Value>,
    },
    /// The time is over for a request, or for everything that a call causes; the server was notified that it is cancelled.
    Timeout {
        /// The limit.
        after: Duration,
        /// The option that sets it, such as `timeout` or `request_timeout`; `None` for a fixed limit.
        option: Option<&'static str>,
    },
    /// The call was cancelled: by the server, or because a task was.
    Cancelled,
    /// The server's process ended, or its output did.
    Closed {
        /// Its exit status; `None` for a server that is not a child process, or has not exited.
        status: Option<ExitStatus>,
        /// The end of what it wrote to stderr, and of lines of its stdout that are not messages, each after `stdout: `; at
        /// most 64 KiB.
        stderr: String,
    },
    /// A message, a list, or everything that the server sent for one call has too many bytes.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// The option that sets it, such as `max_message` or `list_bytes`; `None` for a fixed limit.
        option: Option<&'static str>,
    },
    /// The server sends too many of something: pages, entries, or requests to the client.
    TooMany {
        /// A description of the value and of the limit that it exceeds.
        what: String,
        /// The option of [`ClientLimits`](super::ClientLimits) that sets it.
        option: &'static str,
    },
    /// Another status of HTTP than success, without a JSON-RPC error.
    Http {
        /// The status code.
        status: u16,
        /// The value of `Content-Type`.
        content_type: Option<String>,
        /// The beginning of the body; of a redirect that was not followed, its target and the reason.
        body: String,
    },
    /// A message of the server, or a value given to the client, is not what the protocol or a schema requires.
    Invalid {
        /// The reason why it is invalid.
        what: String,
    },
    /// A rule of this program does not allow it; of the [`agent`](super::agent) module.
    Denied {
        /// A description of the refused operation; it names neither a URI nor an argument.
        what: String,
    },
    /// A function of this program that answers requests of the server failed.
    Handler {
        /// The method of the server's request.
        method: String,
        /// The message that the function returned.
        message: String,
    },
}

impl Error {
    pub(super) fn not_connected(reason: impl fmt::Display) -> Self {
        Self::NotConnected { reason: reason.to_string() }
    }

    pub(super) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    pub(super) fn timeout(after: Duration, option: &'static str) -> Self {
        Self::Timeout { after, option: Some(option) }
    }

    pub(super) fn too_large(limit: usize, option: Option<&'static str>) -> Self {
        Self::TooLarge { limit, option }
    }

    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }

    #[cfg(feature = "client-oauth")]
    pub(super) fn authorization(cause: Self) -> Self {
        match cause {
            Self::Authorization { .. } => cause,
            cause => Self::Authorization { cause: Box::new(cause) },
        }
    }

    /// The kind of error, for telemetry: the code of a JSON-RPC error, a status of HTTP, or a word.
    pub(super) fn kind(&self) -> String {
        let word = match self {
            Self::Protocol { code, .. } => return code.to_string(),
            Self::Http { status, .. } => return status.to_string(),
            Self::NotConnected { .. } => "not_connected",
            Self::Unsupported { .. } => "unsupported",
            Self::NotFound { .. } => "not_found",
            Self::Unauthorized { .. } => "401",
            Self::Authorization { .. } => "authorization",
            Self::Forbidden { .. } => "403",
            Self::Tool { .. } => "tool_error",
            Self::Timeout { .. } => "timeout",
            Self::Cancelled => "cancelled",
            Self::Closed { .. } => "closed",
            Self::TooLarge { .. } => "too_large",
            Self::TooMany { .. } => "too_many",
            Self::Invalid { .. } => "invalid",
            Self::Denied { .. } => "denied",
            Self::Handler { .. } => "handler",
        };
        word.to_owned()
    }

    /// The message in one line, for logs.
    pub(super) fn in_one_line(&self) -> String {
        in_one_line(&self.to_string()).to_string()
    }

    /// The code of a JSON-RPC error.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Protocol { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The same error, or `NotFound` if it is how servers say that they have no such resource.
    pub(super) fn of_resource(self, uri: &str) -> Self {
        match self {
            Self::Protocol { code: protocol::RESOURCE_NOT_FOUND, .. } => {
                Self::NotFound { uri: uri.to_owned() }
            }
            // 2026-07-28 has no separate code for it; the URI is the only param that this client sends
            Self::Protocol { code: protocol::INVALID_PARAMS, .. } => Self::NotFound { uri: uri.to_owned() },
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected { reason } => write!(f, "not connected: {}", in_lines(reason)),
            Self::Unsupported { what } => write!(f, "the server does not support {}", in_lines(what)),
            Self::NotFound { uri } => write!(f, "no resource `{}`", in_one_line(uri)),
            Self::Unauthorized { .. } => f.write_str("the server requires authorization (HTTP 401)"),
            Self::Authorization { cause } => {
                write!(f, "the client could not authorize itself: {}", in_lines(&cause.to_string()))
            }
            Self::Forbidden { scopes, content_type, body } => {
                f.write_str("the server refuses access (HTTP 403")?;
                write_body(f, content_type.as_deref(), body)?;
                f.write_str(")")?;
                if scopes.is_empty() {
                    return Ok(());
                }
                write!(f, "\nit asks for the scopes `{}`", in_one_line(&scopes.join(" ")))
            }
            Self::Tool { text, .. } => write!(f, "the tool failed: {}", in_lines(text)),
            Self::Protocol { code, message, .. } => write!(f, "{} ({code})", in_lines(message)),
            Self::Timeout { after, option: None } => write!(f, "no response within {after:?}"),
            Self::Timeout { after, option: Some(option) } => {
                let what = match *option {
                    "timeout" => "the call was not complete",
                    "connect_timeout" => "the connection was not ready",
                    "list_timeout" => "the list was not complete",
                    _ => "no response",
                };
                write!(f, "{what} within {after:?}\nraise `{option}`")
            }
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::Closed { status, stderr } => {
                f.write_str("the server closed the connection")?;
                if let Some(status) = status {
                    write!(f, " ({status})")?;
                }
                if stderr.is_empty() {
                    Ok(())
                } else {
                    write!(f, "\nits output ends with:\n  {}", in_lines(stderr.trim_end()))
                }
            }
            Self::TooLarge { limit, option } => {
                let what = match *option {
                    Some("list_bytes") => "a list of the server",
                    Some("call_bytes") => "the total of the server's messages for one call",
                    _ => "a message of the server",
                };
                write!(f, "{what} exceeds {limit} bytes")?;
                option.map_or(Ok(()), |option| write!(f, "\nraise `{option}`"))
            }
            Self::TooMany { what, option } => write!(f, "{}\nraise `{option}`", in_lines(what)),
            Self::Http { status, content_type, body } => {
                write!(f, "HTTP status {status}")?;
                write_body(f, content_type.as_deref(), body)
            }
            Self::Invalid { what } => in_lines(what).fmt(f),
            Self::Denied { what } => write!(f, "not allowed: {}", in_lines(what)),
            Self::Handler { method, message } => {
                write!(f, "the answer to `{}` failed: {}", in_one_line(method), in_lines(message))
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The beginning of a body, with its type where that is not plain text or JSON.
fn write_body(f: &mut fmt::Formatter<'_>, content_type: Option<&str>, body: &str) -> fmt::Result {
    const SHOWN: usize = 200;
    if body.is_empty() {
        return Ok(());
    }
    if let Some(content_type) = content_type {
        write!(f, ", {}", in_one_line(content_type))?;
    }
    let shown: String = body.chars().take(SHOWN).collect();
    let rest = if shown.len() < body.len() { " .." } else { "" };
    write!(f, ": {}{rest}", in_one_line(&shown))
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Authorization { cause } => cause.source(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_main_returns_is_printed_as_its_message() {
        let inner = Error::Http { status: 503, content_type: None, body: "busy".to_owned() };
        let error = Error::Authorization { cause: Box::new(inner) };
        assert_eq!(format!("{error:?}"), "the client could not authorize itself: HTTP status 503: busy");
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}
