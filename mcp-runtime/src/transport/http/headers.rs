//! The headers that the protocol defines, read in one pass over a request's headers, and their comparison with the
//! body.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::http_error::HttpError;
use crate::core::{
    dispatch::unsupported_version,
    jsonrpc::{JsonRpcMessage, ProtocolError, decode_string},
    protocol::{HEADER_MISMATCH, INVALID_REQUEST, Method, Revision},
    reason::Refusal,
};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The prefix of headers that repeat a tool's arguments.
pub(super) const PARAM_PREFIX: &str = "mcp-param-";

/// One header.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum HeaderField<'a> {
    #[default]
    Absent,
    One(&'a HeaderValue),
    /// More than once; the first value.
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

    /// The value, or the first one if the header is repeated.
    pub(super) fn first(self) -> Option<&'a HeaderValue> {
        match self {
            Self::Absent => None,
            Self::One(value) | Self::Repeated(value) => Some(value),
        }
    }
}

/// The media types that a client accepts.
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
                    json: accepts_type(&ranges, "application", "json"),
                    stream: accepts_type(&ranges, "text", "event-stream"),
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
    /// The client waits for `100 Continue` before it sends the body.
    pub(super) expects_continue: bool,
    /// The body has a transfer coding other than `chunked`, or several.
    pub(super) has_unknown_coding: bool,
    /// Some `Mcp-Param-*` is repeated.
    param_repeated: bool,
}

impl<'a> ProtocolHeaders<'a> {
    pub(super) fn read(headers: &'a HeaderMap) -> Self {
        let mut fields = Self::default();
        let mut last_param = None;
        let mut codings = 0;
        for (name, value) in headers {
            match name.as_str() {
                "host" => fields.host.add(value),
                "origin" => fields.origin.add(value),
                "content-type" => fields.content_type.add(value),
                "mcp-protocol-version" => fields.version.add(value),
                "mcp-session-id" => fields.session.add(value),
                "last-event-id" => fields.last_event.add(value),
                "mcp-method" => fields.method.add(value),
                "mcp-name" => fields.name.add(value),
                "expect" => fields.expects_continue = true,
                "transfer-encoding" => {
                    codings += 1;
                    fields.has_unknown_coding |=
                        codings > 1 || !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
                }
                // the values of a repeated header are adjacent
                param if param.starts_with(PARAM_PREFIX) => {
                    fields.param_repeated |= last_param == Some(param);
                    last_param = Some(param);
                }
                _ => {}
            }
        }
        fields
    }

    /// The version header, if it names an unknown revision.
    pub(super) fn unknown_version(&self) -> Option<Cow<'_, str>> {
        let version = self.version.first().filter(|version| parse_revision(version).is_none())?;
        Some(String::from_utf8_lossy(version.as_bytes()))
    }

    /// Whether the version header names a revision that is not a legacy one.
    pub(super) fn is_modern(&self) -> bool {
        self.version.first().is_some_and(|version| parse_legacy_revision(version).is_none())
    }

    /// The legacy revision that the version header names.
    pub(super) fn legacy_revision(&self) -> Option<Revision> {
        self.version.first().and_then(parse_legacy_revision)
    }

    /// Checks that no header of the protocol is repeated.
    ///
    /// # Errors
    /// The name of a repeated header.
    pub(super) fn check_repeated(&self) -> Result<(), &'static str> {
        for (field, name) in [
            (self.version, "MCP-Protocol-Version"),
            (self.session, "Mcp-Session-Id"),
            (self.method, "Mcp-Method"),
            (self.name, "Mcp-Name"),
        ] {
            if field.is_repeated() {
                return Err(name);
            }
        }
        if self.param_repeated { Err("Mcp-Param-*") } else { Ok(()) }
    }

    /// The same for a message that is not of 2026-07-28.
    ///
    /// # Errors
    /// `400`: one of them is repeated.
    pub(super) fn refuse_repeated(&self) -> Result<(), HttpError> {
        self.check_repeated().map_err(|name| self.repeated_error(name))
    }

    /// The error of a repeated header, where the body has not been read.
    pub(super) fn repeated_error(&self, name: &str) -> HttpError {
        let code = if self.is_modern() { HEADER_MISMATCH } else { INVALID_REQUEST };
        HttpError::new(Refusal::Malformed, code, format!("`{name}` is repeated"))
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

fn parse_legacy_revision(version: &HeaderValue) -> Option<Revision> {
    parse_revision(version).filter(|revision| !revision.is_modern())
}

fn parse_revision(version: &HeaderValue) -> Option<Revision> {
    version.to_str().ok()?.parse().ok()
}

/// Whether the most specific media range that matches the type has a weight above zero.
fn accepts_type(values: &[&str], kind: &str, subtype: &str) -> bool {
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
        let excluded = parts.filter_map(|p| p.split_once('=')).any(|(key, weight)| {
            key.trim().eq_ignore_ascii_case("q") && weight.trim().parse::<f32>().is_ok_and(|q| q <= 0.0)
        });
        if rank > best.0 {
            best = (rank, !excluded);
        }
    }
    best.1
}

/// Compares the headers of a request of 2026-07-28 with its body.
pub(super) fn check_headers(
    message: &JsonRpcMessage<'_>,
    version: &str,
    headers: &ProtocolHeaders<'_>,
) -> Result<(), ProtocolError> {
    let refuse = |message: String| Err(header_mismatch(message));
    if let Err(name) = headers.check_repeated() {
        return refuse(format!("`{name}` is repeated"));
    }
    match headers.version {
        HeaderField::One(sent) if sent.as_bytes() == version.as_bytes() => {}
        HeaderField::Absent => return refuse("`MCP-Protocol-Version` is missing".into()),
        _ => return refuse("`MCP-Protocol-Version` is not the version in `_meta`".into()),
    }
    if version != Revision::LATEST.as_str() {
        return Err(unsupported_version(version));
    }
    check_method_and_name(message, message.method().unwrap_or_default(), headers)
}

/// The error of a header that differs from the body.
pub(super) fn header_mismatch(text: impl Into<String>) -> ProtocolError {
    ProtocolError::new(HEADER_MISMATCH, text)
}

/// Decodes a header's value: plain ASCII, or UTF-8 as `=?base64?…?=`.
pub(crate) fn decode_value(value: &HeaderValue) -> Option<Cow<'_, [u8]>> {
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
fn check_method_and_name(
    message: &JsonRpcMessage<'_>,
    method: &str,
    headers: &ProtocolHeaders<'_>,
) -> Result<(), ProtocolError> {
    match headers.method.first() {
        None => return Err(header_mismatch("`Mcp-Method` is missing")),
        Some(sent) if sent.as_bytes() == method.as_bytes() => {}
        Some(_) => return Err(header_mismatch("`Mcp-Method` is not the body's `method`")),
    }
    let Some(member) = Method::of_name(method).and_then(|method| method.named_by) else { return Ok(()) };
    let value = message.params().named_by(member);
    match (value.and_then(decode_string), headers.name) {
        // the header is required, whether the body has what it repeats or not
        (None, HeaderField::Absent) => {
            Err(header_mismatch(format!("`Mcp-Name` is missing, and so is the body's `params.{member}`")))
        }
        (Some(_), HeaderField::Absent) => Err(header_mismatch("`Mcp-Name` is missing")),
        (Some(value), HeaderField::One(sent))
            if decode_value(sent).is_some_and(|sent| sent == value.as_bytes()) =>
        {
            Ok(())
        }
        _ => Err(header_mismatch(format!("`Mcp-Name` is not the body's `params.{member}`"))),
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
    fn accept_follows_the_rules_of_media_ranges() {
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
    fn the_json_media_type_may_have_parameters() {
        let is_json = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]);
            ProtocolHeaders::read(&headers).is_json()
        };
        assert!(is_json("application/json") && is_json("Application/JSON ; charset=utf-8"));
        assert!(!is_json("text/plain") && !is_json("application/json5") && !is_json(""));
    }

    #[test]
    fn repeated_headers_are_found() {
        let mut headers = HeaderMap::new();
        headers.append("mcp-param-a", HeaderValue::from_static("1"));
        headers.append("mcp-param-b", HeaderValue::from_static("1"));
        assert!(ProtocolHeaders::read(&headers).check_repeated().is_ok());
        headers.append("mcp-param-a", HeaderValue::from_static("1"));
        assert!(ProtocolHeaders::read(&headers).check_repeated().is_err());
        let mut headers = HeaderMap::new();
        headers.append("mcp-name", HeaderValue::from_static("1"));
        headers.append("mcp-name", HeaderValue::from_static("1"));
        assert_eq!(ProtocolHeaders::read(&headers).check_repeated(), Err("Mcp-Name"));
    }
}
