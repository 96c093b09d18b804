//! The answer of a client's model: `CreateMessageResult` on the wire.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::core::content::Role;

/// The answer of a client's model: `CreateMessageResult` on the wire.
///
/// See [result fields](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#result-fields).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sampled {
    /// `role` on the wire; usually the assistant.
    pub role: Role,
    /// `content` on the wire.
    pub content: Vec<SampledBlock>,
    /// `model` on the wire: the name of the model.
    pub model: String,
    /// `stopReason` on the wire, where the client knows it: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or
    /// another.
    pub stop_reason: Option<String>,
}

/// One part of a model's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SampledBlock {
    /// `"type": "text"`
    Text(String),
    /// `"type": "image"`
    Image {
        /// The image itself, decoded.
        bytes: Vec<u8>,
        /// `mimeType` on the wire.
        mime: String,
    },
    /// `"type": "audio"`
    Audio {
        /// The audio itself, decoded.
        bytes: Vec<u8>,
        /// `mimeType` on the wire.
        mime: String,
    },
    /// `"type": "tool_use"`
    ToolUse(ToolUse),
}

/// A model's request to use one of the tools that it was given.
///
/// See [sampling with tools](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#sampling-with-tools).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolUse {
    /// `id` on the wire, which the result must name.
    pub id: String,
    /// The tool's `name`.
    pub name: String,
    /// `input` on the wire, as the model wrote it: not checked against the tool's schema.
    pub input: Map<String, Value>,
    /// `_meta` on the wire, which is returned to the model unchanged.
    pub(super) meta: Option<Value>,
}

impl ToolUse {
    /// The input as the type of the tool's arguments.
    ///
    /// # Errors
    /// The reason why the input is invalid; return it to the model as a failed result.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(Value::Object(self.input.clone()))
    }
}

impl Sampled {
    /// All of its text, concatenated.
    #[must_use]
    pub fn text(&self) -> String {
        let text = |block: &'_ SampledBlock| match block {
            SampledBlock::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.content.iter().filter_map(text).collect()
    }

    /// The tools that the model requests, in order; none when it is done.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(|block| match block {
            SampledBlock::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    /// Decodes a client's result.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(super) fn decode(result: &str) -> Result<Self, String> {
        let Ok(Value::Object(mut result)) = serde_json::from_str(result) else {
            return Err("the result is not an object".to_owned());
        };
        let role = match result.get("role").and_then(Value::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err("`role` is not `user` or `assistant`".to_owned()),
        };
        let blocks = match result.remove("content") {
            Some(Value::Array(blocks)) => blocks,
            Some(one) => vec![one],
            None => return Err("`content` is missing".to_owned()),
        };
        let content = blocks.into_iter().map(decode_block).collect::<Result<_, _>>()?;
        let model = take_text(&mut result, "model")?;
        let stop_reason = match result.remove("stopReason") {
            Some(Value::String(reason)) => Some(reason),
            None | Some(Value::Null) => None,
            Some(_) => return Err("`stopReason` is not a string".to_owned()),
        };
        Ok(Self { role, content, model, stop_reason })
    }
}

fn decode_block(block: Value) -> Result<SampledBlock, String> {
    let Value::Object(mut block) = block else {
        return Err("a block of `content` is not an object".to_owned());
    };
    match block.get("type").and_then(Value::as_str) {
        Some("text") => take_text(&mut block, "text").map(SampledBlock::Text),
        Some("image") => take_media(&mut block).map(|(bytes, mime)| SampledBlock::Image { bytes, mime }),
        Some("audio") => take_media(&mut block).map(|(bytes, mime)| SampledBlock::Audio { bytes, mime }),
        Some("tool_use") => {
            let Some(Value::Object(input)) = block.remove("input") else {
                return Err("`input` of a tool use is not an object".to_owned());
            };
            let (id, name) = (take_text(&mut block, "id")?, take_text(&mut block, "name")?);
            Ok(SampledBlock::ToolUse(ToolUse { id, name, input, meta: block.remove("_meta") }))
        }
        _ => Err("a block of `content` is not text, an image, audio or a tool use".to_owned()),
    }
}

fn take_media(block: &mut Map<String, Value>) -> Result<(Vec<u8>, String), String> {
    let bytes = STANDARD.decode(take_text(block, "data")?).map_err(|_| "`data` is not base64".to_owned())?;
    Ok((bytes, take_text(block, "mimeType")?))
}

fn take_text(object: &mut Map<String, Value>, member: &str) -> Result<String, String> {
    match object.remove(member) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("`{member}` is not a string")),
    }
}
