//! What the tokens of a type tell: `&` decides injection because it is syntax; traits decide the rest.
//!
//! Called by `item` for the return type and by `params` for each parameter.

use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{GenericArgument, PathArguments, Type, TypeReference};

/// What a parameter's type makes of it.
pub(crate) enum Shape {
    Owned,
    Borrowed { of: Box<Type>, optional: bool },
}

/// Sorts a parameter's type; the error names the tokens and what to write instead.
pub(crate) fn shape(ty: &Type) -> Result<Shape, (TokenStream, String)> {
    if let Type::Reference(reference) = peel(ty) {
        return borrowed(reference, false);
    }
    if let Some(reference) = optional_reference(ty) {
        return borrowed(reference, true);
    }
    match offence(ty.to_token_stream()) {
        None => Ok(Shape::Owned),
        Some(Offence { tokens, kind }) => {
            let message = match kind {
                Borrow::Impl => {
                    "a parameter cannot be `impl Trait`\nname the type, or take `&dyn Trait` from the server's state"
                }
                Borrow::Lifetime => "an argument cannot have a lifetime\nwrite a type that owns its data",
                Borrow::Reference => {
                    "an argument cannot hold a reference\nwrite a type that owns its data, such as `String` for `&str`"
                }
            };
            Err((tokens, message.to_owned()))
        }
    }
}

fn borrowed(reference: &TypeReference, optional: bool) -> Result<Shape, (TokenStream, String)> {
    let whole = reference.to_token_stream();
    let wrapped = |ty: String| if optional { format!("Option<{ty}>") } else { ty };
    let of = peel(&reference.elem);
    match of {
        Type::Path(path) if path.path.is_ident("str") => {
            return Err((
                whole,
                format!("an argument is owned by the call\nwrite `{}`", wrapped("String".to_owned())),
            ));
        }
        Type::Slice(slice) => {
            let owned = match peel(&slice.elem) {
                Type::Reference(_) => "Vec<String>".to_owned(),
                elem => format!("Vec<{}>", written(elem)),
            };
            return Err((whole, format!("an argument is owned by the call\nwrite `{}`", wrapped(owned))));
        }
        Type::ImplTrait(_) => {
            return Err((
                whole,
                "state cannot be `&impl Trait`\nwrite `&dyn Trait`, or `&T` with the type's name".to_owned(),
            ));
        }
        _ => {}
    }
    if reference.mutability.is_some() {
        let fix = wrapped(format!("&{}", written(of)));
        return Err((
            whole,
            format!(
                "state is shared by all calls and cannot be `&mut`\nwrite `{fix}`, with a `Mutex` or an atomic inside"
            ),
        ));
    }
    if let Some(lifetime) = &reference.lifetime {
        let message = "what is injected lives as long as the call\nwrite `&T` without a lifetime";
        return Err((lifetime.to_token_stream(), message.to_owned()));
    }
    match offence(of.to_token_stream()) {
        None => Ok(Shape::Borrowed { of: Box::new(of.clone()), optional }),
        Some(found) => {
            let message = "an injected type cannot itself borrow\nwrite `&T` with a type that owns its data";
            Err((found.tokens, message.to_owned()))
        }
    }
}

/// The `&T` of an `Option<&T>`.
fn optional_reference(ty: &Type) -> Option<&TypeReference> {
    match peel(held(ty)?) {
        Type::Reference(reference) => Some(reference),
        _ => None,
    }
}

/// The `T` of a type that is written as an `Option<T>`.
pub(crate) fn held(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = peel(ty) else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match (arguments.args.first(), arguments.args.len()) {
        (Some(GenericArgument::Type(inner)), 1) => Some(inner),
        _ => None,
    }
}

/// Looks through parentheses and the invisible groups of `macro_rules!`.
pub(crate) fn peel(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peel(&group.elem),
        Type::Paren(paren) => peel(&paren.elem),
        other => other,
    }
}

/// Tokens by which a type does not own its data, or does not name itself.
pub(crate) struct Offence {
    pub(crate) tokens: TokenStream,
    pub(crate) kind: Borrow,
}

pub(crate) enum Borrow {
    Reference,
    Lifetime,
    Impl,
}

/// Finds the first `&`, `impl` or lifetime; what is `'static` owns its data as far as a call is concerned.
pub(crate) fn offence(tokens: TokenStream) -> Option<Offence> {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let kind = match &token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => continue,
            TokenTree::Group(group) => match offence(group.stream()) {
                Some(found) => return Some(found),
                None => continue,
            },
            TokenTree::Ident(word) if word == "impl" => Borrow::Impl,
            TokenTree::Punct(punct) if punct.as_char() == '&' => Borrow::Reference,
            TokenTree::Punct(punct) if punct.as_char() == '\'' => Borrow::Lifetime,
            _ => continue,
        };
        let mut found = vec![token];
        let is_quote =
            |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '\'');
        if matches!(kind, Borrow::Reference) && tokens.peek().is_some_and(is_quote) {
            found.extend(tokens.next());
        }
        let next = tokens.next();
        let is_static = matches!(&next, Some(TokenTree::Ident(word)) if word == "static");
        if is_static && !matches!(kind, Borrow::Impl) {
            continue;
        }
        found.extend(next);
        return Some(Offence { tokens: found.into_iter().collect(), kind });
    }
    None
}

/// Says whether an offence is about one of these lifetimes.
pub(crate) fn names_lifetime(tokens: &TokenStream, lifetimes: &[String]) -> bool {
    let text = tokens.to_string().replace(' ', "");
    lifetimes.iter().any(|lifetime| text.trim_start_matches('&') == *lifetime)
}

/// Says whether a lifetime could be elided from this parameter.
pub(crate) fn holds_reference(ty: &Type) -> bool {
    !matches!(offence(ty.to_token_stream()), None | Some(Offence { kind: Borrow::Impl, .. }))
}

/// Gives every reference that has no lifetime, and every `'_`, the lifetime `'static`.
pub(crate) fn with_static(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut done = TokenStream::new();
    let is_quote = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '\'');
    while let Some(token) = tokens.next() {
        let is_and = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '&');
        if is_quote(&token) && tokens.next_if(|token| token.to_string() == "_").is_some() {
            done.extend(quote!('static));
            continue;
        }
        match token {
            TokenTree::Group(group) => done.extend([regroup(&group, with_static(group.stream()))]),
            other => done.extend([other]),
        }
        if is_and && !tokens.peek().is_some_and(is_quote) {
            done.extend(quote!('static));
        }
    }
    done
}

/// Replaces `Self`, which means nothing inside the items that a service's methods expand to.
pub(crate) fn replace_self(tokens: TokenStream, this: &Type) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut done = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "Self" => {
                let is_prefix = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
                let span = word.span();
                done.extend(if is_prefix { quote_spanned!(span=> <#this>) } else { this.to_token_stream() });
            }
            TokenTree::Group(group) => done.extend([regroup(&group, replace_self(group.stream(), this))]),
            other => done.extend([other]),
        }
    }
    done
}

fn regroup(like: &Group, stream: TokenStream) -> TokenTree {
    let mut group = Group::new(like.delimiter(), stream);
    group.set_span(like.span());
    group.into()
}

/// The type as a person would write it, for messages.
pub(crate) fn written(ty: &Type) -> String {
    let mut text = String::new();
    push_written(ty.to_token_stream(), &mut text);
    text
}

fn push_written(tokens: TokenStream, text: &mut String) {
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
                push_written(group.stream(), text);
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

/// Generated names at a user's place: local variables stay hygienic, errors point there.
pub(crate) fn at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// The unit type, for functions that say nothing of their output.
pub(crate) fn unit(span: Span) -> Type {
    Type::Verbatim(quote_spanned!(at(span)=> ()))
}
