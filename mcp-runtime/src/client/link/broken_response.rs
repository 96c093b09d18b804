//! Responses that are not valid: the requests that they belong to fail at once, and do not wait for their time limit.

use std::fmt;

use memchr::memmem;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::{client::Error, core::jsonrpc::MalformedMessage};

/// Ids that are looked at in one message.
const MAX_IDS: usize = 4;

/// A response that is not valid.
#[derive(Debug)]
pub(super) struct BrokenResponse {
    /// The ids of requests in it. A message with several is a response to none, and each of them fails.
    pub(super) ids: Vec<u64>,
    /// The error of a server that could not read the id of the request.
    pub(super) is_without_id: bool,
    pub(super) error: Error,
}

impl BrokenResponse {
    /// Whether it may be the response to this request, which is the only one on its stream.
    pub(super) fn is_of(&self, id: u64) -> bool {
        self.ids.is_empty() || self.ids.contains(&id)
    }

    /// Reads the legible parts of an invalid message; `None` if it is not a response.
    pub(super) fn read(text: &[u8], malformed: &MalformedMessage) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let text = text.trim();
        if !text.starts_with('{') {
            return None;
        }
        let mut members = ResponseParts::default();
        // up to what cannot be read
        let read = serde_json::Deserializer::from_str(text).deserialize_map(ResponseVisitor(&mut members));
        if members.has_method || !(members.has_version || members.has_outcome) {
            return None;
        }
        if members.ids.is_empty() && read.is_err() {
            members.ids.extend(last_id(text));
        }
        let is_without_id = read.is_ok() && !members.has_id && members.error.is_some();
        let error = match members.error.filter(|_| is_without_id) {
            Some(error) => super::parse_error(&error.to_string()),
            None => {
                Error::invalid(format!("a response of the server is malformed: {}", malformed.error.message))
            }
        };
        Some(Self { ids: members.ids, is_without_id, error })
    }
}

/// The members of a response.
#[derive(Debug, Default)]
struct ResponseParts {
    ids: Vec<u64>,
    has_id: bool,
    has_method: bool,
    has_version: bool,
    has_outcome: bool,
    error: Option<Value>,
}

/// Notes members until one cannot be read.
struct ResponseVisitor<'a>(&'a mut ResponseParts);

impl<'de> Visitor<'de> for ResponseVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let members = self.0;
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "id" => {
                    let id: Value = map.next_value()?;
                    members.has_id |= !id.is_null();
                    if members.ids.len() < MAX_IDS {
                        members.ids.extend(number(&id));
                    }
                }
                "error" => {
                    members.has_outcome = true;
                    members.error = Some(map.next_value()?);
                }
                "result" => {
                    members.has_outcome = true;
                    map.next_value::<IgnoredAny>()?;
                }
                "jsonrpc" => {
                    members.has_version = true;
                    map.next_value::<IgnoredAny>()?;
                }
                key => {
                    members.has_method |= key == "method";
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The number of a request; some servers repeat it as text or as a fraction.
fn number(id: &Value) -> Option<u64> {
    let whole = || id.as_f64().filter(|id| id.fract() == 0.0 && (0.0..9e15).contains(id)).map(|id| id as u64);
    id.as_u64().or_else(|| id.as_str()?.parse().ok()).or_else(whole)
}

/// The id at the end of a text whose beginning is not JSON: as in `{"jsonrpc":"2.0","result":{"x":NaN},"id":3}`.
fn last_id(text: &str) -> Option<u64> {
    const KEY: &str = "\"id\"";
    let at = memmem::rfind(text.as_bytes(), KEY.as_bytes())?;
    if depth(text.get(..at)?) != 1 {
        // of something in the result
        return None;
    }
    let value = text.get(at + KEY.len()..)?.trim_start().strip_prefix(':')?;
    let value = value.strip_suffix('}')?.trim();
    value.trim_matches('"').parse().ok()
}

/// How many objects and arrays are open at the end of a text.
fn depth(text: &str) -> usize {
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'{' | b'[' if !is_string => depth += 1,
            b'}' | b']' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &[u8]) -> Option<BrokenResponse> {
        let malformed = crate::core::jsonrpc::parse(text).expect_err("it is malformed");
        BrokenResponse::read(text, &malformed)
    }

    #[test]
    fn the_id_of_a_broken_response_is_found_wherever_it_stands() {
        for text in [
            &br#"{"jsonrpc":"2.0","id":3}"#[..],
            br#"{"id":3,"result":{}}"#,
            br#"{"jsonrpc":"1.0","id":"3","result":{}}"#,
            br#"{"jsonrpc":"2.0","id":3.0,"result":{}}"#,
            br#"{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":"x"}}"#,
            br#"{"jsonrpc":"2.0","id":3,"result":{"x":NaN}}"#,
            br#"{"jsonrpc":"2.0","result":{"x":NaN},"id":3}"#,
            br#"{"jsonrpc":"2.0","result":{"x":Infinity, "y":"]}\"{"}, "id" : 3 }"#,
            br#"{"jsonrpc":"2.0","id":3,"result":{"x":"#,
            br#"{"jsonrpc":"2.0","id":3,"result":{}} trailing"#,
            b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"x\":\"\xff\"}}",
            br#"{"jsonrpc":"2.0","id":3,"id":3,"result":{}}"#,
        ] {
            let broken = broken(text).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(text)));
            assert!(broken.ids.iter().all(|id| *id == 3) && !broken.ids.is_empty(), "{broken:?}");
            assert!(matches!(broken.error, Error::Invalid { .. }));
        }
    }

    #[test]
    fn what_is_not_a_response_fails_no_request() {
        for text in [
            &br#"{"level":"info","id":3,"msg":"started"}"#[..],
            br#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}"#,
            br#"{ "rows": [ {"id":3}"#,
            b"listening on 3000",
            b"[]",
        ] {
            assert!(broken(text).is_none(), "{}", String::from_utf8_lossy(text));
        }
        // the id of something else
        let cut = broken(br#"{"jsonrpc":"2.0","result":{"rows":[{"id":3},{"id":4}"#).unwrap();
        assert!(cut.ids.is_empty());
    }

    #[test]
    fn an_error_without_an_id_keeps_what_the_server_says() {
        let broken =
            broken(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#)
                .unwrap();
        assert!(broken.is_without_id && matches!(broken.error, Error::Protocol { code: -32700, .. }));
    }
}
