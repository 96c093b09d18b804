//! The MIME type of a file by its name, and whether it is sent as text or as a blob.

use crate::{core::content::ResourceContents, resource::ResourceResult};

/// The result of reading the file, and its MIME type.
pub(super) fn contents(name: &str, bytes: Vec<u8>) -> (ResourceResult, &'static str) {
    let known = mime_by_extension(name);
    let text = match known {
        Some(mime) if is_binary(mime) => Err(bytes),
        _ => into_text(bytes),
    };
    let (mime, contents) = match text {
        Ok(text) => (known.unwrap_or("text/plain"), ResourceContents::text(text)),
        Err(bytes) => (known.unwrap_or("application/octet-stream"), ResourceContents::blob(bytes)),
    };
    (ResourceResult::new([contents.mime(mime)]), mime)
}

/// Text whose UTF-8 is exactly these bytes, so that the digest is valid for it too; else the bytes.
fn into_text(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    if bytes.contains(&0) {
        return Err(bytes);
    }
    String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
}

/// Types that are sent as a blob even if the bytes happen to be UTF-8.
fn is_binary(mime: &str) -> bool {
    let has_binary_family =
        ["image/", "audio/", "video/", "font/"].iter().any(|family| mime.starts_with(family));
    let document = ["application/vnd.", "application/pdf", "application/zip", "application/gzip"];
    (has_binary_family && mime != "image/svg+xml")
        || document.iter().any(|kind| mime.starts_with(kind))
        || ["application/x-tar", "application/wasm"].contains(&mime)
}

fn mime_by_extension(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "md" | "markdown" => "text/markdown",
        "txt" => "text/plain",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "js" | "mjs" | "cjs" => "text/javascript",
        "py" => "text/x-python",
        "rs" => "text/x-rust",
        "sh" | "bash" => "application/x-sh",
        "sql" => "application/sql",
        "json" => "application/json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "bmp" => "image/bmp",
        "ico" => "image/vnd.microsoft.icon",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "tar" => "application/x-tar",
        "wasm" => "application/wasm",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mime_and_is_text(name: &str, bytes: &[u8]) -> (&'static str, bool) {
        let (result, mime) = contents(name, bytes.to_vec());
        let text = ResourceContents::text(String::from_utf8_lossy(bytes)).mime(mime);
        (mime, result.contents == [text])
    }

    #[test]
    fn the_extension_determines_the_type_and_the_bytes_determine_whether_it_is_text() {
        assert_eq!(mime_and_is_text("SKILL.md", b"# x"), ("text/markdown", true));
        assert_eq!(mime_and_is_text("Makefile", b"all:"), ("text/plain", true));
        assert_eq!(mime_and_is_text("data", b"a\0b"), ("application/octet-stream", false));
        assert_eq!(mime_and_is_text("latin.txt", b"caf\xe9"), ("text/plain", false));
        assert_eq!(mime_and_is_text("x.PNG", b"not really"), ("image/png", false));
        assert_eq!(mime_and_is_text("x.svg", b"<svg/>"), ("image/svg+xml", true));
        assert_eq!(mime_and_is_text("x.tar", b"plain"), ("application/x-tar", false));
        assert_eq!(mime_and_is_text("empty", b""), ("text/plain", true));
    }
}
