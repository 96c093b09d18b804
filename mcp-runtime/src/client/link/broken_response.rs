//! Responses that are not valid: the requests that they belong to fail at once, and do not wait for their time limit.

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
        let (mut ids, mut error) = (Vec::new(), None);
        let (mut has_id, mut is_response) = (false, false);
        for (key, value) in members_of(text) {
            is_response |= matches!(key, "jsonrpc" | "result" | "error");
            let value = || serde_json::Deserializer::from_str(value).into_iter::<Value>().next()?.ok();
            match key {
                "method" => return None,
                "id" => {
                    let id = value();
                    has_id |= id.as_ref().is_none_or(|id| !id.is_null());
                    ids.extend(id.as_ref().and_then(number).filter(|_| ids.len() < MAX_IDS));
                }
                "error" => error = value(),
                _ => {}
            }
        }
        if !is_response {
            return None;
        }
        // of one that is cut off, the id may be missing
        let is_without_id = !has_id && error.is_some() && text.ends_with('}');
        let error = match error.filter(|_| is_without_id) {
            Some(error) => super::parse_error(&error.to_string()),
            None => {
                Error::invalid(format!("a response of the server is malformed: {}", malformed.error.message))
            }
        };
        Some(Self { ids, is_without_id, error })
    }
}

/// The number of a request; some servers repeat it as text or as a fraction.
fn number(id: &Value) -> Option<u64> {
    let whole = || id.as_f64().filter(|id| id.fract() == 0.0 && (0.0..9e15).contains(id)).map(|id| id as u64);
    id.as_u64().or_else(|| id.as_str()?.parse().ok()).or_else(whole)
}

/// The members of an object in a text that may not be JSON: each key, and the text that begins with its value.
fn members_of(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut bytes = text.bytes().enumerate();
    let mut depth = 0_usize;
    std::iter::from_fn(move || {
        loop {
            match bytes.next()? {
                (_, b'{' | b'[') => depth += 1,
                (_, b'}' | b']') => depth = depth.checked_sub(1).filter(|depth| *depth > 0)?,
                (start, b'"') => {
                    let mut is_escaped = false;
                    let (end, _) = bytes.find(|(_, byte)| {
                        let is_end = *byte == b'"' && !is_escaped;
                        is_escaped = *byte == b'\\' && !is_escaped;
                        is_end
                    })?;
                    let value = text.get(end + 1..)?.trim_start().strip_prefix(':');
                    if let Some(value) = value.filter(|_| depth == 1) {
                        return Some((text.get(start + 1..end)?, value));
                    }
                }
                _ => {}
            }
        }
    })
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
