//! A function whose header is parsed and whose body stays tokens, so that a broken body never hides it.
//!
//! Called by `kind` for free functions and by `service` for methods.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, FnArg, GenericParam, Ident, ReturnType, Safety, Signature, Type, Visibility};

use crate::errors::Errors;
use crate::ty;

/// The attributes that make a function an item of a server.
pub(crate) const ITEM_ATTRIBUTES: [&str; 3] = ["mcp_tool", "mcp_resource", "mcp_prompt"];

/// A function as the user wrote it; `to_tokens` gives it back.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: TokenStream,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self {
            attrs: Attribute::parse_outer(input)?,
            vis: input.parse()?,
            sig: input.parse()?,
            body: input.parse()?,
        })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, vis, sig, body } = self;
        // First, so that the user's own levels win.
        tokens.extend(quote_spanned! {Span::mixed_site()=>
            #[allow(clippy::needless_pass_by_value, clippy::unused_async)]
        });
        tokens.extend(quote!(#(#attrs)* #vis #sig #body));
    }
}

impl Function {
    pub(crate) fn name(&self) -> String {
        self.sig.ident.unraw().to_string()
    }

    pub(crate) fn is_async(&self) -> bool {
        self.sig.asyncness.is_some()
    }

    /// The lifetimes that it declares.
    pub(crate) fn lifetimes(&self) -> Vec<String> {
        self.sig.generics.lifetimes().map(|param| param.lifetime.to_string()).collect()
    }

    /// The attributes that the generated items share with the function.
    pub(crate) fn shared_attrs(&self) -> Vec<TokenStream> {
        self.attrs.iter().filter_map(shared_attr).collect()
    }

    /// The `#[cfg]`s of the function.
    pub(crate) fn cfgs(&self) -> Vec<&Attribute> {
        self.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect()
    }

    /// Removes `#[mcp(..)]` and further item attributes from the function, and reports them.
    pub(crate) fn take_strays(&mut self, attribute: &str, errors: &Errors) {
        self.attrs.retain(|attr| {
            let Some(name) = last_segment(attr) else { return true };
            if name == "mcp" {
                errors.at(
                    attr,
                    format_args!(
                        "`#[mcp(..)]` belongs to a parameter\nput the options into `#[{attribute}(..)]`"
                    ),
                );
            } else if name == attribute {
                errors.at(attr, format_args!("`#[{attribute}]` is written twice\nkeep one of them"));
            } else if ITEM_ATTRIBUTES.iter().any(|other| name == other) {
                errors.at(
                    attr,
                    format_args!("`#[{name}]` and `#[{attribute}]` are on one function\nkeep one of them"),
                );
            } else {
                return true;
            }
            false
        });
    }

    /// Reports everything in the header, but for parameters, that rules the function out.
    pub(crate) fn check_header(&mut self, noun: &str, errors: &Errors) {
        if let Safety::Unsafe(token) = &self.sig.safety {
            errors.at(
                token,
                format_args!(
                    "a {noun} is called by clients and cannot be `unsafe`\nuse an `unsafe` block in the body"
                ),
            );
        }
        if let Some(abi) = &self.sig.abi {
            errors.at(abi, format_args!("a {noun} is an ordinary Rust function\nremove the `extern`"));
        }
        // The compiler would refuse the function as well, so the rest of it goes without.
        if let Some(variadic) = self.sig.variadic.take() {
            errors.at(variadic, format_args!("a {noun} cannot be variadic\ntake a `Vec<T>`"));
        }
        self.check_generics(noun, errors);
        if !matches!(self.body.clone().into_iter().next(), Some(TokenTree::Group(_))) {
            errors.at(&self.sig, format_args!("a {noun} needs a body\nwrite it here"));
            self.body = quote!({ loop {} });
        }
        self.check_output(noun, errors);
    }

    fn check_generics(&self, noun: &str, errors: &Errors) {
        let generics = &self.sig.generics;
        if generics.params.iter().any(|param| !matches!(param, GenericParam::Lifetime(_))) {
            errors.at(
                &generics.params,
                format_args!(
                    "a {noun} cannot be generic, since clients call it by name alone\nname the types"
                ),
            );
        } else if !generics.params.is_empty() {
            errors.at(
                &generics.params,
                format_args!(
                    "a {noun} cannot have lifetime parameters\ntake owned arguments, and state as `&T`"
                ),
            );
        } else if let Some(clause) = &generics.where_clause {
            errors.at(clause, format_args!("a {noun} cannot have a `where` clause\nname the types"));
        }
    }

    fn check_output(&mut self, noun: &str, errors: &Errors) {
        let borrows = self.sig.inputs.iter().any(|input| match input {
            FnArg::Typed(param) => ty::holds_reference(&param.ty),
            FnArg::Receiver(_) => true,
        });
        let lifetimes = self.lifetimes();
        let ReturnType::Type(_, output) = &mut self.sig.output else { return };
        if let Type::Never(never) = ty::peel(output) {
            errors.at(never, format_args!("a {noun} has to return\nremove the `-> !`"));
            return;
        }
        match ty::offence(output.to_token_stream()) {
            None => {}
            // One that the function declares is refused there.
            Some(found) if ty::names_lifetime(&found.tokens, &lifetimes) => {}
            Some(ty::Offence { tokens, kind: ty::Borrow::Impl }) => errors.at(
                tokens,
                format_args!(
                    "a {noun} cannot return `impl Trait`\nname the type: `String`, `Json<T>`, `Vec<Content>`"
                ),
            ),
            Some(ty::Offence { tokens, .. }) => {
                errors.at(
                    tokens,
                    format_args!("a {noun} cannot return a borrowed value\nreturn an owned one: `String`, `Vec<T>`, `Json<T>`"),
                );
                // With nothing to borrow from, the compiler would ask for a lifetime as well.
                if !borrows {
                    **output = Type::Verbatim(ty::with_static(output.to_token_stream()));
                }
            }
        }
    }
}

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
            crate::service::without_attributes(item)
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

/// The last segment of an attribute's path: `mcp_tool` of `#[mcp_runtime::mcp_tool]`.
pub(crate) fn last_segment(attr: &Attribute) -> Option<&Ident> {
    attr.path().segments.last().map(|segment| &segment.ident)
}

fn shared_attr(attr: &Attribute) -> Option<TokenStream> {
    let name = attr.path().get_ident()?;
    if name == "cfg" || name == "deprecated" || name == "allow" {
        return Some(attr.to_token_stream());
    }
    // An expectation that the copy does not meet would be a warning of its own.
    if name == "expect" {
        let list = &attr.meta.require_list().ok()?.tokens;
        return Some(quote_spanned!(Span::mixed_site()=> #[allow(#list)]));
    }
    None
}
