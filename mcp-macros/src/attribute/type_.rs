//! `#[mcp_type]`: derives what arguments and results need through the runtime's own serde and schemars, so that users
//! depend on one crate.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Path, Token, Visibility};

use crate::attribute::{misplaced, type_attributes};
use crate::diagnostics::Errors;
use crate::expand::definition::private_scope;
use crate::expand::derived::{attributes_derive, derive_on_copy, derives, undescribed};
use crate::options::entry;
use crate::syntax::function::cfgs;
use crate::syntax::wire_names;

const DERIVES: [&str; 3] = ["Serialize", "Deserialize", "JsonSchema"];

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let krate = entry::read_crate(options, "`#[mcp_type]`", &errors);
    let head: TypeHead = match syn::parse2(item.clone()) {
        Ok(head) => head,
        Err(_) => {
            let message = "`#[mcp_type]` belongs to a `struct` or an `enum`\nmove it there";
            misplaced::report_at_keyword(item, message, &errors);
            let errors = errors.finish();
            // so that an argument of this type is not another error
            let impls = union_name(item).map(|name| undescribed(&name, krate.as_ref()));
            return quote!(#item #impls #errors);
        }
    };
    if report_attributes_above(&head.attrs, &errors) {
        let errors = errors.finish();
        return quote!(#item #errors);
    }
    let item = &type_attributes::take_mcp(item.clone(), &errors);
    let present = report_derives(&head.attrs, "mcp_type", &errors);
    wire_names::report_duplicates(item, &errors);
    let header = head.header_impl(krate.as_ref());
    let parsed: Option<Item> = syn::parse2(item.clone()).ok().filter(|_| present.is_empty());
    let on_copy = parsed.and_then(|parsed| derive_on_copy(&parsed, krate.as_ref(), errors.is_empty()));
    let errors = errors.finish();
    let derives = match on_copy {
        Some(_) => attributes_derive(krate.as_ref()),
        None => derives(krate.as_ref(), &present),
    };
    quote_spanned! {Span::mixed_site()=>
        #derives
        #item
        #on_copy
        #header
        #errors
    }
}

/// The name of a union.
fn union_name(item: &TokenStream) -> Option<Ident> {
    match syn::parse2(item.clone()) {
        Ok(Item::Union(item)) if item.generics.params.is_empty() => Some(item.ident),
        _ => None,
    }
}

/// The part of a type before its fields.
struct TypeHead {
    attrs: Vec<Attribute>,
    keyword: Ident,
    name: Ident,
    is_generic: bool,
}

impl Parse for TypeHead {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = Attribute::parse_outer(input)?;
        input.parse::<Visibility>()?;
        let keyword = if input.peek(Token![struct]) {
            Ident::new("struct", input.parse::<Token![struct]>()?.span)
        } else {
            Ident::new("enum", input.parse::<Token![enum]>()?.span)
        };
        let name = input.parse()?;
        let is_generic = input.peek(Token![<]);
        input.parse::<TokenStream>()?;
        Ok(Self { attrs, keyword, name, is_generic })
    }
}

impl TypeHead {
    /// Lets an enum be the value of a header. The runtime checks that it is serialized as a string.
    fn header_impl(&self, krate: Option<&Path>) -> Option<TokenStream> {
        if self.keyword != "enum" || self.is_generic {
            return None;
        }
        let name = &self.name;
        let inner = quote_spanned!(Span::mixed_site()=> impl __rt::HeaderArg for #name {});
        Some(private_scope(krate, &cfgs(&self.attrs), &inner))
    }
}

/// Reports and returns the derives that are already present. Repeating one would cause an error for each impl.
pub(super) fn report_derives(attrs: &[Attribute], attribute: &str, errors: &Errors) -> Vec<&'static str> {
    let mut present = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        let Ok(paths) = attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated) else {
            continue;
        };
        for path in paths {
            let Some(last) = path.segments.last() else { continue };
            let Some(name) = DERIVES.iter().find(|name| last.ident == **name) else { continue };
            errors.at(&path, format_args!("`#[{attribute}]` derives `{name}` already\nremove one of them"));
            present.push(*name);
        }
    }
    present
}

/// Reports helper attributes above the derives, where rustc does not resolve them, and returns whether there are any.
/// The derives are then left out, because each of them would add errors.
fn report_attributes_above(attrs: &[Attribute], errors: &Errors) -> bool {
    if !proc_macro::is_available() {
        return false;
    }
    let here = Span::call_site().unwrap();
    let mut found = false;
    for attr in attrs {
        let Some(name) = attr.path().get_ident().filter(|name| *name == "serde" || *name == "schemars")
        else {
            continue;
        };
        let there = name.span().unwrap();
        if there.file() == here.file() && (there.line(), there.column()) < (here.line(), here.column()) {
            errors.at(attr, format_args!("`#[{name}]` is above `#[mcp_type]`\nmove it below"));
            found = true;
        }
    }
    found
}
