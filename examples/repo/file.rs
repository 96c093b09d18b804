//! The resources: the tree as text, and each of its files. The prompt reads files through this module too.

use std::{fmt::Write as _, path::Path};

use mcp_runtime::{Completion, content::ResourceContents, prelude::*};

use super::root::{Root, is_binary};

/// The most entries of the tree that are shown.
const ENTRIES: usize = 5000;

/// The tree: one entry per line, indented; directories end in `/`.
#[mcp_resource(uri = "repo:///", title = "Files")]
pub(crate) async fn tree(root: &Root) -> Result<String, ToolError> {
    let root = root.clone();
    Ok(tokio::task::spawn_blocking(move || listing(&root)).await?)
}

fn listing(root: &Root) -> String {
    let mut text = String::new();
    let entries = root.walk_all().build().filter_map(Result::ok).filter(|entry| entry.depth() > 0);
    for (count, entry) in entries.enumerate() {
        if count == ENTRIES {
            text.push_str("… and more\n");
            break;
        }
        let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let (indent, end) = ("  ".repeat(entry.depth() - 1), if folder { "/" } else { "" });
        // writing to a string cannot fail
        let _ = writeln!(text, "{indent}{}{end}", entry.file_name().to_string_lossy());
    }
    text
}

/// One file of the tree, as text, or as bytes if it is binary.
#[mcp_resource(uri = "repo:///{+path}")]
pub(crate) async fn file(
    /// Path of the file, from the root of the tree
    #[mcp(complete = paths)]
    path: String,
    root: &Root,
) -> Result<Option<ResourceContents>, ToolError> {
    contents(&path, root).await
}

/// A file with its URI and type; `None` if the tree does not contain it.
pub(crate) async fn contents(path: &str, root: &Root) -> Result<Option<ResourceContents>, ToolError> {
    let (owned, root) = (path.to_owned(), root.clone());
    let Some(bytes) = tokio::task::spawn_blocking(move || root.read(&owned)).await?? else { return Ok(None) };
    let contents = match String::from_utf8(bytes) {
        Ok(text) if !is_binary(text.as_bytes()) => {
            ResourceContents::text(text).mime(mime(path, "text/plain"))
        }
        Ok(text) => ResourceContents::blob(text).mime(mime(path, "application/octet-stream")),
        Err(error) => ResourceContents::blob(error.into_bytes()).mime(mime(path, "application/octet-stream")),
    };
    Ok(Some(contents.uri(uri(path))))
}

/// The MIME type for the extension of a file.
fn mime(path: &str, otherwise: &'static str) -> &'static str {
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("md") => "text/markdown",
        Some("rs") => "text/x-rust",
        Some("py") => "text/x-python",
        Some("js" | "mjs" | "cjs" | "jsx") => "text/javascript",
        Some("ts" | "tsx") => "text/x-typescript",
        Some("html") => "text/html",
        Some("css") => "text/css",
        Some("json") => "application/json",
        Some("toml") => "application/toml",
        Some("yaml" | "yml") => "application/yaml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("svg") => "image/svg+xml",
        Some("pdf") => "application/pdf",
        _ => otherwise,
    }
}

/// The URI of a path, which may contain any character.
fn uri(path: &str) -> String {
    let mut uri = "repo:///".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // writing to a string cannot fail
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Completes a path as shells do: one directory at a time.
pub(crate) fn paths(completion: &Completion, root: &Root) -> Vec<String> {
    let (folder, start) = completion.value.rsplit_once('/').unwrap_or(("", &completion.value));
    let Some(place) = root.find(folder) else { return Vec::new() };
    let entries = root.walk(&place).max_depth(Some(1)).build().filter_map(Result::ok);
    entries
        .filter(|entry| entry.depth() == 1 && entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| {
            let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            root.relative(entry.path()) + if folder { "/" } else { "" }
        })
        .collect()
}
