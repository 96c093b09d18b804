//! Results of other servers that are passed on: members that our types do not have are kept, and what our types would write
//! in another way stays as it was written.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{
    Content, ContentWriter, Message, ResourceContents,
    parse::{parse_known, parse_message, plain_text},
};
use crate::core::{
    jsonrpc::{Members, Object},
    protocol::Revision,
};

/// A key and its value.
type Member = (String, Box<RawValue>);

/// Members of an object that its type does not have, as they were written.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireRest(Option<Box<[Member]>>);

impl PartialEq for WireRest {
    fn eq(&self, other: &Self) -> bool {
        let texts = |rest: &Self| {
            let members = rest.0.iter().flatten();
            members.map(|(key, json)| (key.clone(), json.get().to_owned())).collect::<Vec<_>>()
        };
        texts(self) == texts(other)
    }
}

impl WireRest {
    /// Whether its owner was read from the wire, so that members which that did not have are not filled in.
    pub(crate) fn is_of_wire(&self) -> bool {
        self.0.is_some()
    }

    /// Bytes of the members.
    pub(crate) fn size(&self) -> usize {
        self.0.iter().flatten().map(|(key, json)| key.len() + json.get().len()).sum()
    }

    pub(crate) fn write(&self, object: &mut Object<'_>) {
        for (key, json) in self.0.iter().flatten() {
            object.escaped_value(key, json);
        }
    }
}

/// The members of a result, which are taken one by one.
pub(crate) struct WireMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'a> WireMembers<'a> {
    /// # Errors
    /// It is not an object.
    pub(crate) fn read(json: &'a RawValue) -> serde_json::Result<Self> {
        let members: Members<'a> = serde_json::from_str(json.get())?;
        let mut members = Self(members.0.into_iter().map(|(key, value)| (key.into_owned(), value)).collect());
        // every reply has its own
        members.drop_all(&["resultType"]);
        Ok(members)
    }

    pub(crate) fn drop_all(&mut self, keys: &[&str]) {
        self.0.retain(|(key, _)| !keys.contains(&key.as_str()));
    }

    /// The last member of this name: duplicates go with it.
    pub(crate) fn take_raw(&mut self, key: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rev().find(|(known, _)| known == key).map(|(_, json)| *json);
        self.drop_all(&[key]);
        found
    }

    /// # Errors
    /// It is of another type; null is absent.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, key: &str) -> serde_json::Result<Option<T>> {
        let Some(json) = self.take_raw(key) else { return Ok(None) };
        serde_json::from_str(json.get()).map_err(|error| wire_error(&format!("`{key}`: {error}")))
    }

    pub(crate) fn into_rest(self) -> WireRest {
        WireRest(Some(self.0.into_iter().map(|(key, json)| (key, json.to_owned())).collect()))
    }
}

pub(crate) fn wire_error(text: &str) -> serde_json::Error {
    serde_json::Error::custom(text)
}

/// The block, unless it would be written in another way: then it stays as it is.
pub(crate) fn parse_exact(mut block: Value) -> Content {
    if let Some(text) = plain_text(&mut block) {
        return text.into();
    }
    let known = parse_known(&block).filter(|known| {
        let mut out = Vec::new();
        ContentWriter(Revision::LATEST).write_content(&mut out, known);
        serde_json::from_slice::<Value>(&out).is_ok_and(|written| written == block)
    });
    known.unwrap_or(Content::Unknown(block))
}

/// A message of a prompt; `None` if its role is unknown.
pub(crate) fn parse_message_exactly(message: Value) -> Option<Message> {
    let role = parse_message(&message)?.role;
    let Value::Object(mut members) = message else { return None };
    Some(Message { role, content: parse_exact(members.remove("content")?) })
}

impl ResourceContents {
    /// One item of `contents` with all its members; `None` if it has neither text nor a blob.
    pub(crate) fn from_json_exactly(item: &Value) -> Option<Self> {
        let contents = Self::from_json(item)?;
        let known = ["uri", "mimeType", "_meta", if contents.as_text().is_some() { "text" } else { "blob" }];
        let rest: Map<String, Value> = item.as_object()?.clone();
        let rest = rest.into_iter().filter(|(key, _)| !known.contains(&key.as_str()));
        let rest =
            rest.filter_map(|(key, value)| Some((key, to_raw_value(&value).ok()?))).collect::<Box<[_]>>();
        Some(Self { rest: WireRest(Some(rest)), ..contents })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ToolResult, core::tool::write_tool_result, prompt::PromptResult, resource::ResourceResult};

    fn written(result: &ToolResult) -> Value {
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        write_tool_result(&mut object, result, Revision::LATEST, false);
        if let Some(meta) = &result.meta {
            object.value("_meta", meta);
        }
        object.end();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_result_is_written_as_it_came_whatever_it_holds() {
        for block in [
            json!({ "type": "text", "text": "a" }),
            json!({ "type": "text", "text": "a", "x-extra": [1.5] }),
            json!({ "type": "text", "text": "a", "annotations": { "priority": 1, "audience": ["user"] } }),
            json!({ "type": "text", "text": "a", "annotations": { "priority": 0.5, "new": true } }),
            json!({ "type": "image", "data": "AAAA", "mimeType": "image/png", "_meta": { "a": 1 } }),
            json!({ "type": "image", "data": "not base64", "mimeType": "image/png" }),
            json!({ "type": "resource_link", "uri": "a://b", "name": "" }),
            json!({ "type": "resource", "resource": { "uri": "a://b", "text": "x", "lines": 3 } }),
            json!({ "type": "resource", "resource": { "text": "x" } }),
            json!({ "type": "resource", "resource": { "uri": "a://b", "blob": "AA==" } }),
            json!({ "type": "hologram", "beam": {} }),
        ] {
            let wire = json!({
                "content": [block], "structuredContent": { "a": [1, 2.0] }, "isError": true,
                "_meta": { "com.example/a": null }, "com.example/rest": { "deep": [1.25] },
            });
            let result = ToolResult::from_wire(&to_raw_value(&wire).unwrap()).unwrap();
            assert_eq!(written(&result), wire);
        }
    }

    #[test]
    fn structured_content_keeps_its_text_and_a_text_block_can_be_read() {
        let json = r#"{"resultType":"complete","content":[{"type":"text","text":"a","x":1}],"structuredContent":{"n":1e400,"m":1.10}}"#;
        let result = ToolResult::from_wire(&RawValue::from_string(json.to_owned()).unwrap()).unwrap();
        assert_eq!(result.structured.as_deref(), Some(r#"{"n":1e400,"m":1.10}"#));
        assert_eq!(result.content[0].as_text(), Some("a"));
        assert_eq!(result.rest.size(), 0, "each reply has its own `resultType`");
    }

    #[test]
    fn a_result_that_is_none_is_an_error() {
        for wrong in ["[]", r#"{"content":3}"#, r#"{"isError":"no"}"#] {
            assert!(
                ToolResult::from_wire(&RawValue::from_string(wrong.to_owned()).unwrap()).is_err(),
                "{wrong}"
            );
        }
        let wrong =
            RawValue::from_string(r#"{"messages":[{"role":"system","content":{}}]}"#.to_owned()).unwrap();
        assert!(PromptResult::from_wire(&wrong).is_err());
        let wrong = RawValue::from_string(r#"{"contents":[{"uri":"a://b"}]}"#.to_owned()).unwrap();
        assert!(ResourceResult::from_wire(&wrong).is_err());
    }
}
