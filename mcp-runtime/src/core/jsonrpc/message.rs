//! JSON-RPC messages, their `params` and `_meta`: parsed in one pass into slices of their text, which are decoded only when
//! they are needed; and their ids: which ones are accepted, and when two are equal. A message that is not valid is parsed a second time, to
//! report what is wrong with it.

use std::{borrow::Cow, collections::HashSet, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{ProtocolError, writer::Object};
use crate::core::protocol::{
    self, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROGRESS_TOKEN,
    META_PROTOCOL_VERSION,
};

/// A request, a notification, or a response.
#[derive(Debug, Default)]
pub(crate) struct JsonRpcMessage<'a> {
    jsonrpc: Option<Cow<'a, str>>,
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Params<'a>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// All of it.
    text: &'a str,
}

/// Reads the members in place: what is read is not moved.
impl<'de: 'a, 'a> Visitor<'de> for &mut JsonRpcMessage<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut has_params, mut others) = (None, Members::<IgnoredAny>::default());
        while let Some(CowStr(key)) = map.next_key()? {
            match &*key {
                "jsonrpc" => set(&mut self.jsonrpc, map.next_value::<CowStr<'_>>()?.0)?,
                "id" => set(&mut self.id, map.next_value()?)?,
                "method" => set(&mut self.method, map.next_value::<CowStr<'_>>()?.0)?,
                "params" => {
                    set(&mut has_params, ())?;
                    map.next_value_seed(ReadBy(&mut self.params))?;
                }
                "result" => set(&mut self.result, map.next_value()?)?,
                "error" => set(&mut self.error, map.next_value()?)?,
                _ => others.0.push((key, map.next_value()?)),
            }
        }
        others.check_keys()
    }
}

/// The seed of a value that this visitor reads.
struct ReadBy<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for ReadBy<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<V::Value, D::Error> {
        d.deserialize_any(self.0)
    }
}

/// Sets a member that has not been set before.
fn set<T, E: serde::de::Error>(member: &mut Option<T>, value: T) -> Result<(), E> {
    match member.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::custom("duplicate key")),
    }
}

impl<'a> JsonRpcMessage<'a> {
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

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn is_response(&self) -> bool {
        self.method.is_none()
    }

    /// The outcome that a response carries: raw JSON of its `result` or its `error`.
    pub(crate) fn response(&self) -> Option<Result<&'a str, &'a str>> {
        match (self.result, self.error) {
            (Some(result), _) => Some(Ok(result.get())),
            (None, error) => error.map(|error| Err(error.get())),
        }
    }
}

/// A message that cannot be served: the error, and the raw id where one could be read.
#[derive(Debug)]
pub(crate) struct MalformedMessage {
    pub(crate) id: Option<String>,
    /// An id of more than [`MAX_ID_BYTES`], for revisions in which every error has an id.
    pub(crate) long_id: Option<String>,
    pub(crate) error: ProtocolError,
    /// False for a notification or a response, to which the client expects no response.
    pub(crate) expects_response: bool,
}

/// Parses one message.
///
/// # Errors
/// `-32700` for text that is not JSON, `-32600` for JSON that is not a message, `-32602` for params that are not an
/// object.
pub(crate) fn parse(text: &[u8]) -> Result<JsonRpcMessage<'_>, MalformedMessage> {
    // one UTF-8 check for the whole text, instead of one for each string
    let Ok(text) = std::str::from_utf8(without_mark(text)) else { return Err(diagnose(None)) };
    let mut message = JsonRpcMessage { text, ..JsonRpcMessage::default() };
    let mut json = serde_json::Deserializer::from_str(text);
    match json.deserialize_map(&mut message).and_then(|()| json.end()) {
        Ok(()) if is_well_formed(&message) => Ok(message),
        _ => Err(diagnose(Some(text))),
    }
}

/// A message without the byte order mark that some programs write before the first one.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

fn is_well_formed(m: &JsonRpcMessage<'_>) -> bool {
    m.jsonrpc.as_deref() == Some("2.0")
        && m.id.is_none_or(is_valid_id)
        && match &m.method {
            Some(_) => m.result.is_none() && m.error.is_none(),
            None => m.id.is_some() && (m.result.is_some() != m.error.is_some()),
        }
}

/// The text of a JSON string, borrowed where it has no escape; `None` for any other value.
pub(crate) fn decode_string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_some() {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// A member that is optional: null counts as its absence.
pub(crate) fn null_is_absent<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    d: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

/// A string, borrowed where it has no escape.
#[derive(Deserialize)]
#[serde(transparent)]
struct CowStr<'a>(#[serde(borrow)] Cow<'a, str>);

/// The `params` of a message: the members that most requests have, and all others, as raw JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params<'a> {
    pub(crate) name: Option<&'a RawValue>,
    pub(crate) uri: Option<&'a RawValue>,
    pub(crate) arguments: Option<&'a RawValue>,
    pub(crate) meta: Meta<'a>,
    others: Members<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Params<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut params = Self::default();
        d.deserialize_any(&mut params).map(|()| params)
    }
}

/// Null is an object without members. An array is refused, which a derived struct would accept, by position.
impl<'de: 'a, 'a> Visitor<'de> for &mut Params<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_meta = None;
        while let Some(CowStr(key)) = map.next_key()? {
            match &*key {
                "name" => set(&mut self.name, map.next_value()?)?,
                "uri" => set(&mut self.uri, map.next_value()?)?,
                "arguments" => set(&mut self.arguments, map.next_value()?)?,
                "_meta" => {
                    set(&mut has_meta, ())?;
                    map.next_value_seed(ReadBy(&mut self.meta))?;
                }
                _ => self.others.0.push((key, map.next_value()?)),
            }
        }
        drop_nulls([&mut self.name, &mut self.uri, &mut self.arguments]);
        self.others.check_keys()
    }
}

impl<'a> Params<'a> {
    /// The same of a call of that name, with these arguments.
    pub(crate) fn of_call(self, name: &'a RawValue, arguments: &'a RawValue) -> Self {
        Self { name: Some(name), arguments: Some(arguments), ..self }
    }

    /// A member that has no field; null counts as its absence.
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.others.get(key).filter(is_not_null)
    }

    /// A member that has no field, and whose null has a meaning.
    pub(crate) fn get_or_null(&self, key: &str) -> Option<&'a RawValue> {
        self.others.get(key)
    }

    /// The member by which a [method](crate::core::protocol::Method) names what its request is about.
    pub(crate) fn named_by(&self, member: &str) -> Option<&'a RawValue> {
        match member {
            "name" => self.name,
            "uri" => self.uri,
            other => self.get(other),
        }
    }
}

/// Members that are null are absent.
fn drop_nulls<const N: usize>(members: [&mut Option<&RawValue>; N]) {
    for member in members {
        *member = member.filter(is_not_null);
    }
}

fn is_not_null(raw: &&RawValue) -> bool {
    raw.get() != "null"
}

/// The `_meta` of a request: the members that the protocol reserves, and all others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meta<'a> {
    pub(crate) version: Option<&'a RawValue>,
    pub(crate) capabilities: Option<&'a RawValue>,
    pub(crate) client_info: Option<&'a RawValue>,
    pub(crate) progress_token: Option<&'a RawValue>,
    pub(crate) log_level: Option<&'a RawValue>,
    others: Members<'a>,
}

/// Null is a `_meta` without members.
impl<'de: 'a, 'a> Visitor<'de> for &mut Meta<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(CowStr(key)) = map.next_key()? {
            let value = map.next_value()?;
            match &*key {
                META_PROTOCOL_VERSION => set(&mut self.version, value)?,
                META_CLIENT_CAPABILITIES => set(&mut self.capabilities, value)?,
                META_CLIENT_INFO => set(&mut self.client_info, value)?,
                META_PROGRESS_TOKEN => set(&mut self.progress_token, value)?,
                META_LOG_LEVEL => set(&mut self.log_level, value)?,
                _ => self.others.0.push((key, value)),
            }
        }
        let Meta { version, capabilities, client_info, progress_token, log_level, .. } = self;
        drop_nulls([version, capabilities, client_info, progress_token, log_level]);
        self.others.check_keys()
    }
}

impl<'a> Meta<'a> {
    /// A member that the protocol does not reserve.
    pub(crate) fn other(&self, key: &str) -> Option<&'a RawValue> {
        self.others.get(key)
    }

    /// All members as one JSON object; `None` if it has none.
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
        for (key, value) in &self.others.0 {
            object.escaped_key(key).extend_from_slice(value.get().as_bytes());
        }
        object.end();
        String::from_utf8(out).ok().filter(|json| json != "{}").map(Into::into)
    }
}

/// The largest id or progress token in bytes of raw JSON: both are repeated in messages to the client.
pub(crate) const MAX_ID_BYTES: usize = 1 << 10;

/// An id as a key: `1` and `"1"` differ, `"a"` and `"\u0061"` do not.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum RequestId {
    Number(Box<str>),
    Text(Box<str>),
}

impl RequestId {
    /// The id that this raw JSON denotes, if it is a string or an integer.
    pub(crate) fn from_raw(raw: &RawValue) -> Option<Self> {
        match decode_string(raw) {
            Some(text) => Some(Self::Text(text.into())),
            None => is_integer(raw.get()).then(|| Self::Number(raw.get().into())),
        }
    }

    /// The id of a message that [`parse`] accepted.
    pub(crate) fn from_json(id: &str) -> Self {
        match id.strip_prefix('"').and_then(|_| serde_json::from_str::<String>(id).ok()) {
            Some(text) => Self::Text(text.into()),
            None => Self::Number(id.into()),
        }
    }
}

/// Whether raw JSON is a string or an integer of at most [`MAX_ID_BYTES`].
pub(crate) fn is_valid_id(raw: &RawValue) -> bool {
    let json = raw.get();
    json.len() <= MAX_ID_BYTES && (json.starts_with('"') || is_integer(json))
}

fn is_integer(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The elements of an array of messages as text; `None` if `text` is not an array.
pub(crate) fn parse_batch(text: &[u8]) -> Option<Vec<&RawValue>> {
    let text = std::str::from_utf8(without_mark(text)).ok()?;
    if !text.trim_start().starts_with('[') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Members of an object in order, duplicate keys included.
#[derive(Debug, Clone)]
pub(crate) struct Members<'a, V = &'a RawValue>(pub(crate) Vec<(Cow<'a, str>, V)>);

impl<V> Default for Members<'_, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Members<'a, V> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct MembersVisitor<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for MembersVisitor<V> {
            type Value = Members<'de, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(CowStr(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        d.deserialize_map(MembersVisitor(PhantomData))
    }
}

impl<V: Copy> Members<'_, V> {
    fn get(&self, key: &str) -> Option<V> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| *v)
    }
}

impl<V> Members<'_, V> {
    /// A key that has been there before.
    pub(crate) fn duplicate_key(&self) -> Option<&str> {
        let keys = || self.0.iter().map(|(key, _)| &**key);
        if self.0.len() <= 8 {
            return keys()
                .enumerate()
                .find(|(before, key)| keys().take(*before).any(|k| k == *key))
                .map(|(_, key)| key);
        }
        // a set, not a scan: the number of members is bounded only by the size of the message
        let mut seen = HashSet::with_capacity(self.0.len());
        keys().find(|key| !seen.insert(*key))
    }

    fn check_keys<E: serde::de::Error>(&self) -> Result<(), E> {
        self.duplicate_key().map_or(Ok(()), |_| Err(E::custom("duplicate key")))
    }
}

/// Finds out why a text is not a valid message.
#[cold]
fn diagnose(text: Option<&str>) -> MalformedMessage {
    let without_id = |error| MalformedMessage { id: None, long_id: None, error, expects_response: true };
    let Some(text) = text else {
        return without_id(ProtocolError::new(
            protocol::PARSE_ERROR,
            "parse error: the message is not UTF-8",
        ));
    };
    if let Err(e) = serde_json::from_str::<&RawValue>(text) {
        return without_id(ProtocolError::new(
            protocol::PARSE_ERROR,
            format!("parse error: not JSON at line {} column {}", e.line(), e.column()),
        ));
    }
    let Ok(members) = serde_json::from_str::<Members<'_>>(text) else {
        return without_id(ProtocolError::invalid_request("a message must be a JSON object"));
    };
    let id = members.get("id").filter(|id| is_valid_id(id)).map(|id| id.get().to_owned());
    let long_id = members.get("id").filter(|raw| id.is_none() && RequestId::from_raw(raw).is_some());
    let invalid = |message: String| MalformedMessage {
        id: id.clone(),
        long_id: long_id.map(|raw| raw.get().to_owned()),
        error: ProtocolError::invalid_request(message),
        expects_response: true,
    };
    if let Some(key) = members.duplicate_key() {
        return invalid(format!("`{key}` is duplicated in the message"));
    }
    if members.get("jsonrpc").is_none_or(|v| v.get() != "\"2.0\"") {
        return invalid("`jsonrpc` is not \"2.0\"".into());
    }
    if members.get("id").is_some() && id.is_none() {
        return invalid(format!("`id` is neither a string nor an integer of at most {MAX_ID_BYTES} bytes"));
    }
    let Some(method) = members.get("method") else {
        return invalid(
            "a message must have a `method`, or an `id` with either a `result` or an `error`".into(),
        );
    };
    if decode_string(method).is_none() {
        return invalid("`method` is not a string".into());
    }
    let expects_response = id.is_some();
    if let Some(params) = members.get("params").filter(|params| params.get() != "null") {
        match serde_json::from_str::<Members<'_>>(params.get()) {
            Err(_) => {
                let error = ProtocolError::invalid_params("`params` is not an object");
                return MalformedMessage { id, long_id: None, error, expects_response };
            }
            Ok(params) => {
                if let Some(key) = params.duplicate_key() {
                    return invalid(format!("`{key}` is duplicated in `params`"));
                }
                let meta = params.get("_meta").filter(|meta| meta.get() != "null");
                let meta = meta.map(|meta| serde_json::from_str::<Members<'_>>(meta.get()));
                if meta.is_some_and(|meta| meta.as_ref().map_or(true, |m| m.duplicate_key().is_some())) {
                    let error = ProtocolError::invalid_params("`_meta` must be an object with unique keys");
                    return MalformedMessage { id, long_id: None, error, expects_response };
                }
            }
        }
    }
    invalid("a message with a `method` must not have a `result` or an `error`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> i64 {
        parse(text.as_bytes()).expect_err("malformed").error.code
    }

    #[test]
    fn a_valid_message_is_parsed_into_slices() {
        let m = parse(br#"{"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"name":"x","x":1}}"#)
            .unwrap();
        assert_eq!((m.id(), m.method()), (Some(r#""a\"b""#), Some("tools/call")));
        assert_eq!(m.params().name.and_then(decode_string).as_deref(), Some("x"));
        assert!(parse(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap().is_response());
    }

    #[test]
    fn a_malformed_message_has_the_specified_error_code() {
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
    fn no_member_is_there_twice_also_if_nothing_knows_it() {
        let many: Vec<String> = (0..20).map(|n| format!(r#""k{n}":{n}"#)).collect();
        let many = many.join(",");
        for (members, params) in [
            (r#","x":1,"x":2"#, ""),
            (r#","x":1,"y":2,"\u0078":3"#, ""),
            ("", r#""x":1,"x":2"#),
            ("", r#""x":1,"name":"n","y":{},"\u0078":[]"#),
            ("", &format!(r#"{many},"k7":0"#)),
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{{params}}}{members}}}"#);
            let malformed = parse(text.as_bytes()).expect_err(&text);
            assert_eq!(malformed.error.code, -32600, "{text}");
            assert!(
                malformed.error.message.contains("is duplicated in "),
                "{text}: {}",
                malformed.error.message
            );
            assert_eq!(malformed.id.as_deref(), Some("7"), "{text}");
        }
        let response = r#"{"jsonrpc":"2.0","id":7,"result":{"x":1,"x":2},"y":1,"y":2}"#;
        assert_eq!(code(response), -32600);
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{{many}}},"x":1,"y":{{"x":2}}}}"#);
        assert!(parse(text.as_bytes()).is_ok());
    }

    #[test]
    fn a_deeply_nested_message_is_parsed_without_recursion() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{deep}}}}}"#);
        assert!(parse(text.as_bytes()).is_ok());
    }

    fn ping_with(meta: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{meta}}}}}"#)
    }

    #[test]
    fn every_member_of_meta_is_kept() {
        let text = ping_with(r#"{"progressToken":7,"a\u0062":{"x":[1, 2]},"traceparent":"00"}"#);
        let message = parse(text.as_bytes()).expect("a message");
        let meta = &message.params().meta;
        assert_eq!(meta.progress_token.map(RawValue::get), Some("7"));
        let json = meta.to_json().expect("members");
        assert_eq!(&*json, r#"{"progressToken":7,"ab":{"x":[1, 2]},"traceparent":"00"}"#);
    }

    #[test]
    fn an_absent_meta_equals_an_empty_one() {
        assert!(Meta::default().to_json().is_none());
        for meta in ["{}", "null", r#"{"progressToken":null}"#] {
            let text = ping_with(meta);
            assert!(parse(text.as_bytes()).expect("a message").params().meta.to_json().is_none(), "{meta}");
        }
    }

    #[test]
    fn meta_must_be_an_object_with_unique_keys() {
        let others = r#"{"traceparent":"a","x":1,"\u0074raceparent":"b"}"#;
        for meta in ["5", "[]", r#""x""#, r#"{"progressToken":1,"progressToken":2}"#, others] {
            let malformed = parse(ping_with(meta).as_bytes()).expect_err("malformed");
            assert_eq!(malformed.error.code, -32602, "{meta}");
            assert_eq!(malformed.error.message, "`_meta` must be an object with unique keys");
            assert_eq!(malformed.id.as_deref(), Some("1"));
        }
    }
}
