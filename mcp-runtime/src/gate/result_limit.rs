//! The size of a result, and what is sent of a tool's result that is larger than its limit: a link to the whole, if the
//! server keeps results, or as much as fits: texts are cut, with a notice. Structured content is never cut, since the rest
//! of it would not be JSON, or not what the schema promises.

use std::time::Duration;

use crate::core::{
    config::Limits,
    content::{Content, ResourceContents, ResourceLink},
    dispatch::{PendingReply, Reply, Response},
    reason::Reason,
    server::{Entry as _, Server},
    tool::{ResultLimit, ToolCallEnd, ToolEntry, ToolResult},
};

impl ResultLimit {
    /// A limit in bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        let bytes = if bytes > usize::MAX as u64 { usize::MAX } else { bytes as usize };
        Self { bytes, respond }
    }
}

impl Limits {
    /// Sets the maximum size, in bytes, of the result of a tool, resource or prompt without its own `max_result`;
    /// unlimited by default.
    ///
    /// A longer text of a tool is cut, with a notice; any other longer result is an error that names the size. See
    /// [results](crate::guide::limits#results).
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.max_result = Some(ResultLimit::new(bytes as u64));
        self
    }
}

/// The response with a result, or with what may be sent of it.
fn respond(limit: ResultLimit, server: &Server, end: ToolCallEnd<'_>) -> Response {
    let (limit, ToolCallEnd { entry, reader, result, reason }) = (limit.bytes, end);
    if result.size() <= limit {
        return entry.reply(result).because(reason).into();
    }
    let entry = entry.clone();
    let (Some(_), Some(reader)) = (server.kept_results(), reader.cloned()) else {
        return reply_without_excess(&entry, result, limit, None).into();
    };
    let server = server.clone();
    Response::Pending(PendingReply::without_call(async move {
        let mut kept = None;
        if let Some(results) = server.kept_results() {
            let contents = result.clone().into_contents();
            let uri = results.keep(server.name(), &reader, &contents).await;
            kept = uri.map(|uri| (uri, results.ttl()));
        }
        reply_without_excess(&entry, result, limit, kept)
    }))
}

fn reply_without_excess(
    entry: &ToolEntry,
    result: ToolResult,
    limit: usize,
    kept: Option<(String, Duration)>,
) -> Reply {
    let failed = result.is_error;
    let result = without_excess(entry, result, limit, kept);
    let reason = (result.is_error && !failed).then_some(Reason::ResultSize);
    entry.reply(result).because(reason)
}

/// The part that is sent of a result beyond its limit: a link to the whole, if that is kept, and as much as fits.
fn without_excess(
    entry: &ToolEntry,
    result: ToolResult,
    limit: usize,
    kept: Option<(String, Duration)>,
) -> ToolResult {
    let (name, size) = (entry.name(), result.size());
    let too_large =
        |hint: &str| format!("the result of '{name}' has {size} bytes, and at most {limit} are sent\n{hint}");
    let Some((uri, ttl)) = kept else {
        let hint = format!("call '{name}' again with arguments that select less");
        return match result.structured {
            Some(_) => ToolResult::error(too_large(&hint)),
            None => result.cut(limit, &hint),
        };
    };
    let mut link = ResourceLink::new(uri, format!("result of {name}"));
    link = link.size(u64::try_from(size).unwrap_or(u64::MAX));
    if result.structured.is_some() {
        link = link.mime("application/json");
    }
    let hint = format!("the linked resource is the whole, for {}", humantime::format_duration(ttl));
    match result.structured {
        // clients expect structured content of a result that is not an error, if its schema is published
        Some(_) if entry.output.is_some() => ToolResult::error(too_large(&hint)),
        Some(_) => ToolResult { structured: None, ..ToolResult::text(too_large(&hint)) },
        None => result.cut(limit, &hint),
    }
    .with(link)
}

impl ToolResult {
    /// Bytes of its texts, its structured content, and its images and audio as base64. A text that repeats the structured
    /// content does not count.
    pub(crate) fn size(&self) -> usize {
        let structured = self.structured.as_deref();
        let blocks =
            self.content.iter().filter(|block| structured.is_none() || block.as_text() != structured);
        structured.map_or(0, str::len) + blocks.map(Content::size).sum::<usize>()
    }

    /// The same as the contents of a resource.
    pub(crate) fn into_contents(self) -> Vec<ResourceContents> {
        let structured = self.structured;
        let mut contents = Vec::new();
        for block in self.content {
            contents.push(match block {
                Content::Text(text) if structured.as_deref() == Some(&text.text) => continue,
                Content::Text(text) => ResourceContents::text(text.text).mime("text/plain"),
                Content::Image(image) => {
                    ResourceContents::blob_from_base64(image.to_base64()).mime(image.mime)
                }
                Content::Audio(audio) => {
                    ResourceContents::blob_from_base64(audio.to_base64()).mime(audio.mime)
                }
                Content::ResourceLink(link) => ResourceContents::text(format!("{}: {}", link.name, link.uri)),
                Content::Embedded(embedded) => embedded.resource,
                Content::Unknown(value) => ResourceContents::text(value.to_string()).mime("application/json"),
            });
        }
        let structured = structured.map(|json| ResourceContents::text(json).mime("application/json"));
        structured.into_iter().chain(contents).collect()
    }

    /// The part that fits into this many bytes, with a notice at its end that says how much is missing, and `hint`.
    pub(crate) fn cut(mut self, limit: usize, hint: &str) -> Self {
        let size = self.size();
        let (mut left, mut dropped) = (limit, 0);
        self.content.retain_mut(|block| {
            let bytes = block.size();
            if bytes <= left {
                left -= bytes;
                return true;
            }
            match block {
                Content::Text(text) if left > 0 => {
                    let mut end = left;
                    while !text.text.is_char_boundary(end) {
                        end -= 1;
                    }
                    text.text.to_mut().truncate(end);
                    text.text.to_mut().shrink_to_fit();
                    left = 0;
                    end > 0
                }
                _ => {
                    dropped += 1;
                    false
                }
            }
        });
        let shown: usize = self.content.iter().map(Content::size).sum();
        let blocks = match dropped {
            0 => String::new(),
            1 => ", and a block is left out".to_owned(),
            more => format!(", and {more} blocks are left out"),
        };
        self.content.push(Content::text(format!("[{shown} of {size} bytes are shown{blocks}; {hint}]")));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::content::Image;

    fn texts(result: &ToolResult) -> Vec<&str> {
        result.content.iter().filter_map(Content::as_text).collect()
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let cut = ToolResult::text("größer").cut(4, "ask for less");
        // `ö` has two bytes, and `ß` would be cut in the middle
        assert_eq!(texts(&cut), ["grö", "[4 of 8 bytes are shown; ask for less]"]);
        let cut = ToolResult::text("größer").cut(5, "ask for less");
        assert_eq!(texts(&cut), ["grö", "[4 of 8 bytes are shown; ask for less]"]);
        let cut = ToolResult::text("ö").cut(1, "ask for less");
        assert_eq!(texts(&cut), ["[0 of 2 bytes are shown; ask for less]"]);
    }

    #[test]
    fn blocks_that_do_not_fit_are_left_out() {
        let image = || Image::new([0; 30], "image/png");
        let result = ToolResult::new([Content::text("12345"), image().into(), image().into(), "67".into()]);
        assert_eq!(result.size(), 5 + 40 + 40 + 2);
        let cut = result.clone().cut(50, "ask for less");
        assert_eq!(
            texts(&cut),
            ["12345", "67", "[47 of 87 bytes are shown, and a block is left out; ask for less]"]
        );
        let cut = result.failed().cut(6, "ask for less");
        assert_eq!(
            texts(&cut),
            ["12345", "6", "[6 of 87 bytes are shown, and 2 blocks are left out; ask for less]"]
        );
        assert!(cut.is_error);
    }

    #[test]
    fn links_are_small_and_text_that_repeats_structured_content_counts_once() {
        assert_eq!(ToolResult::new([ResourceLink::new("a://b", "b").into()]).size(), 6);
        let json = "[1,2,3]".to_owned();
        let structured = ToolResult { structured: Some(json.clone()), ..ToolResult::text(json) };
        assert_eq!(structured.size(), 7);
        assert_eq!(structured.with("more").size(), 11);
    }
}
