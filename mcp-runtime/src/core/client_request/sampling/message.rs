//! Messages of a conversation with a model.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
    ser::Error as _,
};
use serde_json::{Map, Value, value::RawValue};

use crate::core::{
    content::{Content, ContentWriter, Role},
    jsonrpc::write_array,
    protocol::Revision,
};

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplingMessage {
    /// The author.
    pub role: Role,
    /// One block or several. Results of tools must not stand beside other blocks.
    #[serde(serialize_with = "serialize_blocks")]
    pub content: Vec<SamplingBlock>,
}

impl SamplingMessage {
    /// A text of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![SamplingBlock::Text { text: text.into() }] }
    }

    /// A text of the assistant.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: vec![SamplingBlock::Text { text: text.into() }] }
    }

    /// One message for each block.
    pub(super) fn split(self) -> impl Iterator<Item = Self> {
        let role = self.role;
        self.content.into_iter().map(move |block| Self { role, content: vec![block] })
    }
}

/// A part of a message, or of a model's answer.
///
/// See [message content](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#message-content).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum SamplingBlock {
    /// `"type": "text"`
    Text {
        /// The text.
        text: String,
    },
    /// `"type": "image"`
    Image {
        /// The image itself, which is base64 on the wire.
        #[serde(serialize_with = "serialize_bytes", deserialize_with = "deserialize_bytes")]
        data: Vec<u8>,
        /// Its MIME type.
        mime_type: String,
    },
    /// `"type": "audio"`
    Audio {
        /// The audio itself, which is base64 on the wire.
        #[serde(serialize_with = "serialize_bytes", deserialize_with = "deserialize_bytes")]
        data: Vec<u8>,
        /// Its MIME type.
        mime_type: String,
    },
    /// `"type": "tool_use"`
    ToolUse(ToolUse),
    /// `"type": "tool_result"`: of a server only, see [`ToolUse::result`].
    #[serde(skip_deserializing)]
    ToolResult {
        /// The id of the [`ToolUse`].
        tool_use_id: String,
        /// What the tool returned.
        #[serde(serialize_with = "serialize_contents")]
        content: Vec<Content>,
        /// Whether the tool failed.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A model's request to use one of the tools that it was given.
///
/// See [sampling with tools](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#sampling-with-tools).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// `id` on the wire, which the result must name.
    pub id: String,
    /// The tool's `name`.
    pub name: String,
    /// `input` on the wire, as the model wrote it: not checked against the tool's schema.
    pub input: Map<String, Value>,
    /// `_meta` on the wire, which is returned to the model unchanged.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    meta: Option<Value>,
}

impl ToolUse {
    /// The input as the type of the tool's arguments.
    ///
    /// # Errors
    /// The reason why the input is invalid; return it to the model as a [`failure`](Self::failure).
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(Value::Object(self.input.clone()))
    }

    /// The block with the result of the tool.
    pub fn result(&self, content: impl Into<Content>) -> SamplingBlock {
        let content = vec![content.into()];
        SamplingBlock::ToolResult { tool_use_id: self.id.clone(), content, is_error: false }
    }

    /// The block with the failure of the tool.
    pub fn failure(&self, content: impl Into<Content>) -> SamplingBlock {
        let content = vec![content.into()];
        SamplingBlock::ToolResult { tool_use_id: self.id.clone(), content, is_error: true }
    }
}

/// Serializes one block without an array, which all revisions know.
fn serialize_blocks<S: Serializer>(blocks: &[SamplingBlock], serializer: S) -> Result<S::Ok, S::Error> {
    match blocks {
        [one] => one.serialize(serializer),
        several => several.serialize(serializer),
    }
}

/// Deserializes one block, or an array of them.
pub(super) fn deserialize_blocks<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<SamplingBlock>, D::Error> {
    let blocks = match Value::deserialize(deserializer)? {
        Value::Array(blocks) => blocks,
        one => vec![one],
    };
    let blocks = blocks.into_iter().map(serde_json::from_value);
    blocks.collect::<Result<_, _>>().map_err(D::Error::custom)
}

fn serialize_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn deserialize_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(deserializer)?).map_err(|_| D::Error::custom("`data` is not base64"))
}

/// Serializes the content of a tool's result, which is the same in all revisions that have such results.
fn serialize_contents<S: Serializer>(contents: &[Content], serializer: S) -> Result<S::Ok, S::Error> {
    let mut json = Vec::new();
    write_array(&mut json, contents, |out, content| {
        ContentWriter(Revision::LATEST).write_content(out, content);
    });
    let json: Box<RawValue> = serde_json::from_slice(&json).map_err(S::Error::custom)?;
    json.serialize(serializer)
}
