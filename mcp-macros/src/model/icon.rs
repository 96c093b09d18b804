//! The icons of an item: `https:` or `data:` URIs of images, the only ones that clients accept.

use proc_macro2::{TokenStream, TokenTree};
use syn::LitStr;

use crate::diagnostics::Errors;
use crate::options::entry::{self, Entry, Form};
use crate::options::known;

const USAGE: &str = "write `icon(src = \"https://example.org/icon.png\", sizes(\"48x48\"))`";

pub(crate) struct Icon {
    pub(crate) src: LitStr,
    pub(crate) mime: Option<LitStr>,
    pub(crate) sizes: Vec<LitStr>,
    /// One of [`known::THEMES`].
    pub(crate) theme: Option<&'static str>,
}

/// `icon = "https://.."`, `icon("https://..", "data:..")` or `icon(src = "https://..", sizes("48x48"), ..)`.
pub(crate) fn read(entry: &Entry, errors: &Errors) -> Vec<Icon> {
    if let Form::List(list) = &entry.form
        && let Some(TokenTree::Ident(_)) = list.clone().into_iter().next()
    {
        return read_icon(entry, list, errors).into_iter().collect();
    }
    let Some(sources) = entry.parse_strings() else {
        match &entry.form {
            Form::List(_) => {
                errors.at(&entry.key, format_args!("`icon(..)` takes either URLs or options\n{USAGE}"));
            }
            _ => entry.report_value("string literals", errors),
        }
        return Vec::new();
    };
    let icon = |src| Icon { src, mime: None, sizes: Vec::new(), theme: None };
    sources.into_iter().filter_map(|src| check_source(src, errors)).map(icon).collect()
}

fn read_icon(entry: &Entry, list: &TokenStream, errors: &Errors) -> Option<Icon> {
    let before = errors.count();
    let (mut src, mut mime, mut sizes, mut theme) = (None, None, Vec::new(), None);
    for option in &entry::read(list.clone(), errors) {
        match option.name.as_str() {
            "src" => src = option.string(errors).and_then(|text| check_source(text, errors)),
            "mime" => mime = option.string(errors).inspect(|text| check_mime(text, errors)),
            "sizes" => {
                sizes = option.strings(errors).unwrap_or_default();
                sizes.iter().for_each(|size| check_size(size, errors));
            }
            "theme" => theme = option.string(errors).and_then(|text| read_theme(&text, errors)),
            _ => option.report_unknown("`icon(..)`", known::ICON, errors),
        }
    }
    // Another error may be about `src` itself.
    if src.is_none() && errors.count() == before {
        errors.at(&entry.key, format_args!("`icon(..)` has no `src`\n{USAGE}"));
    }
    Some(Icon { src: src?, mime, sizes, theme })
}

/// Clients must reject all other schemes.
fn check_source(text: LitStr, errors: &Errors) -> Option<LitStr> {
    let src = text.value();
    if is_source(&src) {
        return Some(text);
    }
    errors.at(
        &text,
        format_args!(
            "`{src}` is not an `https:` or `data:` URI, and clients reject all others\n\
             write one, such as `https://example.org/icon.png` or `data:image/png;base64,..`"
        ),
    );
    None
}

fn is_source(src: &str) -> bool {
    let Some((scheme, rest)) = src.split_once(':') else { return false };
    let is_clean = !rest.contains(|c: char| c.is_whitespace() || c.is_control());
    is_clean
        && match scheme.to_ascii_lowercase().as_str() {
            "https" => rest.strip_prefix("//").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')),
            "data" => rest.contains(','),
            _ => false,
        }
}

fn check_mime(mime: &LitStr, errors: &Errors) {
    let text = mime.value();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
    if !text.strip_prefix("image/").is_some_and(|sub| !sub.is_empty() && sub.chars().all(is_name)) {
        errors.at(
            mime,
            format_args!(
                "`{text}` is not the type of an image\nwrite one, such as `mime = \"image/png\"` or `mime = \"image/svg+xml\"`"
            ),
        );
    }
}

fn check_size(size: &LitStr, errors: &Errors) {
    let text = size.value();
    if !is_size(&text) {
        errors.at(
            size,
            format_args!(
                "`{text}` is not a size\nwrite width and height in pixels, such as `\"48x48\"`, or `\"any\"`"
            ),
        );
    }
}

fn is_size(text: &str) -> bool {
    let is_length = |digits: &str| {
        digits.starts_with(|c: char| ('1'..='9').contains(&c)) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    text == "any" || text.split_once('x').is_some_and(|(width, height)| is_length(width) && is_length(height))
}

fn read_theme(theme: &LitStr, errors: &Errors) -> Option<&'static str> {
    let text = theme.value();
    let found = known::THEMES.iter().find(|known| **known == text);
    if found.is_none() {
        let fix = known::suggest(&text, known::THEMES);
        errors.at(theme, format_args!("`{text}` is not a theme\n{fix}"));
    }
    found.copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icons_are_https_or_data_uris() {
        for src in ["https://a.example/i.png", "HTTPS://a", "data:image/png;base64,AA", "data:,x"] {
            assert!(is_source(src), "{src}");
        }
        for src in [
            "",
            "icon.png",
            "/icon.png",
            "http://a.example/i.png",
            "https:",
            "https://",
            "https:///i.png",
            "https://a b",
            "data:image/png",
            "file:///i.png",
            "javascript:alert(1)",
            "ftp://a/i.png",
            "ws://a",
            "ui://a/i.png",
        ] {
            assert!(!is_source(src), "{src}");
        }
    }

    #[test]
    fn sizes_are_two_lengths_or_any() {
        for size in ["any", "48x48", "1x1024"] {
            assert!(is_size(size), "{size}");
        }
        for size in [
            "", "x", "48", "48x", "x48", "48X48", "48×48", "0x0", "048x48", "48x48x48", "48px", "Any", "4 x4",
        ] {
            assert!(!is_size(size), "{size}");
        }
    }
}
