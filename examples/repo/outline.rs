//! The tool that outlines a file.

use std::{path::Path, sync::LazyLock};

use mcp_runtime::prelude::*;
use regex::Regex;

use super::{
    Refused,
    root::{Root, shortened},
};

/// The most items in an outline.
const ITEMS: usize = 1000;

/// A top-level item, or a heading.
#[mcp_type]
#[derive(Debug, PartialEq)]
pub(crate) struct Item {
    /// Counted from 1
    pub(crate) line: usize,
    /// Its first line
    pub(crate) text: String,
}

/// Lists the top-level items of a source file, or the headings of a Markdown file.
///
/// It matches the beginnings of lines, which is fast, and correct for code with conventional formatting. Supports Rust,
/// Python, JavaScript, TypeScript, Go and Markdown.
#[mcp_tool(read_only, blocking)]
pub(crate) fn outline(
    /// Path of the file, from the root of the tree
    path: String,
    root: &Root,
) -> Result<Json<Vec<Item>>, ToolError> {
    let extension = Path::new(&path).extension().and_then(|extension| extension.to_str());
    let item = extension.and_then(language).ok_or_else(|| Refused::NoOutline(path.clone())).public()?;
    let bytes = root.read(&path)?.ok_or_else(|| Refused::NoFile(path.clone())).public()?;
    let text = String::from_utf8(bytes).map_err(|_| Refused::NotText(path.clone())).public()?;
    let markdown = std::ptr::eq(item, &*MARKDOWN);
    let mut code = false;
    let mut items = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // inside a code block of Markdown, `#` begins a comment
        code ^= markdown && (line.starts_with("```") || line.starts_with("~~~"));
        if !code && item.is_match(line) {
            items.push(Item { line: index + 1, text: shortened(line.trim_end_matches(['{', ' ', '\r'])) });
        }
    }
    items.truncate(ITEMS);
    Ok(Json(items))
}

/// The pattern for the first line of an item.
fn language(extension: &str) -> Option<&'static Regex> {
    Some(match extension {
        "rs" => &RUST,
        "py" | "pyi" => &PYTHON,
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => &SCRIPT,
        "go" => &GO,
        "md" | "markdown" => &MARKDOWN,
        _ => return None,
    })
}

macro_rules! patterns {
    ($($name:ident = $pattern:literal;)*) => {$(
        // an invalid pattern would fail the first test
        #[allow(clippy::expect_used)]
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("a valid pattern"));
    )*};
}
patterns! {
    RUST = r#"^(pub(\([^)]*\))?\s+)?((default|const|async|unsafe|auto|extern(\s+"[^"]*")?)\s+)*(fn|struct|enum|union|trait|impl|mod|type|static|const)\b|^macro_rules!"#;
    PYTHON = r"^(async\s+)?(def|class)\s";
    SCRIPT = r"^(export\s+)?(default\s+)?((declare|abstract|async)\s+)*(function|class|interface|type|enum|namespace|const|let|var)\b|^export\s";
    GO = r"^(func|type|var|const)\b";
    MARKDOWN = r"^#{1,6}\s";
}
