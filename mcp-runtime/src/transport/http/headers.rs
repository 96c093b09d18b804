//! The headers that the protocol cares about, found in one walk over the request's.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::response::HttpError;
use crate::{
    dispatch::unsupported_version,
    jsonrpc::{JsonRpcMessage, ProtocolError, decode_string},
    protocol::{HEADER_MISMATCH, INVALID_REQUEST, Revision},
};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// In front of a tool's own headers.
pub(super) const PARAM_PREFIX: &str = "mcp-param-";

/// One header.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum HeaderField<'a> {
    #[default]
    Absent,
    One(&'a HeaderValue),
    /// More than once; the first of them.
    Repeated(&'a HeaderValue),
}

impl<'a> HeaderField<'a> {
    fn add(&mut self, value: &'a HeaderValue) {
        *self = match *self {
            Self::Absent => Self::One(value),
            Self::One(first) | Self::Repeated(first) => Self::Repeated(first),
        };
    }

    fn is_repeated(self) -> bool {
        matches!(self, Self::Repeated(_))
    }

    /// The value, also of a header that should not have been repeated.
    pub(super) fn first(self) -> Option<&'a HeaderValue> {
        match self {
            Self::Absent => None,
            Self::One(value) | Self::Repeated(value) => Some(value),
        }
    }
}

/// What kind of body a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) stream: bool,
}

impl Accepts {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::ACCEPT).iter();
        match (values.next(), values.next()) {
            (None, _) => Self { json: true, stream: true },
            (Some(value), None)
                if matches!(value.as_bytes(), b"application/json, text/event-stream" | b"*/*") =>
            {
                Self { json: true, stream: true }
            }
            _ => {
                let ranges: Vec<&str> =
                    headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
                Self {
                    json: accepted(&ranges, "application", "json"),
                    stream: accepted(&ranges, "text", "event-stream"),
                }
            }
        }
    }
}

/// The headers of one request.
#[derive(Debug, Default)]
pub(super) struct ProtocolHeaders<'a> {
    pub(super) host: HeaderField<'a>,
    pub(super) origin: HeaderField<'a>,
    pub(super) content_type: HeaderField<'a>,
    pub(super) version: HeaderField<'a>,
    pub(super) session: HeaderField<'a>,
    pub(super) last_event: HeaderField<'a>,
    pub(super) method: HeaderField<'a>,
    pub(super) name: HeaderField<'a>,
    /// The client waits for `100 Continue` before it sends its body.
    pub(super) expects: bool,
    /// Some `Mcp-Param-*` is repeated.
    param_repeated: bool,
}

impl<'a> ProtocolHeaders<'a> {
    pub(super) fn read(headers: &'a HeaderMap) -> Self {
        let mut head = Self::default();
        let mut last_param = None;
        for (name, value) in headers {
            match name.as_str() {
                "host" => head.host.add(value),
                "origin" => head.origin.add(value),
                "content-type" => head.content_type.add(value),
                "mcp-protocol-version" => head.version.add(value),
                "mcp-session-id" => head.session.add(value),
                "last-event-id" => head.last_event.add(value),
                "mcp-method" => head.method.add(value),
                "mcp-name" => head.name.add(value),
                "expect" => head.expects = true,
                // a repeated name comes with its values in a row
                param if param.starts_with(PARAM_PREFIX) => {
                    head.param_repeated |= last_param == Some(param);
                    last_param = Some(param);
                }
                _ => {}
            }
        }
        head
    }

    /// Whether the version header names a revision that is not served.
    pub(super) fn is_unknown_version(&self) -> bool {
        self.version
            .first()
            .is_some_and(|version| version.to_str().ok().and_then(Revision::from_wire).is_none())
    }

    /// Whether the version header alone makes this a request of 2026-07-28.
    pub(super) fn is_modern(&self) -> bool {
        self.version.first().is_some_and(|version| legacy(version).is_none())
    }

    /// The handshake revision that the version header names.
    pub(super) fn legacy_revision(&self) -> Option<Revision> {
        self.version.first().and_then(legacy)
    }

    /// Refuses a header of the protocol that is repeated.
    pub(super) fn once(&self) -> Result<(), &'static str> {
        for (field, name) in [
            (self.version, "MCP-Protocol-Version"),
            (self.session, "Mcp-Session-Id"),
            (self.last_event, "Last-Event-ID"),
            (self.method, "Mcp-Method"),
            (self.name, "Mcp-Name"),
        ] {
            if field.is_repeated() {
                return Err(name);
            }
        }
        if self.param_repeated { Err("Mcp-Param-*") } else { Ok(()) }
    }

    /// The refusal of a repeated header, when the body has not been read.
    pub(super) fn repeated(&self, name: &str) -> HttpError {
        let code = if self.is_modern() { HEADER_MISMATCH } else { INVALID_REQUEST };
        HttpError::new(StatusCode::BAD_REQUEST, code, format!("`{name}` is repeated"))
    }

    /// Whether the body is declared as JSON.
    pub(super) fn is_json(&self) -> bool {
        let HeaderField::One(value) = self.content_type else { return false };
        if value.as_bytes() == b"application/json" {
            return true;
        }
        value.to_str().is_ok_and(|value| {
            let essence = value.split(';').next().unwrap_or_default();
            essence.trim().eq_ignore_ascii_case("application/json")
        })
    }
}

fn legacy(version: &HeaderValue) -> Option<Revision> {
    let revision = Revision::from_wire(version.to_str().ok()?)?;
    (!revision.is_modern()).then_some(revision)
}

/// Whether the most specific range that covers the type has a weight above nought.
fn accepted(values: &[&str], kind: &str, subtype: &str) -> bool {
    let mut best = (0, false);
    for range in values.iter().flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let Some((k, s)) = parts.next().and_then(|essence| essence.split_once('/')) else { continue };
        let rank = match (k.eq_ignore_ascii_case(kind), s.eq_ignore_ascii_case(subtype)) {
            (true, true) => 3,
            (true, _) if s == "*" => 2,
            _ if k == "*" && s == "*" => 1,
            _ => continue,
        };
        let refused = parts.filter_map(|p| p.split_once('=')).any(|(key, weight)| {
            key.trim().eq_ignore_ascii_case("q") && weight.trim().parse::<f32>().is_ok_and(|q| q <= 0.0)
        });
        if rank > best.0 {
            best = (rank, !refused);
        }
    }
    best.1
}

/// Compares the headers that every request of 2026-07-28 has with its body.
pub(super) fn check_headers(
    message: &JsonRpcMessage<'_>,
    version: &str,
    head: &ProtocolHeaders<'_>,
) -> Result<(), ProtocolError> {
    let mismatch = |text: String| Err(mismatch(text));
    if let Err(name) = head.once() {
        return mismatch(format!("`{name}` is repeated"));
    }
    match head.version {
        HeaderField::One(sent) if sent.as_bytes() == version.as_bytes() => {}
        HeaderField::Absent => return mismatch("`MCP-Protocol-Version` is missing".into()),
        _ => return mismatch("`MCP-Protocol-Version` is not the version in `_meta`".into()),
    }
    if version != Revision::LATEST.as_str() {
        return Err(unsupported_version(version));
    }
    method_and_name(message, message.method().unwrap_or_default(), head)
}

/// A header is not what the body says.
pub(super) fn mismatch(text: impl Into<String>) -> ProtocolError {
    ProtocolError::new(HEADER_MISMATCH, text)
}

/// A header's value: plain ASCII, or UTF-8 as `=?base64?…?=`.
pub(super) fn decode(value: &HeaderValue) -> Option<Cow<'_, [u8]>> {
    let text = value.to_str().ok()?.trim_matches([' ', '\t']);
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(Cow::Borrowed(text.as_bytes())),
        Some(encoded) => {
            let decoded = STANDARD.decode(encoded).ok()?;
            std::str::from_utf8(&decoded).ok()?;
            Some(Cow::Owned(decoded))
        }
    }
}

/// Checks `Mcp-Method` and `Mcp-Name`.
fn method_and_name(
    message: &JsonRpcMessage<'_>,
    method: &str,
    head: &ProtocolHeaders<'_>,
) -> Result<(), ProtocolError> {
    match head.method.first() {
        None => return Err(mismatch("`Mcp-Method` is missing")),
        Some(sent) if sent.as_bytes() == method.as_bytes() => {}
        Some(_) => return Err(mismatch("`Mcp-Method` is not the body's `method`")),
    }
    let params = message.params();
    let (named, member) = match method {
        "tools/call" | "prompts/get" => (params.name, "name"),
        "resources/read" => (params.uri, "uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => (params.task_id, "taskId"),
        _ => return Ok(()),
    };
    match (named.and_then(decode_string), head.name) {
        // what the body lacks is for dispatch to say
        (None, HeaderField::Absent) => Ok(()),
        (Some(_), HeaderField::Absent) => Err(mismatch("`Mcp-Name` is missing")),
        (Some(named), HeaderField::One(sent))
            if decode(sent).is_some_and(|sent| sent == named.as_bytes()) =>
        {
            Ok(())
        }
        _ => Err(mismatch(format!("`Mcp-Name` is not the body's `params.{member}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(values: &[&'static str]) -> (bool, bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::ACCEPT, HeaderValue::from_static(value));
        }
        let accepts = Accepts::read(&headers);
        (accepts.json, accepts.stream)
    }

    #[test]
    fn accept_is_read_by_its_rules() {
        assert_eq!(accepts(&[]), (true, true));
        assert_eq!(accepts(&["*/*"]), (true, true));
        assert_eq!(accepts(&["application/json", "text/event-stream"]), (true, true));
        assert_eq!(accepts(&["text/event-stream , Application/JSON;q=0.5"]), (true, true));
        assert_eq!(accepts(&["application/json"]), (true, false));
        assert_eq!(accepts(&["text/*"]), (false, true));
        assert_eq!(accepts(&["*/*, text/event-stream;q=0"]), (true, false));
        assert_eq!(accepts(&["application/*;q=0, */*"]), (false, true));
        assert_eq!(accepts(&["text/html"]), (false, false));
    }

    #[test]
    fn json_may_have_parameters() {
        let is_json = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]);
            ProtocolHeaders::read(&headers).is_json()
        };
        assert!(is_json("application/json") && is_json("Application/JSON ; charset=utf-8"));
        assert!(!is_json("text/plain") && !is_json("application/json5") && !is_json(""));
    }

    #[test]
    fn repeated_headers_are_seen() {
        let mut headers = HeaderMap::new();
        headers.append("mcp-param-a", HeaderValue::from_static("1"));
        headers.append("mcp-param-b", HeaderValue::from_static("1"));
        assert!(ProtocolHeaders::read(&headers).once().is_ok());
        headers.append("mcp-param-a", HeaderValue::from_static("1"));
        assert!(ProtocolHeaders::read(&headers).once().is_err());
        let mut headers = HeaderMap::new();
        headers.append("mcp-name", HeaderValue::from_static("1"));
        headers.append("mcp-name", HeaderValue::from_static("1"));
        assert_eq!(ProtocolHeaders::read(&headers).once(), Err("Mcp-Name"));
    }
}
