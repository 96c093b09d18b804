//! Doc comments as text, without the decoration of comments.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::{Attribute, Expr, Meta};

use crate::syntax::literals::{literal_string, ungroup};

/// The parts of a doc comment, which the compiler concatenates: literals, and expressions such as `concat!(..)`.
/// A comment without expressions is one part, an empty one none.
pub(crate) fn read(attrs: &[Attribute]) -> Vec<TokenStream> {
    let lines: Vec<Line> = attrs.iter().filter_map(read_line).collect();
    if lines.iter().all(|line| matches!(line, Line::Text(_))) {
        let text = lines.iter().map(Line::text).collect::<Vec<_>>().join("\n");
        let text = text.trim();
        if text.is_empty() {
            return Vec::new();
        }
        return vec![quote_spanned!(Span::mixed_site()=> #text)];
    }
    let last = lines.len().saturating_sub(1);
    let mut parts = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let end = if index == last { "" } else { "\n" };
        match line {
            Line::Text(text) => parts.push(format!("{text}{end}").into_token_stream()),
            Line::Computed(value) => parts.extend([value.to_token_stream(), end.into_token_stream()]),
        }
    }
    parts
}

/// Whether this is a doc comment; `#[doc(hidden)]` is not.
pub(crate) fn is_comment(attr: &Attribute) -> bool {
    doc_value(attr).is_some()
}

enum Line {
    Text(String),
    Computed(Box<Expr>),
}

impl Line {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Computed(_) => "",
        }
    }
}

fn read_line(attr: &Attribute) -> Option<Line> {
    let value = doc_value(attr)?;
    Some(match literal_string(value) {
        Some(text) => Line::Text(strip_decoration(&text.value())),
        None => Line::Computed(Box::new(ungroup(value.clone()))),
    })
}

fn doc_value(attr: &Attribute) -> Option<&Expr> {
    match &attr.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => Some(&doc.value),
        _ => None,
    }
}

/// Removes the leading space of each line, and the column of stars of a block comment.
fn strip_decoration(text: &str) -> String {
    let is_starred = text.contains('\n')
        && text.lines().skip(1).all(|l| l.trim().is_empty() || l.trim_start().starts_with('*'));
    let lines = text.lines().map(|line| {
        let line = if is_starred {
            let bare = line.trim_start();
            bare.strip_prefix('*').unwrap_or(bare)
        } else {
            line
        };
        line.strip_prefix(' ').unwrap_or(line).trim_end()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse::Parser;

    fn parts(tokens: TokenStream) -> Vec<String> {
        let attrs = Attribute::parse_outer.parse2(tokens).unwrap();
        read(&attrs).iter().map(TokenStream::to_string).collect()
    }

    #[test]
    fn lines_lose_one_space_and_are_joined() {
        let tokens = quote::quote!(#[doc = " First."] #[doc = ""] #[doc = "   indented "] #[doc = ""]);
        assert_eq!(parts(tokens), [r#""First.\n\n  indented""#]);
        assert!(parts(quote::quote!(#[doc = "  "])).is_empty());
        assert!(parts(quote::quote!(#[doc(hidden)])).is_empty());
    }

    #[test]
    fn block_comments_lose_their_stars() {
        let text = "\n     * First\n     *   second\n     ";
        assert_eq!(parts(quote::quote!(#[doc = #text])), [r#""First\n  second""#]);
    }

    #[test]
    fn expressions_remain_parts_of_their_own() {
        let tokens = quote::quote!(#[doc = " A"] #[doc = concat!("b", "c")] #[doc = " d"]);
        assert_eq!(parts(tokens), [r#""A\n""#, r#"concat ! ("b" , "c")"#, r#""\n""#, r#""d""#]);
    }
}
