//! Results as a model gets them: small text in line, everything else as a reference.

use serde_json::{Value, json};

use super::{
    ArtifactRef,
    artifact::{ArtifactSource, Artifacts, filename_of},
    toolset::CounterCells,
};
use crate::{
    content::{Content, ContentWriter, ResourceContents, ResourceLink},
    protocol::Revision,
};

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";

/// The result of a call, for a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolsetResult {
    /// Its parts.
    pub parts: Vec<ResultPart>,
    /// The structured value of a tool, if it has room in line; otherwise it is one of the parts.
    pub structured: Option<Value>,
    /// Whether the tool failed, and says so to the model.
    pub is_error: bool,
}

/// A part of a result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ResultPart {
    /// Text.
    Text(String),
    /// Content that is stored.
    Artifact(ArtifactRef),
    /// A link to a resource, which was not read.
    Link(ResourceLink),
    /// Content that was dropped.
    Omitted {
        /// Its MIME type.
        mime_type: String,
        /// Its size in bytes.
        size_bytes: u64,
        /// Why.
        reason: String,
    },
    /// A block of a kind that this crate does not know.
    Other(Value),
}

impl ResultPart {
    /// The part as text for a model: what is not text becomes JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Artifact(artifact) => json!({ "artifact": artifact }).to_string(),
            Self::Link(link) => link_json(link),
            Self::Omitted { mime_type, size_bytes, reason } => {
                json!({ "omitted": { "mime_type": mime_type, "size_bytes": size_bytes, "reason": reason } })
                    .to_string()
            }
            Self::Other(value) => value.to_string(),
        }
    }
}

impl ToolsetResult {
    /// The whole result as text for a model: its parts, joined by line breaks; the structured value if there are none.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.structured {
            Some(value) if self.parts.is_empty() => value.to_string(),
            _ => self.parts.iter().map(ResultPart::to_text).collect::<Vec<_>>().join("\n"),
        }
    }

    /// The references to artifacts among its parts.
    pub fn artifacts(&self) -> impl Iterator<Item = &ArtifactRef> {
        self.parts.iter().filter_map(|part| match part {
            ResultPart::Artifact(artifact) => Some(artifact),
            _ => None,
        })
    }

    /// The block `tool_result` of Anthropic's Messages API.
    #[must_use]
    pub fn anthropic(&self, tool_use_id: &str) -> Value {
        json!({
            "type": "tool_result",
            "tool_use_id": tool_use_id,
            "content": self.text(),
            "is_error": self.is_error,
        })
    }

    /// The item `function_call_output` of OpenAI's Responses API.
    #[must_use]
    pub fn openai(&self, call_id: &str) -> Value {
        json!({ "type": "function_call_output", "call_id": call_id, "output": self.text() })
    }

    /// The message of role `tool` of OpenAI's Chat Completions API.
    #[must_use]
    pub fn openai_chat(&self, tool_call_id: &str) -> Value {
        json!({ "role": "tool", "tool_call_id": tool_call_id, "content": self.text() })
    }
}

fn link_json(link: &ResourceLink) -> String {
    let mut out = Vec::new();
    ContentWriter(Revision::LATEST).write_content(&mut out, &Content::ResourceLink(link.clone()));
    String::from_utf8(out).unwrap_or_default()
}

/// Makes parts of one result's contents.
pub(super) struct Sieve<'a> {
    artifacts: &'a Artifacts,
    counters: &'a CounterCells,
    /// Characters that may still be in line.
    room: usize,
    pub(super) parts: Vec<ResultPart>,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(artifacts: &'a Artifacts, counters: &'a CounterCells) -> Self {
        let room = artifacts.inline_chars.saturating_mul(4);
        Self { artifacts, counters, room, parts: Vec::new() }
    }

    /// Whether a text may be in line; if so, its room is taken.
    pub(super) fn takes_in_line(&mut self, text: &str) -> bool {
        let limit = self.artifacts.inline_chars.min(self.room);
        // a text has at most as many characters as bytes
        let chars = text.chars().take(limit.saturating_add(1)).count();
        let is_small = chars <= limit;
        if is_small {
            self.room -= chars;
        }
        is_small
    }

    async fn store(
        &mut self,
        bytes: Vec<u8>,
        mime: &str,
        filename: Option<String>,
        source: Option<ArtifactSource>,
    ) {
        let size_bytes = bytes.len() as u64;
        let part = match self.artifacts.keep(bytes, mime.to_owned(), filename, source).await {
            Ok((artifact, is_new)) => {
                if is_new {
                    self.counters.stored_artifact(size_bytes);
                }
                ResultPart::Artifact(artifact)
            }
            Err(reason) => {
                ResultPart::Omitted { mime_type: mime.to_owned(), size_bytes, reason: reason.to_string() }
            }
        };
        // tools repeat their structured value as text
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    pub(super) async fn text(
        &mut self,
        text: String,
        mime: Option<&str>,
        filename: Option<String>,
        source: Option<ArtifactSource>,
    ) {
        if self.takes_in_line(&text) {
            self.parts.push(ResultPart::Text(text));
        } else {
            self.store(text.into_bytes(), mime.unwrap_or(TEXT), filename, source).await;
        }
    }

    /// A value that is not text: in line if it is small.
    async fn json(&mut self, json: String, part: ResultPart) {
        if self.takes_in_line(&json) {
            self.parts.push(part);
        } else {
            self.store(json.into_bytes(), JSON, None, None).await;
        }
    }

    async fn binary(
        &mut self,
        bytes: Option<Vec<u8>>,
        mime: &str,
        filename: Option<String>,
        source: Option<ArtifactSource>,
    ) {
        match bytes {
            Some(bytes) => self.store(bytes, mime, filename, source).await,
            None => self.parts.push(ResultPart::Omitted {
                mime_type: mime.to_owned(),
                size_bytes: 0,
                reason: "its base64 is malformed".to_owned(),
            }),
        }
    }

    /// An item of a resource's contents; `source` is where it can be read again.
    pub(super) async fn resource(&mut self, item: &ResourceContents, source: Option<ArtifactSource>) {
        let uri = item.uri.as_deref().or(source.as_ref().map(|source| &*source.uri));
        let filename = uri.and_then(filename_of);
        match item.as_text() {
            Some(text) => self.text(text.to_owned(), item.mime.as_deref(), filename, source).await,
            None => {
                let bytes = item.to_bytes().map(Into::into);
                self.binary(bytes, item.mime.as_deref().unwrap_or(BYTES), filename, source).await;
            }
        }
    }

    /// A block of a tool's result.
    pub(super) async fn block(&mut self, block: Content) {
        match block {
            Content::Text(text) => self.text(text.text.into_owned(), None, None, None).await,
            Content::Image(image) => {
                self.binary(image.to_bytes().map(Into::into), &image.mime, None, None).await;
            }
            Content::Audio(audio) => {
                self.binary(audio.to_bytes().map(Into::into), &audio.mime, None, None).await;
            }
            Content::Embedded(embedded) => self.resource(&embedded.resource, None).await,
            Content::ResourceLink(link) => {
                let json = link_json(&link);
                self.json(json, ResultPart::Link(link)).await;
            }
            Content::Unknown(value) => self.json(value.to_string(), ResultPart::Other(value)).await,
        }
    }

    /// A tool's structured value: in line if it is small.
    pub(super) async fn structured(&mut self, value: Value) -> Option<Value> {
        let json = value.to_string();
        if self.takes_in_line(&json) {
            return Some(value);
        }
        self.store(json.into_bytes(), JSON, None, None).await;
        None
    }
}
