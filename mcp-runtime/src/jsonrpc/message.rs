//! Reads one JSON-RPC message as slices of its text, in one pass when it is good; only a bad one is looked at again,
//! to say what is wrong with it. The members of `params`, and of the `_meta` in it, are slices as well, unread.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use super::{ProtocolError, write::Object};
use crate::protocol::{
    self, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROGRESS_TOKEN,
    META_PROTOCOL_VERSION,
};

/// One message: a request, a notification, or a response.
#[derive(Deserialize, Debug)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text")]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "params")]
    params: Params<'a>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// The method; absent on a response.
    pub(crate) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The raw JSON of the id; absent on a notification.
    pub(crate) fn id(&self) -> Option<&'a str> {
        self.id.map(RawValue::get)
    }

    pub(crate) fn params(&self) -> &Params<'a> {
        &self.params
    }

    /// Whether this is a response to a request.
    pub(crate) fn is_response(&self) -> bool {
        self.method.is_none()
    }

    /// The response to a request: raw JSON of the result, or of the error.
    pub(crate) fn response(&self) -> Option<Result<&'a str, &'a str>> {
        match (self.result, self.error) {
            (Some(result), _) => Some(Ok(result.get())),
            (None, error) => error.map(|error| Err(error.get())),
        }
    }
}

/// The text of a JSON string, borrowed where it has no escape; `None` for any other value.
pub(crate) fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_some() {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// An id as a key: `1` and `"1"` differ, `"a"` and `"\u0061"` do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RequestId {
    Number(Box<str>),
    Text(Box<str>),
}

impl RequestId {
    /// The id written as this raw JSON, if it is a string or an integer.
    pub(crate) fn from_raw(raw: &RawValue) -> Option<Self> {
        match text_of(raw) {
            Some(text) => Some(Self::Text(text.into())),
            None => is_integer(raw.get()).then(|| Self::Number(raw.get().into())),
        }
    }

    /// The id of a message that [`parse`] accepted.
    pub(crate) fn of(id: &str) -> Self {
        match id.strip_prefix('"').and_then(|_| serde_json::from_str::<String>(id).ok()) {
            Some(text) => Self::Text(text.into()),
            None => Self::Number(id.into()),
        }
    }
}

/// Bytes of an id or a progress token as raw JSON: both are repeated in messages to the client.
pub(crate) const MAX_ID: usize = 1 << 10;

/// Whether raw JSON is a string or an integer that can be repeated.
pub(crate) fn is_id(raw: &RawValue) -> bool {
    let json = raw.get();
    json.len() <= MAX_ID && (json.starts_with('"') || is_integer(json))
}

fn is_integer(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A message that cannot be served: the error, and the raw id where one could be read.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) id: Option<String>,
    pub(crate) error: ProtocolError,
    /// A notification or a response: nobody waits for a reply to it.
    pub(crate) silent: bool,
}

/// Reads one message.
///
/// # Errors
/// `-32700` for what is not JSON, `-32600` for JSON that is not a message, `-32602` for params that are no object.
pub(crate) fn parse(text: &[u8]) -> Result<Message<'_>, Malformed> {
    // one check for the whole text, instead of one for each string
    let Ok(text) = std::str::from_utf8(text) else { return Err(diagnose(None)) };
    // a derived struct would also read an array, by position
    match serde_json::from_str::<Message<'_>>(text) {
        Ok(m) if text.trim_ascii_start().starts_with('{') && well_formed(&m) => Ok(m),
        _ => Err(diagnose(Some(text))),
    }
}

fn well_formed(m: &Message<'_>) -> bool {
    m.jsonrpc.is_some_and(|v| v.get() == "\"2.0\"")
        && m.id.is_none_or(is_id)
        && match &m.method {
            Some(_) => m.result.is_none() && m.error.is_none(),
            None => m.id.is_some() && (m.result.is_some() != m.error.is_some()),
        }
}

/// The members of an array of messages, each as text; `None` when `text` is not an array.
pub(crate) fn batch(text: &[u8]) -> Option<Vec<&RawValue>> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.trim_start().starts_with('[') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The members of an object in order, so that duplicates can be seen.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<&RawValue>()? {
                    let key = text_of(key).ok_or_else(|| serde::de::Error::custom("a key is a string"))?;
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        d.deserialize_map(V)
    }
}

impl Members<'_> {
    fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| *v)
    }

    fn duplicate(&self) -> Option<&str> {
        // a set: a message may have as many members as fit into it
        let mut seen = HashSet::with_capacity(self.0.len());
        self.0.iter().map(|(key, _)| &**key).find(|key| !seen.insert(*key))
    }
}

#[cold]
fn diagnose(text: Option<&str>) -> Malformed {
    let plain = |error| Malformed { id: None, error, silent: false };
    let Some(text) = text else {
        return plain(ProtocolError::new(protocol::PARSE_ERROR, "parse error: the message is not UTF-8"));
    };
    if let Err(e) = serde_json::from_str::<&RawValue>(text) {
        return plain(ProtocolError::new(
            protocol::PARSE_ERROR,
            format!("parse error: not JSON at line {} column {}", e.line(), e.column()),
        ));
    }
    let Ok(members) = serde_json::from_str::<Members<'_>>(text) else {
        return plain(ProtocolError::invalid_request("a message is one JSON object"));
    };
    let id = members.get("id").filter(|id| is_id(id)).map(|id| id.get().to_owned());
    let invalid =
        |m: String| Malformed { id: id.clone(), error: ProtocolError::invalid_request(m), silent: false };
    if let Some(key) = members.duplicate() {
        return invalid(format!("`{key}` stands twice in the message"));
    }
    if members.get("jsonrpc").is_none_or(|v| v.get() != "\"2.0\"") {
        return invalid("`jsonrpc` is not \"2.0\"".into());
    }
    if members.get("id").is_some() && id.is_none() {
        return invalid(format!("`id` is neither a string nor an integer of at most {MAX_ID} bytes"));
    }
    let Some(method) = members.get("method") else {
        return invalid("a message has a `method`, or an `id` with a `result` or an `error`".into());
    };
    if text_of(method).is_none() {
        return invalid("`method` is not a string".into());
    }
    let silent = id.is_none();
    if let Some(params) = members.get("params") {
        match serde_json::from_str::<Members<'_>>(params.get()) {
            Err(_) => {
                let error = ProtocolError::invalid_params("`params` is not an object");
                return Malformed { id, error, silent };
            }
            Ok(params) => {
                if let Some(key) = params.duplicate() {
                    return invalid(format!("`{key}` stands twice in `params`"));
                }
                let meta = params.get("_meta").map(|meta| serde_json::from_str::<Members<'_>>(meta.get()));
                if meta.is_some_and(|meta| meta.as_ref().map_or(true, |m| m.duplicate().is_some())) {
                    let error = ProtocolError::invalid_params("`_meta` is not an object with each key once");
                    return Malformed { id, error, silent };
                }
            }
        }
    }
    invalid("a message with a `method` has no `result` or `error`".into())
}

/// Unlike `Option<&RawValue>` alone, keeps `null` apart from an absent member.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

/// A string, borrowed where it has no escape.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A member that is a string wherever it is there.
fn text<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    Text::deserialize(d).map(|text| Some(text.0))
}

/// The members of `params` that any method of the protocol has, unread; a method takes those that are its own.
#[derive(Deserialize, Debug, Default)]
pub(crate) struct Params<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) uri: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "meta", rename = "_meta")]
    pub(crate) meta: Meta<'a>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) cursor: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "ref")]
    pub(crate) reference: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) argument: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) context: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "requestId")]
    pub(crate) request_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "protocolVersion")]
    pub(crate) protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "clientInfo")]
    pub(crate) client_info: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "inputResponses")]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "requestState")]
    pub(crate) request_state: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) level: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) notifications: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "taskId")]
    pub(crate) task_id: Option<&'a RawValue>,
}

/// By name only: a derived struct would also read an array, by position.
fn params<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Params<'a>, D::Error> {
    struct ByName;
    impl<'de> Visitor<'de> for ByName {
        type Value = Params<'de>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Params::deserialize(MapAccessDeserializer::new(map))
        }
    }
    d.deserialize_map(ByName)
}

/// The `_meta` of a request: the members that the protocol reserves, and what else there is.
#[derive(Debug, Default)]
pub(crate) struct Meta<'a> {
    pub(crate) version: Option<&'a RawValue>,
    pub(crate) capabilities: Option<&'a RawValue>,
    pub(crate) client_info: Option<&'a RawValue>,
    pub(crate) progress_token: Option<&'a RawValue>,
    pub(crate) log_level: Option<&'a RawValue>,
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

fn meta<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Meta<'a>, D::Error> {
    struct Each;
    impl<'de> Visitor<'de> for Each {
        type Value = Meta<'de>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut meta = Meta::default();
            while let Some(Text(key)) = map.next_key()? {
                let value = map.next_value()?;
                let member = match &*key {
                    META_PROTOCOL_VERSION => &mut meta.version,
                    META_CLIENT_CAPABILITIES => &mut meta.capabilities,
                    META_CLIENT_INFO => &mut meta.client_info,
                    META_PROGRESS_TOKEN => &mut meta.progress_token,
                    META_LOG_LEVEL => &mut meta.log_level,
                    _ => {
                        meta.others.push((key, value));
                        continue;
                    }
                };
                if member.replace(value).is_some() {
                    return Err(A::Error::custom("a key stands twice"));
                }
            }
            Ok(meta)
        }
    }
    d.deserialize_map(Each)
}

impl Meta<'_> {
    /// The whole of it as one JSON text; absent if there is nothing in it.
    pub(crate) fn to_json(&self) -> Option<Box<str>> {
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        let reserved = [
            (META_PROTOCOL_VERSION, self.version),
            (META_CLIENT_CAPABILITIES, self.capabilities),
            (META_CLIENT_INFO, self.client_info),
            (META_PROGRESS_TOKEN, self.progress_token),
            (META_LOG_LEVEL, self.log_level),
        ];
        for (key, value) in reserved {
            if let Some(value) = value {
                object.raw(key, value.get());
            }
        }
        for (key, value) in &self.others {
            object.any_key(key).extend_from_slice(value.get().as_bytes());
        }
        object.end();
        String::from_utf8(out).ok().filter(|json| json != "{}").map(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> i64 {
        parse(text.as_bytes()).expect_err("malformed").error.code
    }

    #[test]
    fn good_messages_are_slices() {
        let m = parse(br#"{"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"name":"x","x":1}}"#)
            .unwrap();
        assert_eq!((m.id(), m.method()), (Some(r#""a\"b""#), Some("tools/call")));
        assert_eq!(m.params().name.and_then(text_of).as_deref(), Some("x"));
        assert!(parse(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap().is_response());
    }

    #[test]
    fn bad_messages_say_what_is_wrong() {
        assert_eq!(code("nope"), -32700);
        assert_eq!(parse(b"\xff").expect_err("utf-8").error.code, -32700);
        assert_eq!(code("[]"), -32600);
        assert_eq!(code(r#"["2.0",1,"ping"]"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#), -32600);
        assert_eq!(
            code(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"name":2,"name":3}}"#),
            -32600
        );
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#), -32602);
        assert_eq!(code(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"a","result":{}}"#), -32600);
        assert_eq!(
            parse(br#"{"jsonrpc":"2.0","id":7,"method":5}"#).expect_err("method").id.as_deref(),
            Some("7")
        );
    }

    #[test]
    fn a_deep_message_is_read_without_recursion() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{deep}}}}}"#);
        assert!(parse(text.as_bytes()).is_ok());
    }

    fn message(meta: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{meta}}}}}"#)
    }

    #[test]
    fn meta_is_read_and_kept_whole() {
        let text = message(r#"{"progressToken":7,"a\u0062":{"x":[1, 2]},"traceparent":"00"}"#);
        let message = parse(text.as_bytes()).expect("a message");
        let meta = &message.params().meta;
        assert_eq!(meta.progress_token.map(RawValue::get), Some("7"));
        let json = meta.to_json().expect("members");
        assert_eq!(&*json, r#"{"progressToken":7,"ab":{"x":[1, 2]},"traceparent":"00"}"#);
    }

    #[test]
    fn no_meta_and_an_empty_one_are_the_same() {
        assert!(Meta::default().to_json().is_none());
        assert!(parse(message("{}").as_bytes()).expect("a message").params().meta.to_json().is_none());
    }

    #[test]
    fn meta_is_an_object_with_each_key_once() {
        for meta in ["null", "5", "[]", r#""x""#, r#"{"progressToken":1,"progressToken":2}"#] {
            let malformed = parse(message(meta).as_bytes()).expect_err("malformed");
            assert_eq!(malformed.error.code, -32602, "{meta}");
            assert_eq!(malformed.error.message, "`_meta` is not an object with each key once");
            assert_eq!(malformed.id.as_deref(), Some("1"));
        }
    }
}
