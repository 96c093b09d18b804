//! `messages` on the wire: the content allowed in each revision, and the rules about uses of tools and their results.

use std::collections::HashSet;

use super::sampled::{Sampled, SampledBlock, ToolUse};
use crate::core::{
    content::{Audio, Content, ContentWriter, Image, Role},
    context::ClientRequestError,
    jsonrpc::{Object, write_array},
    protocol::Revision,
};

/// One message, of one or several blocks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SamplingMessage {
    pub(super) role: Role,
    pub(super) blocks: Vec<SamplingBlock>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SamplingBlock {
    Content(Content),
    Use(ToolUse),
    Result { id: String, content: Vec<Content>, is_error: bool },
}

impl SamplingMessage {
    pub(super) fn new(role: Role, content: Content) -> Self {
        Self { role, blocks: vec![SamplingBlock::Content(content)] }
    }

    fn uses(&self) -> HashSet<&str> {
        let uses = self.blocks.iter().filter_map(|block| match block {
            SamplingBlock::Use(call) => Some(call.id.as_str()),
            _ => None,
        });
        uses.collect()
    }

    fn results(&self) -> HashSet<&str> {
        let results = self.blocks.iter().filter_map(|block| match block {
            SamplingBlock::Result { id, .. } => Some(id.as_str()),
            _ => None,
        });
        results.collect()
    }

    pub(super) fn has_tools(&self) -> bool {
        self.blocks.iter().any(|block| !matches!(block, SamplingBlock::Content(_)))
    }

    /// Whether it consists of results of tools only.
    pub(super) fn is_results(&self) -> bool {
        self.blocks.iter().all(|block| matches!(block, SamplingBlock::Result { .. }))
    }
}

impl From<&Sampled> for SamplingMessage {
    fn from(answer: &Sampled) -> Self {
        let blocks = answer.content.iter().map(|block| match block {
            SampledBlock::Text(text) => SamplingBlock::Content(Content::text(text.clone())),
            SampledBlock::Image { bytes, mime } => {
                SamplingBlock::Content(Image::new(bytes.clone(), mime.clone()).into())
            }
            SampledBlock::Audio { bytes, mime } => {
                SamplingBlock::Content(Audio::new(bytes.clone(), mime.clone()).into())
            }
            SampledBlock::ToolUse(call) => SamplingBlock::Use(call.clone()),
        });
        Self { role: answer.role, blocks: blocks.collect() }
    }
}

/// Checks that every message with uses of tools is followed by one with their results.
///
/// # Errors
/// The problem, for the developer.
pub(super) fn check_tool_results(messages: &[SamplingMessage]) -> Result<(), String> {
    let mut expected = HashSet::new();
    for message in messages {
        let results = message.results();
        if results != expected {
            let mut odd: Vec<&str> = results.symmetric_difference(&expected).copied().collect();
            odd.sort_unstable();
            return Err(format!(
                "the uses and results of tools do not match: `{}`\nafter `.answered(..)` add one `.tool_result(..)` for each use",
                odd.join("`, `")
            ));
        }
        expected = message.uses();
    }
    if expected.is_empty() {
        return Ok(());
    }
    let mut open: Vec<&str> = expected.into_iter().collect();
    open.sort_unstable();
    Err(format!(
        "the uses of tools `{}` have no result\nadd one `.tool_result(..)` for each",
        open.join("`, `")
    ))
}

/// Writes the messages for the request with that key. Before 2025-11-25 a message has one block, so that one of several
/// becomes several messages.
///
/// # Errors
/// The revision does not have this kind of content in sampling, or no revision has.
pub(super) fn write_messages(
    out: &mut Vec<u8>,
    key: &str,
    messages: &[SamplingMessage],
    revision: Revision,
) -> Result<(), ClientRequestError> {
    for block in messages.iter().flat_map(|message| &message.blocks) {
        check_block(key, block, revision)?;
    }
    let (many, writer) = (revision >= Revision::V2025_11_25, ContentWriter(revision));
    let messages = messages.iter().flat_map(|message| {
        let size = if many { message.blocks.len().max(1) } else { 1 };
        message.blocks.chunks(size).map(|blocks| (message.role, blocks))
    });
    write_array(out, messages, |out, (role, blocks)| {
        let mut message = Object::new(out);
        message.str("role", role.as_str());
        let content = message.key("content");
        match blocks {
            [one] => write_block(content, one, writer),
            several => write_array(content, several, |out, one| write_block(out, one, writer)),
        }
        message.end();
    });
    Ok(())
}

fn check_block(key: &str, block: &SamplingBlock, revision: Revision) -> Result<(), ClientRequestError> {
    match block {
        SamplingBlock::Content(Content::Text(_) | Content::Image(_)) => Ok(()),
        SamplingBlock::Content(Content::Audio(_)) if revision >= Revision::V2025_03_26 => Ok(()),
        SamplingBlock::Content(Content::Audio(_)) => {
            Err(ClientRequestError::Revision { what: "audio in sampling" })
        }
        SamplingBlock::Content(_) => {
            let reason =
                "a message contains a resource\nmodels take text, images and audio: add its text instead";
            Err(ClientRequestError::Unfit { key: key.into(), reason: reason.to_owned() })
        }
        SamplingBlock::Use(_) | SamplingBlock::Result { .. } if revision >= Revision::V2025_11_25 => Ok(()),
        SamplingBlock::Use(_) | SamplingBlock::Result { .. } => {
            Err(ClientRequestError::Revision { what: "tools in sampling" })
        }
    }
}

fn write_block(out: &mut Vec<u8>, block: &SamplingBlock, writer: ContentWriter) {
    match block {
        SamplingBlock::Content(content) => writer.write_content(out, content),
        SamplingBlock::Use(call) => {
            let mut object = Object::new(out);
            object.raw("type", "\"tool_use\"").str("id", &call.id).str("name", &call.name);
            object.value("input", &call.input);
            if let Some(meta) = &call.meta {
                object.value("_meta", meta);
            }
            object.end();
        }
        SamplingBlock::Result { id, content, is_error } => {
            let mut object = Object::new(out);
            object.raw("type", "\"tool_result\"").str("toolUseId", id);
            write_array(object.key("content"), content, |out, block| writer.write_content(out, block));
            if *is_error {
                object.raw("isError", "true");
            }
            object.end();
        }
    }
}
