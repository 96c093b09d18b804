//! Reads `icon`, of every kind of item: where the picture is, and what it is good for.
//!
//! Called by `kind`, once for each time it is written.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::LitStr;

use crate::attr::{self, Entry, Form};
use crate::errors::Errors;
use crate::names;

const OPTIONS: &str = "write `icon(src = \"https://example.org/icon.png\", sizes(\"48x48\"))`";

/// One icon.
pub(crate) struct Icon {
    src: LitStr,
    mime: Option<LitStr>,
    sizes: Vec<LitStr>,
    /// Named as the runtime's `Theme`.
    theme: Option<Ident>,
}

/// `icon = "https://.."`, `icon("https://..", "data:..")` or `icon(src = "https://..", sizes("48x48"), ..)`.
pub(crate) fn read(entry: &Entry, errors: &Errors) -> Vec<Icon> {
    if let Form::List(list) = &entry.form
        && let Some(TokenTree::Ident(_)) = list.clone().into_iter().next()
    {
        return described(entry, list, errors).into_iter().collect();
    }
    let Some(sources) = entry.list_of_strings() else {
        match &entry.form {
            Form::List(_) => {
                errors.at(&entry.key, format_args!("`icon(..)` takes either URLs or options\n{OPTIONS}"));
            }
            _ => entry.wrong("string literals", errors),
        }
        return Vec::new();
    };
    let plain = |src| Icon { src, mime: None, sizes: Vec::new(), theme: None };
    sources.into_iter().filter_map(|src| source(src, errors)).map(plain).collect()
}

fn described(entry: &Entry, list: &TokenStream, errors: &Errors) -> Option<Icon> {
    let before = errors.count();
    let (mut src, mut mime, mut sizes, mut theme) = (None, None, Vec::new(), None);
    let mut options = attr::entries(list.clone(), errors);
    attr::refuse_duplicates(&mut options, errors);
    for option in &options {
        match option.name.as_str() {
            "src" => src = option.string(errors).and_then(|text| source(text, errors)),
            "mime" => mime = option.string(errors).inspect(|text| check_mime(text, errors)),
            "sizes" => {
                sizes = option.strings(errors).unwrap_or_default();
                sizes.iter().for_each(|size| check_size(size, errors));
            }
            "theme" => theme = option.string(errors).and_then(|text| self::theme(&text, errors)),
            _ => names::refuse(option, "`icon(..)`", names::ICON, errors),
        }
    }
    // a mistake in the list may be the `src` that is missing
    if src.is_none() && errors.count() == before {
        errors.at(&entry.key, format_args!("`icon(..)` has no `src`\n{OPTIONS}"));
    }
    Some(Icon { src: src?, mime, sizes, theme })
}

/// Clients must reject every other scheme.
fn source(text: LitStr, errors: &Errors) -> Option<LitStr> {
    let src = text.value();
    if is_source(&src) {
        return Some(text);
    }
    errors.at(
        &text,
        format_args!(
            "`{src}` is neither an `https:` nor a `data:` URI, and clients reject every other\n\
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

fn theme(theme: &LitStr, errors: &Errors) -> Option<Ident> {
    let text = theme.value();
    if names::THEMES.contains(&text.as_str()) {
        return Some(Ident::new(&names::pascal(&text), Span::mixed_site()));
    }
    let fix = names::fix(&text, names::THEMES);
    errors.at(theme, format_args!("`{text}` is not a theme\n{fix}"));
    None
}

impl ToTokens for Icon {
    /// A call of the runtime's constant function.
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { src, mime, sizes, theme } = self;
        let mime = option(mime.as_ref().map(ToTokens::to_token_stream));
        let theme = option(theme.as_ref().map(|theme| quote!(__rt::Theme::#theme)));
        tokens.extend(quote!(__rt::icon(#src, #mime, &[#(__rt::Cow::Borrowed(#sizes)),*], #theme)));
    }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(__rt::Option::Some(#value)),
        None => quote!(__rt::Option::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icons_are_fetched_by_https_or_stand_in_the_uri() {
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
