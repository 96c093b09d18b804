//! One argument: its options, checked, and the constant that describes it to the runtime.
//!
//! Called by `params` to read it and by `expand` to write it out.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, LitStr, Type};

use crate::attr::{Entry, Form, literal_string};
use crate::errors::Errors;
use crate::kind::Place;
use crate::rule;
use crate::ty::{at, held};

/// An argument that the client sends.
pub(crate) struct Argument {
    pub(crate) name: String,
    /// The parameter's own name.
    pub(crate) ident: String,
    /// Where the name was written.
    pub(crate) name_span: Span,
    pub(crate) header: Option<LitStr>,
    /// Where `flatten` was written.
    pub(crate) flatten: Option<Span>,
    title: Option<TokenStream>,
    description: Option<TokenStream>,
    default: Option<Value>,
    example: Option<Value>,
    rules: Vec<TokenStream>,
    /// Both bounds of `range` are integers that every JSON implementation carries exactly.
    exact_range: bool,
    complete: Option<Complete>,
    raw: bool,
}

struct Value {
    key: Span,
    /// Without one, the type's own default.
    expr: Option<TokenStream>,
    /// A string literal converts into the parameter's type, or into what its `Option` holds.
    text: bool,
}

enum Complete {
    Function(TokenStream, Span),
    List(Vec<LitStr>),
}

impl Argument {
    pub(crate) fn new(name: String, name_span: Span, description: Option<TokenStream>) -> Self {
        Self {
            ident: name.clone(),
            name,
            name_span,
            header: None,
            flatten: None,
            title: None,
            description,
            default: None,
            example: None,
            rules: Vec::new(),
            exact_range: false,
            complete: None,
            raw: false,
        }
    }

    /// Takes one option; false if there is none of that name.
    pub(crate) fn option(&mut self, entry: &Entry, place: Place, errors: &Errors) -> bool {
        match entry.name.as_str() {
            "name" => {
                if let Some(name) = entry.string(errors) {
                    if name.value().is_empty() {
                        errors.at(
                            &name,
                            "an argument needs a name that is not empty\nwrite one, or remove `name`",
                        );
                    }
                    self.name_span = name.span();
                    self.name = name.value();
                }
            }
            "title" if place == Place::Resource => errors.at(
                &entry.key,
                "`title` is for tools and prompts: no list shows the variables of a URI\nremove it",
            ),
            "title" => self.title = entry.text(errors),
            "description" => self.description = entry.text(errors),
            "default" => self.default = value(entry, true, errors),
            "example" => self.example = value(entry, false, errors),
            "range" => {
                if let Some(range) = rule::range(entry, errors) {
                    self.exact_range = range.exact;
                    self.rules.push(range.check);
                }
            }
            "length" => self.rules.extend(rule::length(entry, errors)),
            "pattern" => self.rules.extend(rule::pattern(entry, errors)),
            "one_of" => self.rules.extend(rule::one_of(entry, errors)),
            "header" => self.header = header(entry, place, errors),
            "complete" => self.complete = complete(entry, place, errors),
            "flatten" if place == Place::Tool => {
                self.flatten = entry.flag(errors).filter(|&on| on).map(|_| entry.span());
            }
            "flatten" => errors.at(
                &entry.key,
                format_args!("`flatten` is for tools\nmake the fields parameters of the {}", place.noun()),
            ),
            "raw" if place == Place::Resource => self.raw = entry.flag(errors).unwrap_or_default(),
            "raw" => errors.at(&entry.key, "`raw` is for the path of a resource\nremove it"),
            _ => return false,
        }
        true
    }

    /// `const __A0: __rt::ArgDef<T> = ..;`
    pub(crate) fn constant(&self, name: &Ident, ty: &Type, place: Place) -> TokenStream {
        let span = at(ty.span());
        let wire = &self.name;
        let constructor = match (self.flatten, place) {
            (Some(_), _) => "flatten",
            (None, Place::Tool) => "json",
            (None, Place::Resource | Place::Prompt) => "text",
        };
        let constructor = Ident::new(constructor, span);
        let calls = self.calls(ty);
        quote_spanned!(span=> const #name: __rt::ArgDef<#ty> = __rt::#constructor::<#ty>(#wire)#calls;)
    }

    fn calls(&self, ty: &Type) -> TokenStream {
        let site = Span::mixed_site();
        let mut calls = TokenStream::new();
        if let Some(text) = &self.title {
            calls.extend(quote_spanned!(site=> .title(#text)));
        }
        if let Some(text) = &self.description {
            calls.extend(quote_spanned!(site=> .description(#text)));
        }
        for (method, value) in [("default", &self.default), ("example", &self.example)] {
            let Some(value) = value else { continue };
            let key = at(value.key);
            let method = Ident::new(method, key);
            let make = match &value.expr {
                None => quote_spanned!(key=> <#ty as __rt::Default>::default),
                Some(expr) if value.text && held(ty).is_some() => quote_spanned! {site=>
                    { #[allow(clippy::unnecessary_wraps)] fn __value() -> #ty { __rt::Option::Some(#expr) } __value }
                },
                Some(expr) => quote_spanned! {site=>
                    { #[allow(clippy::unnecessary_wraps)] fn __value() -> #ty { #expr } __value }
                },
            };
            calls.extend(quote_spanned!(key=> .#method(#make)));
        }
        if !self.rules.is_empty() {
            let rules = &self.rules;
            calls.extend(quote_spanned!(site=> .rules(|__v, __c| { #(#rules)* })));
        }
        if let Some(header) = &self.header {
            let method = if self.exact_range { "header_in_range" } else { "header" };
            let method = Ident::new(method, at(header.span()));
            calls.extend(quote_spanned!(site=> .#method(#header)));
        }
        match &self.complete {
            None => {}
            Some(Complete::List(list)) => calls.extend(quote_spanned!(site=> .complete_list(&[#(#list),*]))),
            Some(Complete::Function(path, span)) => {
                calls.extend(quote_spanned!(at(*span)=> .complete(|__x| __rt::complete(#path, __x))));
            }
        }
        if self.raw {
            calls.extend(quote!(.raw()));
        }
        calls
    }
}

fn value(entry: &Entry, may_be_alone: bool, errors: &Errors) -> Option<Value> {
    let (expr, text) = match &entry.form {
        Form::Word if may_be_alone => (None, false),
        Form::Value(value) => match literal_string(value) {
            Some(text) => (Some(quote_spanned!(at(text.span())=> __rt::Into::into(#text))), true),
            None => (Some(value.to_token_stream()), false),
        },
        _ => {
            entry.wrong("a value", errors);
            return None;
        }
    };
    Some(Value { key: entry.span(), expr, text })
}

fn header(entry: &Entry, place: Place, errors: &Errors) -> Option<LitStr> {
    if place != Place::Tool {
        errors.at(&entry.key, "`header` is for tools\nremove it");
        return None;
    }
    let name = entry.string(errors)?;
    let text = name.value();
    // RFC 9110, section 5.6.2.
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if text.is_empty() || !text.bytes().all(is_token) {
        errors.at(
            &name,
            format_args!("`{text}` cannot be part of a header's name\nuse letters, digits and `-`: `header = \"Region\"`"),
        );
        return None;
    }
    Some(name)
}

fn complete(entry: &Entry, place: Place, errors: &Errors) -> Option<Complete> {
    if place == Place::Tool {
        errors.at(
            &entry.key,
            "`complete` is for prompts and resources: the protocol completes no tool arguments\n\
             use `one_of(..)` or an enum to publish the values",
        );
        return None;
    }
    match &entry.form {
        Form::List(_) => entry.strings(errors).map(Complete::List),
        Form::Value(Expr::Path(path)) => Some(Complete::Function(path.to_token_stream(), path.span())),
        _ => {
            errors.at(
                &entry.key,
                "`complete` takes a function or a list\nwrite `complete = path::to::function` or `complete(\"a\", \"b\")`",
            );
            None
        }
    }
}
