//! An attribute on the wrong item, or on one that cannot be parsed, is one error. What rustc would report in addition is
//! removed from the item.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;

use crate::diagnostics::Errors;
use crate::model::kind::{Kind, take_attribute};
use crate::model::params;
use crate::syntax::impl_block::ImplBlock;
use crate::syntax::types::with_stream;

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
            strip(item)
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
        _ => {
            report_at_keyword(
                &item,
                &format!("`#[{attribute}]` belongs to a function\nmove it to an `fn`"),
                errors,
            );
            item
        }
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

/// Reports an error at the keyword of an item, or at the attribute if it has none.
pub(super) fn report_at_keyword(item: &TokenStream, message: &str, errors: &Errors) {
    errors.at_span(find_keyword(item).map_or_else(Span::call_site, |keyword| keyword.span()), message);
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

/// Removes from parameters and methods what only the attributes of this crate read, as far as an item that cannot be
/// parsed shows it.
pub(super) fn strip(item: TokenStream) -> TokenStream {
    let strip = |token| match token {
        TokenTree::Group(group) => {
            let within = group.delimiter();
            with_stream(&group, remove_attributes(group.stream(), within, &mut is_own_attribute))
        }
        other => other,
    };
    item.into_iter().map(strip).collect()
}

/// Whether `[..]` is a helper attribute or an item attribute, or a comment on a parameter, where rustc allows none.
fn is_own_attribute(attribute: &Group, within: Delimiter) -> bool {
    let in_path = |token: &TokenTree| matches!(token, TokenTree::Ident(_) | TokenTree::Punct(_));
    let path: Vec<TokenTree> = attribute.stream().into_iter().take_while(in_path).collect();
    let is_comment = |name: &Ident| name == "doc" && within == Delimiter::Parenthesis;
    match (path.first(), path.last()) {
        (Some(TokenTree::Ident(first)), _) if first == "mcp" || is_comment(first) => true,
        (_, Some(TokenTree::Ident(last))) => Kind::is_named(&last.to_string()),
        _ => false,
    }
}

/// Removes attributes at any depth: those for which `is_removed` holds, which gets their brackets and the delimiter that they
/// are in.
pub(super) fn remove_attributes(
    tokens: TokenStream,
    within: Delimiter,
    is_removed: &mut dyn FnMut(&Group, Delimiter) -> bool,
) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            kept.push(token);
            continue;
        };
        let follows_hash = matches!(kept.last(), Some(TokenTree::Punct(hash)) if hash.as_char() == '#');
        if !follows_hash || group.delimiter() != Delimiter::Bracket {
            let inner = remove_attributes(group.stream(), group.delimiter(), is_removed);
            kept.push(with_stream(&group, inner));
        } else if is_removed(&group, within) {
            kept.pop();
        } else {
            kept.push(group.into());
        }
    }
    kept.into_iter().collect()
}
