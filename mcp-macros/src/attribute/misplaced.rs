//! An attribute on the wrong item, or on one that cannot be parsed, is one error. Errors that rustc would report in addition
//! is removed from the item.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;

use crate::diagnostics::Errors;
use crate::model::kind::{Kind, take_attribute};
use crate::model::params;
use crate::syntax::impl_block::ImplBlock;

/// Reports an item attribute on something that does not parse as a function, and returns what to emit.
pub(crate) fn report_item(
    item: TokenStream,
    attribute: &str,
    error: syn::Error,
    errors: &Errors,
) -> TokenStream {
    // rustc has reported the attribute of a statement already
    if matches!(item.clone().into_iter().next(), Some(TokenTree::Ident(word)) if word == "let") {
        return item;
    }
    match find_keyword(&item) {
        Some(word) if word == "fn" => {
            errors.add(error);
            strip_function(item)
        }
        Some(word) if word == "impl" => {
            errors.at_span(
                word.span(),
                format_args!("`#[{attribute}]` belongs to a function\nput `#[mcp_service]` on the `impl` and `#[{attribute}]` on its methods"),
            );
            strip_impl(item)
        }
        Some(word) if word == "struct" || word == "enum" => {
            errors.at_span(
                word.span(),
                format_args!("`#[{attribute}]` belongs to a function\nput `#[mcp_type]` on types that are arguments or results"),
            );
            item
        }
        word => {
            errors.at_span(
                word.map_or_else(Span::call_site, |word| word.span()),
                format_args!("`#[{attribute}]` belongs to a function\nmove it to an `fn`"),
            );
            item
        }
    }
}

/// Removes from an item what only the attributes of this crate read.
pub(super) fn strip_item(item: TokenStream) -> TokenStream {
    match find_keyword(&item) {
        Some(word) if word == "fn" => strip_function(item),
        Some(word) if word == "impl" => strip_impl(item),
        Some(word) if word == "enum" => strip_groups(
            item,
            Delimiter::Brace,
            |token| matches!(token, TokenTree::Ident(word) if word == "enum"),
        ),
        _ => item,
    }
}

/// The error for a struct with `#[derive(Tool)]`.
pub(crate) fn report_derived_tool() -> TokenStream {
    syn::Error::new(
        Span::call_site(),
        "a tool is a function, and its arguments are parameters\n\
         put `#[mcp_tool]` on the function, and `#[mcp_type]` on types that are arguments or results",
    )
    .to_compile_error()
}

/// The keyword of an item, such as `struct`.
pub(crate) fn find_keyword(item: &TokenStream) -> Option<Ident> {
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

/// Marks the item attributes of an `impl` as expanded and removes the helper attributes of its methods.
fn strip_impl(block: TokenStream) -> TokenStream {
    let is_item = |attr: &_| Kind::of(attr).is_some();
    let Ok(mut parsed) = ImplBlock::parse(block.clone(), is_item) else { return block };
    // The attribute reports these errors once it is on the methods.
    let ignored = Errors::new();
    for method in parsed.methods_mut() {
        if let Some((kind, _)) = take_attribute(&mut method.attrs, &ignored) {
            params::read(method, kind, None, &ignored);
        }
    }
    ignored.finish();
    parsed.to_token_stream()
}

/// Removes the helper attributes from the parameters of a function whose header cannot be parsed.
fn strip_function(item: TokenStream) -> TokenStream {
    let is_fn = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "fn");
    strip_groups(item, Delimiter::Parenthesis, is_fn)
}

/// Removes the item attributes and the helper attributes of the methods of a trait.
pub(super) fn strip_trait(item: TokenStream) -> TokenStream {
    let strip = |token| match token {
        TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
            let mut bare = Group::new(Delimiter::Brace, remove_item_attributes(body.stream()));
            bare.set_span(body.span());
            bare.into()
        }
        other => other,
    };
    item.into_iter().map(strip).collect()
}

fn remove_item_attributes(methods: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in methods {
        match token {
            TokenTree::Group(parameters) if parameters.delimiter() == Delimiter::Parenthesis => {
                let mut bare = Group::new(Delimiter::Parenthesis, remove_helpers(parameters.stream()));
                bare.set_span(parameters.span());
                kept.push(bare.into());
            }
            TokenTree::Group(attribute)
                if attribute.delimiter() == Delimiter::Bracket
                    && matches!(kept.last(), Some(TokenTree::Punct(hash)) if hash.as_char() == '#')
                    && is_item_attribute(&attribute) =>
            {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    kept.into_iter().collect()
}

/// Whether the path in `[..]` ends with the name of an item attribute.
fn is_item_attribute(attribute: &Group) -> bool {
    let in_path = |token: &TokenTree| matches!(token, TokenTree::Ident(_) | TokenTree::Punct(_));
    let last = attribute.stream().into_iter().take_while(in_path).last();
    matches!(last, Some(TokenTree::Ident(name)) if Kind::is_named(&name.to_string()))
}

/// Removes the helper attributes from the next group with that delimiter after each token that `starts`.
fn strip_groups(item: TokenStream, delimiter: Delimiter, starts: impl Fn(&TokenTree) -> bool) -> TokenStream {
    let mut started = false;
    let strip = |token| match token {
        TokenTree::Group(group) if started && group.delimiter() == delimiter => {
            started = false;
            let mut bare = Group::new(delimiter, remove_helpers(group.stream()));
            bare.set_span(group.span());
            bare.into()
        }
        other => {
            started |= starts(&other);
            other
        }
    };
    item.into_iter().map(strip).collect()
}

fn remove_helpers(tokens: TokenStream) -> TokenStream {
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
