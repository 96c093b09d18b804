//! `#[mcp_error]`: registers which values of a user's error type are public. The type is emitted without the helper
//! attributes, whether or not it is valid. `public_values` finds the variants, and writes a `match` over them; at run time,
//! `ToolError::propagate` in `core/error.rs` of the runtime finds the registration by the error's type.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Fields, Generics, Ident, Item, ItemEnum, Path};

use crate::attribute::misplaced;
use crate::diagnostics::Errors;
use crate::expand::definition::private_scope;
use crate::options::{entry, known};
use crate::syntax::function::cfgs;

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let mut all = false;
    let krate = entry::read_with_crate(options, "`#[mcp_error]`", known::ERROR, &errors, |entry| {
        let is_public = entry.name == "public";
        all |= is_public && entry.flag(&errors).unwrap_or(true);
        is_public
    });
    let is_type = misplaced::find_keyword(item).is_some_and(|word| word == "enum" || word == "struct");
    // anything else is not parsed, since it may have a body
    let item = match is_type.then(|| syn::parse2(item.clone())) {
        Some(Ok(item)) => item,
        Some(Err(error)) => {
            errors.add(error);
            Item::Verbatim(item.clone())
        }
        None => {
            let message = "`#[mcp_error]` belongs to an `enum` or a `struct`\nmove it there";
            misplaced::report_at_keyword(item, message, &errors);
            Item::Verbatim(item.clone())
        }
    };
    let (item, registration) = match item {
        Item::Enum(mut item) => {
            let public = public_values(&mut item, all, &errors);
            report_generics(&item.ident, &item.generics, &errors);
            let registration = register(&item.attrs, &item.ident, krate.as_ref(), &public);
            (Item::Enum(item), registration)
        }
        Item::Struct(mut item) => {
            report_on_type(&mut item.attrs, &errors);
            report_on_fields(&mut item.fields, &errors);
            if !all && errors.is_empty() {
                let name = &item.ident;
                errors.at(name, format_args!("nothing of `{name}` is public\nwrite `#[mcp_error(public)]`"));
            }
            report_generics(&item.ident, &item.generics, &errors);
            let registration = register(&item.attrs, &item.ident, krate.as_ref(), &quote!(true));
            (Item::Struct(item), registration)
        }
        other => (other, TokenStream::new()),
    };
    let mut tokens = item.to_token_stream();
    if errors.is_empty() {
        tokens.extend(registration);
    }
    tokens.extend(errors.finish());
    tokens
}

/// An expression that is true if `self`, a reference to a value of the enum, is public.
fn public_values(item: &mut ItemEnum, all: bool, errors: &Errors) -> TokenStream {
    report_on_type(&mut item.attrs, errors);
    let name = &item.ident;
    let mut arms = TokenStream::new();
    let mut found = 0;
    for variant in &mut item.variants {
        report_on_fields(&mut variant.fields, errors);
        let Some(attr) = take_public(&mut variant.attrs, errors) else { continue };
        if all {
            errors.at(attr, "`#[mcp_error(public)]` makes every variant public\nremove one of them");
        }
        found += 1;
        let ident = &variant.ident;
        let cfgs = cfgs(&variant.attrs);
        arms.extend(quote_spanned!(Span::mixed_site()=> #(#cfgs)* #name::#ident { .. } => true,));
    }
    if found == 0 && !all && errors.is_empty() {
        errors.at(
            name,
            format_args!(
                "no variant of `{name}` is public\nput `#[mcp(public)]` on those whose message the model may read"
            ),
        );
    }
    if all || found == item.variants.len() {
        return quote!(true);
    }
    quote_spanned! {Span::mixed_site()=>
        // `#[cfg]` may leave only public variants
        #[allow(unreachable_patterns)]
        match self {
            #arms
            _ => false,
        }
    }
}

/// Removes the helper attributes of a variant, and returns the one that makes it public.
fn take_public(attrs: &mut Vec<Attribute>, errors: &Errors) -> Option<Attribute> {
    let mut public: Option<Attribute> = None;
    for attr in take_helpers(attrs) {
        let list = attr.meta.require_list().ok().filter(|list| !list.tokens.is_empty());
        let Some(list) = list else {
            errors.at(&attr, "`#[mcp]` has no options\nwrite `#[mcp(public)]`, or remove it");
            continue;
        };
        for option in entry::read(list.tokens.clone(), errors) {
            if option.name != "public" {
                option.report_unknown("a variant", known::ERROR_VARIANT, errors);
            } else if public.is_some() {
                errors.at(&option.key, "option `public` is duplicated\nremove one of them");
            } else if option.flag(errors) != Some(false) {
                public = Some(attr.clone());
            }
        }
    }
    public
}

fn report_on_type(attrs: &mut Vec<Attribute>, errors: &Errors) {
    for attr in take_helpers(attrs) {
        errors
            .at(attr, "`#[mcp(..)]` belongs to a variant\nfor the whole type, write `#[mcp_error(public)]`");
    }
}

fn report_on_fields(fields: &mut Fields, errors: &Errors) {
    for attr in fields.iter_mut().flat_map(|field| take_helpers(&mut field.attrs)) {
        errors.at(
            attr,
            "`#[mcp(..)]` belongs to a variant, since a message is public as a whole\nmove it there; for a struct, write `#[mcp_error(public)]`",
        );
    }
}

/// Values of a generic type have many types, which cannot all be registered.
fn report_generics(name: &Ident, generics: &Generics, errors: &Errors) {
    if !generics.params.is_empty() {
        errors.at(
            &generics.params,
            format_args!(
                "`{name}` is generic, but `#[mcp_error]` registers one type\nwrite the types instead of parameters, or use `.public()` where it fails"
            ),
        );
    }
}

fn take_helpers(attrs: &mut Vec<Attribute>) -> Vec<Attribute> {
    attrs.extract_if(.., |attr| attr.path().is_ident("mcp")).collect()
}

/// `public` is an expression about `self`.
fn register(attrs: &[Attribute], name: &Ident, krate: Option<&Path>, public: &TokenStream) -> TokenStream {
    let inner = quote_spanned! {Span::mixed_site()=>
        impl __rt::PublicError for #name {
            fn is_public(&self) -> bool {
                #public
            }
        }
        #[allow(unused_imports)]
        use __rt::NotAnError as _;
        __rt::inventory::submit! { __rt::RegisteredError::<#name>::VISIBILITY }
    };
    private_scope(krate, &cfgs(attrs), &inner)
}
