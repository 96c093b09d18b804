//! A function whose header is parsed and whose body stays tokens, so that a broken body never hides it.
//!
//! Called by `kind` for free functions and by `service` for methods.

use proc_macro2::{Span, TokenStream, TokenTree};
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

    /// Reports `#[mcp(..)]` and further item attributes on the function, and takes their effect from them.
    pub(crate) fn take_strays(&mut self, attribute: &str, errors: &Errors) {
        self.attrs.retain_mut(|attr| {
            let Some(name) = last_segment(attr).map(ToString::to_string) else { return true };
            if name == "mcp" {
                errors.at(
                    attr,
                    format_args!(
                        "`#[mcp(..)]` belongs to a parameter\nput the options into `#[{attribute}(..)]`"
                    ),
                );
                return false;
            }
            if !ITEM_ATTRIBUTES.contains(&name.as_str()) || is_expanded(attr) {
                return true;
            }
            let problem = if name == attribute {
                format!("`#[{attribute}]` is written twice\nkeep one of them")
            } else {
                format!("`#[{name}]` and `#[{attribute}]` are on one function\nkeep one of them")
            };
            errors.at(&*attr, problem);
            mark_expanded(attr);
            true
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
            self.attrs.push(syn::parse_quote!(#[allow(unused_variables)]));
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

/// What the arguments of an item attribute become once they are dealt with. The attribute stays, so that its
/// import counts as used, and then gives back its function as it is.
const EXPANDED: &str = "__expanded";

pub(crate) fn mark_expanded(attr: &mut Attribute) {
    let (path, word) = (attr.path(), Ident::new(EXPANDED, Span::mixed_site()));
    attr.meta = syn::parse_quote!(#path(#word));
}

fn is_expanded(attr: &Attribute) -> bool {
    attr.meta.require_list().is_ok_and(|list| says_expanded(&list.tokens))
}

/// Says whether an item attribute with these arguments has been dealt with.
pub(crate) fn says_expanded(options: &TokenStream) -> bool {
    let mut options = options.clone().into_iter();
    matches!((options.next(), options.next()), (Some(TokenTree::Ident(word)), None) if word == EXPANDED)
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
