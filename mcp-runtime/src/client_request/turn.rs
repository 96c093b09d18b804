//! The messages of a conversation with a model, and the rules about tools in them.
//!
//! `request` writes them.

use std::collections::BTreeSet;

use crate::client_request::{Refusal, ToolUse};
use crate::{
    content::{Content, ContentWriter, Role},
    jsonrpc::{Object, write_array},
    protocol::Revision,
};

/// What one side says in one go.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    pub(super) role: Role,
    pub(super) blocks: Vec<Block>,
}

/// A part of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    Content(Content),
    Use(ToolUse),
    Result { id: String, content: Vec<Content>, is_error: bool },
}

impl Turn {
    pub(super) fn new(role: Role, content: Content) -> Self {
        Self { role, blocks: vec![Block::Content(content)] }
    }

    fn uses(&self) -> BTreeSet<&str> {
        let uses = self.blocks.iter().filter_map(|block| match block {
            Block::Use(call) => Some(call.id.as_str()),
            _ => None,
        });
        uses.collect()
    }

    fn results(&self) -> BTreeSet<&str> {
        let results = self.blocks.iter().filter_map(|block| match block {
            Block::Result { id, .. } => Some(id.as_str()),
            _ => None,
        });
        results.collect()
    }

    pub(super) fn has_tools(&self) -> bool {
        self.blocks.iter().any(|block| !matches!(block, Block::Content(_)))
    }

    /// Whether it is nothing but results of tools.
    pub(super) fn is_results(&self) -> bool {
        self.blocks.iter().all(|block| matches!(block, Block::Result { .. }))
    }
}

/// Whether every use of a tool is followed by its result, and by nothing else.
///
/// # Errors
/// What is wrong, as the developer should read it.
pub(super) fn balanced(turns: &[Turn]) -> Result<(), Refusal> {
    let mut expected = BTreeSet::new();
    for turn in turns {
        let results = turn.results();
        if results != expected {
            let odd: Vec<&str> = results.symmetric_difference(&expected).copied().collect();
            return Err(Refusal::Unfit(format!(
                "the uses and results of tools do not match: `{}`\nafter `.answered(..)` add one `.tool_result(..)` for each use",
                odd.join("`, `")
            )));
        }
        expected = turn.uses();
    }
    if expected.is_empty() {
        return Ok(());
    }
    let open: Vec<&str> = expected.into_iter().collect();
    Err(Refusal::Unfit(format!(
        "the uses of tools `{}` have no result\nadd one `.tool_result(..)` for each",
        open.join("`, `")
    )))
}

/// Writes the messages; before 2025-11-25 each has one block, so that a turn of several is several messages.
///
/// # Errors
/// The revision does not have this kind of content, or no sampling has.
pub(super) fn write(out: &mut Vec<u8>, turns: &[Turn], revision: Revision) -> Result<(), Refusal> {
    for block in turns.iter().flat_map(|turn| &turn.blocks) {
        fits(block, revision)?;
    }
    let (many, writer) = (revision >= Revision::V2025_11_25, ContentWriter(revision));
    let messages = turns.iter().flat_map(|turn| {
        let size = if many { turn.blocks.len().max(1) } else { 1 };
        turn.blocks.chunks(size).map(|blocks| (turn.role, blocks))
    });
    write_array(out, messages, |out, (role, blocks)| {
        let mut message = Object::new(out);
        message.str("role", role.as_str());
        let content = message.key("content");
        match blocks {
            [one] => block(content, one, writer),
            several => write_array(content, several, |out, one| block(out, one, writer)),
        }
        message.end();
    });
    Ok(())
}

fn fits(block: &Block, revision: Revision) -> Result<(), Refusal> {
    match block {
        Block::Content(Content::Text(_) | Content::Image(_)) => Ok(()),
        Block::Content(Content::Audio(_)) if revision >= Revision::V2025_03_26 => Ok(()),
        Block::Content(Content::Audio(_)) => Err(Refusal::Revision("audio in sampling")),
        Block::Content(_) => {
            let text =
                "a message holds a resource\nmodels are sent text, images and audio: put its text there";
            Err(Refusal::Unfit(text.to_owned()))
        }
        Block::Use(_) | Block::Result { .. } if revision >= Revision::V2025_11_25 => Ok(()),
        Block::Use(_) | Block::Result { .. } => Err(Refusal::Revision("tools in sampling")),
    }
}

fn block(out: &mut Vec<u8>, block: &Block, writer: ContentWriter) {
    match block {
        Block::Content(content) => writer.write_content(out, content),
        Block::Use(call) => {
            let mut object = Object::new(out);
            object.raw("type", "\"tool_use\"").str("id", &call.id).str("name", &call.name);
            object.value("input", &call.input);
            if let Some(meta) = &call.meta {
                object.value("_meta", meta);
            }
            object.end();
        }
        Block::Result { id, content, is_error } => {
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
