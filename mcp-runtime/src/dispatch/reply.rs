//! The frame of a reply, and what failures look like in it.

use serde_json::{Map, Value};

use super::Request;
use crate::{
    jsonrpc::{Object, ProtocolError},
    protocol::{META_SERVER_INFO, Revision},
    reply::{ErrorKind, Failure, ToolError},
    server::Server,
};

/// The HTTP status of a reply; other transports have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// 200
    Ok,
    /// 400
    BadRequest,
    /// 404
    NotFound,
    /// 503
    Unavailable,
}

/// Where a reply goes and in which revision, apart from the request that it answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// Raw JSON.
    pub(super) id: &'a str,
    pub(super) revision: Revision,
}

/// Appends a whole result: what every result of the revision has, around what `fill` writes.
pub(super) fn framed(
    out: &mut Vec<u8>,
    frame: Frame<'_>,
    server: &Server,
    meta: Option<&Map<String, Value>>,
    fill: impl FnOnce(&mut Object<'_>),
) {
    framed_as(r#""complete""#, out, frame, server, meta, fill);
}

/// The same for a result of that `resultType`, which is raw JSON.
pub(super) fn framed_as(
    kind: &str,
    out: &mut Vec<u8>,
    frame: Frame<'_>,
    server: &Server,
    meta: Option<&Map<String, Value>>,
    fill: impl FnOnce(&mut Object<'_>),
) {
    enveloped(out, frame.id, |object| {
        if frame.revision.is_modern() {
            object.raw("resultType", kind);
        }
        fill(object);
        match meta {
            None if frame.revision.is_modern() => {
                object.raw("_meta", server.identity());
            }
            None => {}
            Some(meta) => {
                object.object("_meta", |m| {
                    if frame.revision.is_modern() {
                        m.raw(META_SERVER_INFO, server.brief_info());
                    }
                    for (key, value) in meta.iter().filter(|(key, _)| *key != META_SERVER_INFO) {
                        m.any_value(key, value);
                    }
                });
            }
        }
    });
}

/// Appends a result whose members are all written by `fill`; `id` is raw JSON.
pub(super) fn enveloped(out: &mut Vec<u8>, id: &str, fill: impl FnOnce(&mut Object<'_>)) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":"#);
    let mut object = Object::new(out);
    fill(&mut object);
    object.end();
    out.push(b'}');
}

/// The same for a request at hand.
pub(super) fn result(
    out: &mut Vec<u8>,
    request: Request<'_>,
    server: &Server,
    meta: Option<&Map<String, Value>>,
    fill: impl FnOnce(&mut Object<'_>),
) {
    framed(out, Frame { id: request.id, revision: request.revision }, server, meta, fill);
}

/// What the client learns of a failed function: its own words if they are public, else only that it failed; the log
/// gets the whole chain. `Err` is a JSON-RPC error that the function asked for.
pub(super) fn shown(
    server: &Server,
    kind: &'static str,
    name: &str,
    error: ToolError,
) -> Result<(String, Vec<crate::content::Content>), ProtocolError> {
    match error.0 {
        ErrorKind::Public { message, content } => Ok((message.into_owned(), content)),
        ErrorKind::Protocol(error) => Err(error),
        ErrorKind::Private(cause) => {
            let chain = chain(&*cause);
            tracing::error!(kind, name, error = %chain, "call failed");
            let text = format!("{kind} '{name}' failed");
            Ok((if server.options().detailed_errors { format!("{text}: {chain}") } else { text }, Vec::new()))
        }
    }
}

/// The JSON-RPC error of a read, prompt, list or completion that failed; `wrong` and `absent` are the kind's own words
/// for arguments that do not fit and for nothing found.
pub(super) fn refused(
    server: &Server,
    kind: &'static str,
    name: &str,
    failure: Failure,
    wrong: impl FnOnce(String) -> ProtocolError,
    absent: impl FnOnce() -> ProtocolError,
) -> ProtocolError {
    match failure {
        // a call that can have rounds has ended one before this, and only tools become tasks
        Failure::NotFound | Failure::Unanswered | Failure::Task => absent(),
        Failure::Arguments(report) => wrong(report),
        Failure::Protocol(error) => error,
        Failure::Body(error) => shown(server, kind, name, error)
            .map_or_else(|error| error, |(text, _)| ProtocolError::internal(text)),
    }
}

/// What a list or a completion that found nothing says.
pub(super) fn nothing() -> ProtocolError {
    ProtocolError::internal("nothing was found")
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
