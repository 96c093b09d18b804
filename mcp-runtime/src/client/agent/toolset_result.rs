//! Results as a model gets them: small text in line, everything else as a reference.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    ArtifactRef,
    artifact::{ArtifactSource, Artifacts, Origin, filename_of},
    toolset::CounterCells,
};
use crate::core::{
    content::{Content, ContentWriter, ResourceContents, ResourceLink},
    protocol::Revision,
};

/// The types of images that both APIs take.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Images of the largest size that one result may show.
const MAX_IMAGES: usize = 4;
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
    /// Images that the model sees, in their order.
    pub(super) images: Vec<ShownImage>,
}

/// An image that a model sees, and not only a reference to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShownImage {
    /// The part that refers to it.
    part: usize,
    media_type: &'static str,
    base64: String,
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
    /// The part as text for a model; a part that is not text becomes JSON.
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

    /// The block `tool_result` of Anthropic's Messages API; images are blocks of their own.
    #[must_use]
    pub fn anthropic(&self, tool_use_id: &str) -> Value {
        let content = self.content(
            |text| json!({ "type": "text", "text": text }),
            |image| {
                let source =
                    json!({ "type": "base64", "media_type": image.media_type, "data": image.base64 });
                json!({ "type": "image", "source": source })
            },
        );
        json!({
            "type": "tool_result",
            "tool_use_id": tool_use_id,
            "content": content,
            "is_error": self.is_error,
        })
    }

    /// The item `function_call_output` of OpenAI's Responses API; images are items of their own.
    #[must_use]
    pub fn openai(&self, call_id: &str) -> Value {
        let output = self.content(
            |text| json!({ "type": "input_text", "text": text }),
            |image| {
                let url = format!("data:{};base64,{}", image.media_type, image.base64);
                json!({ "type": "input_image", "image_url": url, "detail": "auto" })
            },
        );
        json!({ "type": "function_call_output", "call_id": call_id, "output": output })
    }

    /// Text alone, or a list of texts and images.
    fn content(&self, text: fn(&str) -> Value, image: fn(&ShownImage) -> Value) -> Value {
        if self.images.is_empty() {
            return self.text().into();
        }
        let (mut items, mut images) = (Vec::new(), self.images.iter().peekable());
        let mut words: Vec<String> = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            words.push(part.to_text());
            while let Some(shown) = images.next_if(|image| image.part == number) {
                items.push(text(&std::mem::take(&mut words).join("\n")));
                items.push(image(shown));
            }
        }
        if !words.is_empty() {
            items.push(text(&words.join("\n")));
        }
        items.into()
    }

    /// The message of role `tool` of OpenAI's Chat Completions API, which takes text alone: of images it has references.
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
    /// Bytes of images that a model may still see.
    image_room: usize,
    parts: Vec<ResultPart>,
    images: Vec<ShownImage>,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(artifacts: &'a Artifacts, counters: &'a CounterCells) -> Self {
        let room = artifacts.inline_chars.saturating_mul(4);
        let image_room = artifacts.max_image.saturating_mul(MAX_IMAGES);
        Self { artifacts, counters, room, image_room, parts: Vec::new(), images: Vec::new() }
    }

    pub(super) fn into_result(self, structured: Option<Value>, is_error: bool) -> ToolsetResult {
        ToolsetResult { parts: self.parts, structured, is_error, images: self.images }
    }

    /// An image: stored, and shown to the model if its API takes it.
    async fn image(&mut self, bytes: Option<Vec<u8>>, mime: &str) {
        let size = bytes.as_ref().map_or(0, Vec::len);
        let media_type = IMAGE_TYPES.iter().find(|known| known.eq_ignore_ascii_case(mime));
        let is_shown = (1..=self.artifacts.max_image).contains(&size) && size <= self.image_room;
        let shown = match (&bytes, media_type) {
            (Some(bytes), Some(media_type)) if is_shown => Some((*media_type, STANDARD.encode(bytes))),
            _ => None,
        };
        let before = self.parts.len();
        self.binary(bytes, mime, Origin::default()).await;
        if let Some((media_type, base64)) = shown
            && self.parts.len() > before
        {
            self.image_room -= size;
            self.images.push(ShownImage { part: before, media_type, base64 });
        }
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

    async fn store(&mut self, bytes: Vec<u8>, mime: &str, origin: Origin) {
        let size_bytes = bytes.len() as u64;
        let kept = self.artifacts.keep(self.counters, bytes, mime.to_owned(), origin).await;
        let part = match kept {
            Ok(artifact) => ResultPart::Artifact(artifact),
            Err(reason) => ResultPart::Omitted { mime_type: mime.to_owned(), size_bytes, reason },
        };
        // tools repeat their structured value as text
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    pub(super) async fn text(&mut self, text: String, mime: Option<&str>, origin: Origin) {
        if self.takes_in_line(&text) {
            self.parts.push(ResultPart::Text(text));
        } else {
            self.store(text.into_bytes(), mime.unwrap_or(TEXT), origin).await;
        }
    }

    /// A value that is not text: in line if it is small.
    async fn json(&mut self, json: String, part: ResultPart) {
        if self.takes_in_line(&json) {
            self.parts.push(part);
        } else {
            self.store(json.into_bytes(), JSON, Origin::default()).await;
        }
    }

    async fn binary(&mut self, bytes: Option<Vec<u8>>, mime: &str, origin: Origin) {
        match bytes {
            Some(bytes) => self.store(bytes, mime, origin).await,
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
        let origin = Origin { filename: uri.and_then(filename_of), source };
        match item.as_text() {
            Some(text) => self.text(text.to_owned(), item.mime.as_deref(), origin).await,
            None => {
                let bytes = item.to_bytes().map(Into::into);
                self.binary(bytes, item.mime.as_deref().unwrap_or(BYTES), origin).await;
            }
        }
    }

    /// A block of a tool's result.
    pub(super) async fn block(&mut self, block: Content) {
        match block {
            Content::Text(text) => self.text(text.text.into_owned(), None, Origin::default()).await,
            Content::Image(image) => {
                self.image(image.to_bytes().map(Into::into), &image.mime).await;
            }
            Content::Audio(audio) => {
                self.binary(audio.to_bytes().map(Into::into), &audio.mime, Origin::default()).await;
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
        self.store(json.into_bytes(), JSON, Origin::default()).await;
        None
    }
}
