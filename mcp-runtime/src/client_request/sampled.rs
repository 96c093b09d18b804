//! What a client's model answered.
//!
//! `sample` reads it; functions look at it, and send it back to go on.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::client_request::turn::{Block, Turn};
use crate::content::{Audio, Content, Image, Role};

/// The answer of a client's model: the wire's `CreateMessageResult`.
///
/// See [result fields](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#result-fields).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sampled {
    /// Who speaks; the assistant, as a rule.
    pub role: Role,
    /// What was said, in order.
    pub content: Vec<SampledBlock>,
    /// The wire's `model`: which one it was.
    pub model: String,
    /// The wire's `stopReason`, where the client knows it: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or
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
        /// The wire's `mimeType`.
        mime: String,
    },
    /// `"type": "audio"`
    Audio {
        /// The audio itself, decoded.
        bytes: Vec<u8>,
        /// The wire's `mimeType`.
        mime: String,
    },
    /// `"type": "tool_use"`
    ToolUse(ToolUse),
}

/// A model's wish to use one of the tools that it was given.
///
/// See [sampling with tools](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#sampling-with-tools).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolUse {
    /// The wire's `id`, which the result must name.
    pub id: String,
    /// The tool's `name`.
    pub name: String,
    /// The wire's `input`, as the model wrote it: nobody has checked it against the tool's schema.
    pub input: Map<String, Value>,
    /// The wire's `_meta`, which goes back to the model as it is.
    pub(super) meta: Option<Value>,
}

impl ToolUse {
    /// The input as the type that the tool was given with.
    ///
    /// # Errors
    /// What the model got wrong; send it back as a failed result, and it may do better.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(Value::Object(self.input.clone()))
    }
}

impl Sampled {
    /// All of its text, in one piece.
    #[must_use]
    pub fn text(&self) -> String {
        let text = |block: &'_ SampledBlock| match block {
            SampledBlock::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.content.iter().filter_map(text).collect()
    }

    /// The tools that the model wants used, in order; none when it is done.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(|block| match block {
            SampledBlock::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    pub(super) fn turn(&self) -> Turn {
        let blocks = self.content.iter().map(|block| match block {
            SampledBlock::Text(text) => Block::Content(Content::text(text.clone())),
            SampledBlock::Image { bytes, mime } => {
                Block::Content(Image::new(bytes.clone(), mime.clone()).into())
            }
            SampledBlock::Audio { bytes, mime } => {
                Block::Content(Audio::new(bytes.clone(), mime.clone()).into())
            }
            SampledBlock::ToolUse(call) => Block::Use(call.clone()),
        });
        Turn { role: self.role, blocks: blocks.collect() }
    }

    /// Reads a client's result.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(result: &str) -> Result<Self, String> {
        let Ok(Value::Object(mut result)) = serde_json::from_str(result) else {
            return Err("the answer is no object".to_owned());
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
        let content = blocks.into_iter().map(block).collect::<Result<_, _>>()?;
        let model = text(&mut result, "model")?;
        let stop_reason = match result.remove("stopReason") {
            Some(Value::String(reason)) => Some(reason),
            None | Some(Value::Null) => None,
            Some(_) => return Err("`stopReason` is no string".to_owned()),
        };
        Ok(Self { role, content, model, stop_reason })
    }
}

fn block(block: Value) -> Result<SampledBlock, String> {
    let Value::Object(mut block) = block else { return Err("a block of `content` is no object".to_owned()) };
    match block.get("type").and_then(Value::as_str) {
        Some("text") => text(&mut block, "text").map(SampledBlock::Text),
        Some("image") => media(&mut block).map(|(bytes, mime)| SampledBlock::Image { bytes, mime }),
        Some("audio") => media(&mut block).map(|(bytes, mime)| SampledBlock::Audio { bytes, mime }),
        Some("tool_use") => {
            let Some(Value::Object(input)) = block.remove("input") else {
                return Err("a use of a tool has no object `input`".to_owned());
            };
            let (id, name) = (text(&mut block, "id")?, text(&mut block, "name")?);
            Ok(SampledBlock::ToolUse(ToolUse { id, name, input, meta: block.remove("_meta") }))
        }
        _ => Err("a block of `content` is none of text, image, audio and tool use".to_owned()),
    }
}

fn media(block: &mut Map<String, Value>) -> Result<(Vec<u8>, String), String> {
    let bytes = STANDARD.decode(text(block, "data")?).map_err(|_| "`data` is no base64".to_owned())?;
    Ok((bytes, text(block, "mimeType")?))
}

fn text(object: &mut Map<String, Value>, member: &str) -> Result<String, String> {
    match object.remove(member) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("`{member}` is no string")),
    }
}
