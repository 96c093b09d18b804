//! The `params` of a message and its `_meta`: their members are slices of the text, not decoded.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use super::{
    message::{CowStr, deserialize_raw},
    writer::Object,
};
use crate::core::protocol::{
    META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROGRESS_TOKEN, META_PROTOCOL_VERSION,
};

/// The union of the members that the methods of the protocol define for `params`, as raw JSON.
#[derive(Deserialize, Debug, Default)]
pub(crate) struct Params<'a> {
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) uri: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_meta", rename = "_meta")]
    pub(crate) meta: Meta<'a>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) cursor: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "ref")]
    pub(crate) reference: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) argument: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) context: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "requestId")]
    pub(crate) request_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) reason: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "protocolVersion")]
    pub(crate) protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "clientInfo")]
    pub(crate) client_info: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "inputResponses")]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "requestState")]
    pub(crate) request_state: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) level: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw")]
    pub(crate) notifications: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "taskId")]
    pub(crate) task_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "maxAgeMs")]
    pub(crate) max_age_ms: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "maxEvents")]
    pub(crate) max_events: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_raw", rename = "timeoutMs")]
    pub(crate) timeout_ms: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// The member by which a [method](crate::core::protocol::Method) names what its request is about.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only a header repeats it"))]
    pub(crate) fn named_by(&self, member: &str) -> Option<&'a RawValue> {
        match member {
            "name" => self.name,
            "uri" => self.uri,
            "taskId" => self.task_id,
            _ => None,
        }
    }
}

/// Accepts objects only: a derived struct would also accept an array, by position.
pub(super) fn deserialize_params<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Params<'a>, D::Error> {
    struct ParamsVisitor;
    impl<'de> Visitor<'de> for ParamsVisitor {
        type Value = Params<'de>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Params::deserialize(MapAccessDeserializer::new(map))
        }
    }
    d.deserialize_map(ParamsVisitor)
}

/// The `_meta` of a request: the members that the protocol reserves, and all others.
#[derive(Debug, Default)]
pub(crate) struct Meta<'a> {
    pub(crate) version: Option<&'a RawValue>,
    pub(crate) capabilities: Option<&'a RawValue>,
    pub(crate) client_info: Option<&'a RawValue>,
    pub(crate) progress_token: Option<&'a RawValue>,
    pub(crate) log_level: Option<&'a RawValue>,
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

fn deserialize_meta<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Meta<'a>, D::Error> {
    struct MetaVisitor;
    impl<'de> Visitor<'de> for MetaVisitor {
        type Value = Meta<'de>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut meta = Meta::default();
            while let Some(CowStr(key)) = map.next_key()? {
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
                    return Err(A::Error::custom("duplicate key"));
                }
            }
            Ok(meta)
        }
    }
    d.deserialize_map(MetaVisitor)
}

impl<'a> Meta<'a> {
    /// A member that the protocol does not reserve.
    pub(crate) fn other(&self, key: &str) -> Option<&'a RawValue> {
        self.others.iter().find(|(known, _)| known == key).map(|(_, value)| *value)
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
        for (key, value) in &self.others {
            object.escaped_key(key).extend_from_slice(value.get().as_bytes());
        }
        object.end();
        String::from_utf8(out).ok().filter(|json| json != "{}").map(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::jsonrpc::parse;

    fn message(meta: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{meta}}}}}"#)
    }

    #[test]
    fn every_member_of_meta_is_kept() {
        let text = message(r#"{"progressToken":7,"a\u0062":{"x":[1, 2]},"traceparent":"00"}"#);
        let message = parse(text.as_bytes()).expect("a message");
        let meta = &message.params().meta;
        assert_eq!(meta.progress_token.map(RawValue::get), Some("7"));
        let json = meta.to_json().expect("members");
        assert_eq!(&*json, r#"{"progressToken":7,"ab":{"x":[1, 2]},"traceparent":"00"}"#);
    }

    #[test]
    fn an_absent_meta_equals_an_empty_one() {
        assert!(Meta::default().to_json().is_none());
        assert!(parse(message("{}").as_bytes()).expect("a message").params().meta.to_json().is_none());
    }

    #[test]
    fn meta_must_be_an_object_with_unique_keys() {
        for meta in ["null", "5", "[]", r#""x""#, r#"{"progressToken":1,"progressToken":2}"#] {
            let malformed = parse(message(meta).as_bytes()).expect_err("malformed");
            assert_eq!(malformed.error.code, -32602, "{meta}");
            assert_eq!(malformed.error.message, "`_meta` must be an object with unique keys");
            assert_eq!(malformed.id.as_deref(), Some("1"));
        }
    }
}
