//! Turns doc comments into descriptions.
//!
//! Called for functions and parameters; an explicit `description` option wins over this.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::{Attribute, Expr, Meta};

use crate::attr::{literal_string, ungroup};

/// The description that the `doc` attributes spell, as an expression of type `&'static str`.
pub(crate) fn description(attrs: &[Attribute]) -> Option<TokenStream> {
    let span = Span::mixed_site();
    let lines: Vec<Line> = attrs.iter().filter_map(line).collect();
    if lines.iter().all(|line| matches!(line, Line::Text(_))) {
        let text = lines.iter().map(Line::text).collect::<Vec<_>>().join("\n");
        let text = text.trim();
        return (!text.is_empty()).then(|| quote_spanned!(span=> #text));
    }
    let last = lines.len().saturating_sub(1);
    let parts = lines.iter().enumerate().map(|(index, line)| {
        let end = if index == last { "" } else { "\n" };
        match line {
            Line::Text(text) => format!("{text}{end}").into_token_stream(),
            Line::Computed(value) => quote_spanned!(span=> #value, #end),
        }
    });
    Some(quote_spanned!(span=> __rt::concat!(#(#parts),*)))
}

/// Says whether this is a doc comment (`#[doc(hidden)]` is not).
pub(crate) fn is_comment(attr: &Attribute) -> bool {
    line(attr).is_some()
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

fn line(attr: &Attribute) -> Option<Line> {
    let Meta::NameValue(doc) = &attr.meta else { return None };
    if !doc.path.is_ident("doc") {
        return None;
    }
    Some(match literal_string(&doc.value) {
        Some(text) => Line::Text(undecorated(&text.value())),
        None => Line::Computed(Box::new(ungroup(doc.value.clone()))),
    })
}

/// Takes the leading space off each line, and the column of stars off a block comment.
fn undecorated(text: &str) -> String {
    let starred = text.contains('\n')
        && text.lines().skip(1).all(|l| l.trim().is_empty() || l.trim_start().starts_with('*'));
    let lines = text.lines().map(|line| {
        let line = if starred {
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

    fn of(tokens: TokenStream) -> Option<String> {
        let attrs = Attribute::parse_outer.parse2(tokens).unwrap();
        description(&attrs).map(|text| text.to_string())
    }

    #[test]
    fn lines_lose_one_space_and_are_joined() {
        let tokens = quote::quote!(#[doc = " First."] #[doc = ""] #[doc = "   indented "] #[doc = ""]);
        assert_eq!(of(tokens).unwrap(), r#""First.\n\n  indented""#);
        assert_eq!(of(quote::quote!(#[doc = "  "])), None);
        assert_eq!(of(quote::quote!(#[doc(hidden)])), None);
    }

    #[test]
    fn block_comments_lose_their_stars() {
        let text = "\n     * First\n     *   second\n     ";
        assert_eq!(of(quote::quote!(#[doc = #text])).unwrap(), r#""First\n  second""#);
    }

    #[test]
    fn computed_docs_are_concatenated_by_the_compiler() {
        let tokens = quote::quote!(#[doc = " A"] #[doc = concat!("b", "c")] #[doc = " d"]);
        assert_eq!(of(tokens).unwrap(), r#"__rt :: concat ! ("A\n" , concat ! ("b" , "c") , "\n" , "d")"#);
    }
}
