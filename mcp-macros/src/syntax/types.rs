//! Types as tokens: their parts, rewriting and printing. Nothing here resolves a name.

use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{GenericArgument, PathArguments, Type, TypeParamBound};

/// Looks through parentheses and the invisible groups of `macro_rules!`.
pub(crate) fn peel(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peel(&group.elem),
        Type::Paren(paren) => peel(&paren.elem),
        other => other,
    }
}

/// The `T` of a type spelled `Option<T>`.
pub(crate) fn option_inner(ty: &Type) -> Option<&Type> {
    generic_argument(ty).filter(|(name, _)| *name == "Option").map(|(_, inner)| inner)
}

/// Whether a type is spelled `Option<Option<T>>`: `null` is a value of it that differs from absence.
pub(crate) fn tells_null(ty: &Type) -> bool {
    option_inner(ty).and_then(option_inner).is_some()
}

/// Whether a type is spelled `Duration`, or `Option` or `Vec` of it.
pub(crate) fn is_duration(ty: &Type) -> bool {
    let inner = generic_argument(ty).filter(|(name, _)| *name == "Option" || *name == "Vec");
    let Type::Path(path) = inner.map_or_else(|| peel(ty), |(_, inner)| peel(inner)) else { return false };
    let segments = &path.path.segments;
    segments.last().is_some_and(|last| last.ident == "Duration" && last.arguments.is_none())
        // it cannot be named in an attribute
        && segments.first().is_some_and(|first| first.ident != "$crate")
}

/// The name and the argument of a path type with one generic argument.
pub(crate) fn generic_argument(ty: &Type) -> Option<(&Ident, &Type)> {
    let Type::Path(path) = peel(ty) else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match (arguments.args.first(), arguments.args.len()) {
        (Some(GenericArgument::Type(inner)), 1) => Some((&last.ident, inner)),
        _ => None,
    }
}

/// The type that a list, map or option is made of, for messages: the `T` of a `Vec<Option<T>>`.
pub(crate) fn leaf(ty: &Type) -> &Type {
    let inner = match peel(ty) {
        Type::Array(array) => Some(&*array.elem),
        Type::Path(path) => path.path.segments.last().and_then(|last| {
            let containers =
                ["Option", "Vec", "VecDeque", "Box", "HashSet", "BTreeSet", "HashMap", "BTreeMap"];
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            let types: Vec<&Type> = arguments
                .args
                .iter()
                .filter_map(|argument| match argument {
                    GenericArgument::Type(ty) => Some(ty),
                    _ => None,
                })
                .collect();
            // the values of a map
            let at = usize::from(last.ident == "HashMap" || last.ident == "BTreeMap");
            types.get(at).copied().filter(|_| containers.iter().any(|name| last.ident == name))
        }),
        _ => None,
    };
    inner.map_or_else(|| peel(ty), leaf)
}

/// Whether a type has a trait object or a function pointer.
pub(crate) fn is_object(ty: &Type) -> bool {
    has_ident(ty.to_token_stream(), &|word| word == "dyn" || word == "fn")
}

/// Syntax by which a type borrows, or has no name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BorrowSyntax {
    Reference,
    Lifetime,
    Impl,
}

/// Finds the first `&`, lifetime or `impl` and its tokens. `'static` data is owned as far as a call is concerned.
pub(crate) fn find_borrow(tokens: TokenStream) -> Option<(BorrowSyntax, TokenStream)> {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let syntax = match &token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => continue,
            TokenTree::Group(group) => match find_borrow(group.stream()) {
                Some(found) => return Some(found),
                None => continue,
            },
            TokenTree::Ident(word) if word == "impl" => BorrowSyntax::Impl,
            TokenTree::Punct(punct) if punct.as_char() == '&' => BorrowSyntax::Reference,
            TokenTree::Punct(punct) if punct.as_char() == '\'' => BorrowSyntax::Lifetime,
            _ => continue,
        };
        let mut found = vec![token];
        if syntax == BorrowSyntax::Reference && tokens.peek().is_some_and(is_apostrophe) {
            found.extend(tokens.next());
        }
        let next = tokens.next();
        let is_static = matches!(&next, Some(TokenTree::Ident(word)) if word == "static");
        if is_static && syntax != BorrowSyntax::Impl {
            continue;
        }
        found.extend(next);
        return Some((syntax, found.into_iter().collect()));
    }
    None
}

/// Whether a `_` stands for a type. That of a lifetime, `'_`, does not.
pub(crate) fn has_placeholder(tokens: TokenStream) -> bool {
    let mut after_apostrophe = false;
    tokens.into_iter().any(|token| {
        let is_lifetime = std::mem::replace(&mut after_apostrophe, is_apostrophe(&token));
        match token {
            TokenTree::Group(group) => has_placeholder(group.stream()),
            TokenTree::Ident(word) => word == "_" && !is_lifetime,
            _ => false,
        }
    })
}

/// Whether tokens have such a word, at any depth.
pub(crate) fn has_ident(tokens: TokenStream, is_sought: &dyn Fn(&Ident) -> bool) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_ident(group.stream(), is_sought),
        TokenTree::Ident(word) => is_sought(&word),
        _ => false,
    })
}

/// Whether a type has a `Self`.
pub(crate) fn mentions_self(tokens: TokenStream) -> bool {
    has_ident(tokens, &|word| word == "Self")
}

/// The `T` of an `impl Future<Output = T> ..` or a `Pin<Box<dyn Future<Output = T> ..>>`.
pub(crate) fn future_output(ty: &Type) -> Option<&Type> {
    let bounds = match peel(ty) {
        Type::ImplTrait(future) => &future.bounds,
        _ => {
            let (_, boxed) = generic_argument(ty).filter(|(name, _)| *name == "Pin")?;
            let (_, object) = generic_argument(boxed).filter(|(name, _)| *name == "Box")?;
            let Type::TraitObject(object) = peel(object) else { return None };
            &object.bounds
        }
    };
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let last = bound.path.segments.last().filter(|last| last.ident == "Future")?;
        let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(output) if output.ident == "Output" => Some(&output.ty),
            _ => None,
        })
    })
}

fn is_apostrophe(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == '\'')
}

/// Whether the tokens that [`find_borrow`] returned use one of these lifetimes.
pub(crate) fn uses_lifetime(tokens: &TokenStream, lifetimes: &[String]) -> bool {
    let text = tokens.to_string().replace(' ', "");
    lifetimes.iter().any(|lifetime| text.trim_start_matches('&') == *lifetime)
}

/// Whether a lifetime could be elided from a parameter of this type.
pub(crate) fn contains_lifetime(ty: &Type) -> bool {
    !matches!(find_borrow(ty.to_token_stream()), None | Some((BorrowSyntax::Impl, _)))
}

/// Gives every reference without a lifetime, and every `'_`, the lifetime `'static`.
pub(crate) fn make_static(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut output = TokenStream::new();
    while let Some(token) = tokens.next() {
        let is_ampersand = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '&');
        if is_apostrophe(&token) && tokens.next_if(|token| token.to_string() == "_").is_some() {
            output.extend(quote!('static));
            continue;
        }
        match token {
            TokenTree::Group(group) => output.extend([with_stream(&group, make_static(group.stream()))]),
            other => output.extend([other]),
        }
        if is_ampersand && !tokens.peek().is_some_and(is_apostrophe) {
            output.extend(quote!('static));
        }
    }
    output
}

/// Replaces `Self` by a type, for tokens that move out of the type's `impl`.
pub(crate) fn replace_self(tokens: TokenStream, self_ty: &Type) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut output = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "Self" => {
                let is_prefix = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
                let span = word.span();
                output.extend(if is_prefix {
                    quote_spanned!(span=> <#self_ty>)
                } else {
                    located_at(self_ty.to_token_stream(), span)
                });
            }
            TokenTree::Group(group) => {
                output.extend([with_stream(&group, replace_self(group.stream(), self_ty))]);
            }
            other => output.extend([other]),
        }
    }
    output
}

/// Tokens that resolve names as before, in errors at another place.
fn located_at(tokens: TokenStream, place: Span) -> TokenStream {
    let relocated = tokens.into_iter().map(|mut token| {
        token.set_span(token.span().located_at(place));
        token
    });
    relocated.collect()
}

/// The same group with other tokens.
pub(crate) fn with_stream(like: &Group, stream: TokenStream) -> TokenTree {
    let mut group = Group::new(like.delimiter(), stream);
    group.set_span(like.span());
    group.into()
}

/// The type in the usual formatting, for messages.
pub(crate) fn type_to_string(ty: &Type) -> String {
    let mut text = String::new();
    push_tokens(ty.to_token_stream(), &mut text);
    text
}

fn push_tokens(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                push_tokens(group.stream(), text);
                text.push_str(close);
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                ',' => text.push_str(", "),
                ';' => text.push_str("; "),
                '+' | '=' => {
                    text.push(' ');
                    text.push(punct.as_char());
                    text.push(' ');
                }
                other => text.push(other),
            },
            word => {
                if text.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    text.push(' ');
                }
                text.push_str(&word.to_string());
            }
        }
    }
}
