//! The size of a result, and what is sent of a tool's result that is larger than its limit: as much as fits, with a notice.
//! Structured content is never cut, since the rest of it would not be JSON, or not what the schema promises.

use super::ToolResult;
use crate::core::content::Content;

impl ToolResult {
    /// Bytes of its texts, its structured content, and its images and audio as base64. A text that repeats the structured
    /// content does not count.
    pub(crate) fn size(&self) -> usize {
        let structured = self.structured.as_deref();
        let blocks =
            self.content.iter().filter(|block| structured.is_none() || block.as_text() != structured);
        #[cfg(feature = "client")]
        let rest = self.rest.size();
        #[cfg(not(feature = "client"))]
        let rest = 0;
        structured.map_or(0, str::len) + blocks.map(Content::size).sum::<usize>() + rest
    }

    /// What is sent of the result of the tool `name` within this many bytes, and whether that is an error instead.
    pub(crate) fn within(self, limit: usize, name: &str) -> (Self, bool) {
        let size = self.size();
        if size <= limit {
            return (self, false);
        }
        let hint = format!("call '{name}' again with arguments that select less");
        match self.structured {
            Some(_) => {
                let text =
                    format!("the result of '{name}' has {size} bytes, and at most {limit} are sent\n{hint}");
                let is_refused = !self.is_error;
                (Self::error(text), is_refused)
            }
            None => (self.cut(limit, &hint), false),
        }
    }

    /// The part that fits into this many bytes, with a notice at its end that says how much is missing, and `hint`.
    fn cut(mut self, limit: usize, hint: &str) -> Self {
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
        self.content.push(format!("[{shown} of {size} bytes are shown{blocks}; {hint}]").into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::content::{Image, ResourceLink};

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
        let result = ToolResult::new(["12345".into(), image().into(), image().into(), "67".into()]);
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
