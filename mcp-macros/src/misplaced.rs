//! What is said, and what is given back, when an attribute is not on a function that can be read.
//!
//! Called by `kind`; `service` and `mcp_type` ask it what they are on.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::errors::Errors;
use crate::service;

/// What stands in place of a function, when the attribute is on something else or the header is broken.
pub(crate) fn not_a_function(
    item: TokenStream,
    attribute: &str,
    error: syn::Error,
    errors: &Errors,
) -> TokenStream {
    match keyword(&item) {
        Some(word) if word == "fn" => {
            errors.add(error);
            strip_parameters(item)
        }
        Some(word) if word == "impl" => {
            errors.at_span(
                word.span(),
                format_args!("`#[{attribute}]` belongs to a function\nput `#[mcp_service]` on the `impl` and `#[{attribute}]` on its methods"),
            );
            service::without_attributes(item)
        }
        Some(word) if word == "struct" || word == "enum" => {
            errors.at_span(
                word.span(),
                format_args!("`#[{attribute}]` belongs to a function\nput `#[mcp_type]` on types that are arguments or results"),
            );
            item
        }
        Some(word) => {
            errors.at_span(
                word.span(),
                format_args!("`#[{attribute}]` belongs to a function\nmove it to an `fn`"),
            );
            item
        }
        None => {
            errors.at_span(
                Span::call_site(),
                format_args!("`#[{attribute}]` belongs to a function\nmove it to an `fn`"),
            );
            item
        }
    }
}

/// The keyword that says what an item is.
pub(crate) fn keyword(item: &TokenStream) -> Option<Ident> {
    const KINDS: [&str; 12] = [
        "fn",
        "impl",
        "struct",
        "enum",
        "union",
        "trait",
        "mod",
        "type",
        "static",
        "use",
        "macro_rules",
        "const",
    ];
    let words = item.clone().into_iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word),
        _ => None,
    });
    let found: Vec<Ident> = words.filter(|word| KINDS.iter().any(|kind| word == kind)).collect();
    let first = found.first()?;
    // `const fn` is a function.
    let second = found.get(1).filter(|second| first == "const" && *second == "fn");
    Some(second.unwrap_or(first).clone())
}

/// Takes the helper attributes off the parameters of a function whose header cannot be parsed.
fn strip_parameters(item: TokenStream) -> TokenStream {
    let mut after_fn = false;
    let strip = |token| match token {
        TokenTree::Ident(ref word) if word == "fn" => {
            after_fn = true;
            token
        }
        TokenTree::Group(group) if after_fn && group.delimiter() == Delimiter::Parenthesis => {
            after_fn = false;
            let mut bare = Group::new(Delimiter::Parenthesis, without_helpers(group.stream()));
            bare.set_span(group.span());
            bare.into()
        }
        other => other,
    };
    item.into_iter().map(strip).collect()
}

fn without_helpers(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let is_helper = match &token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "mcp" || name == "doc")
            }
            _ => false,
        };
        if is_helper && matches!(kept.last(), Some(TokenTree::Punct(hash)) if hash.as_char() == '#') {
            kept.pop();
        } else {
            kept.push(token);
        }
    }
    kept.into_iter().collect()
}
