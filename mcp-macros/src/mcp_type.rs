//! `#[mcp_type]`: the three derives that arguments and results need, so that users depend on one crate.
//!
//! Called by `lib`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Path, Token, Visibility};

use crate::attr;
use crate::errors::Errors;
use crate::expand;
use crate::misplaced;

const DERIVES: [&str; 3] = ["Serialize", "Deserialize", "JsonSchema"];

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let krate = attr::crate_option(options, "`#[mcp_type]`", &errors);
    let head: Head = match syn::parse2(item.clone()) {
        Ok(head) => head,
        Err(_) => {
            let word = misplaced::keyword(item);
            errors.at_span(
                word.map_or_else(Span::call_site, |word| word.span()),
                "`#[mcp_type]` belongs to a `struct` or an `enum`\nmove it there",
            );
            let failed = errors.finish();
            return quote!(#item #failed);
        }
    };
    refuse_derives(&head.attrs, &errors);
    let failed = errors.any();
    let mistakes = errors.finish();
    if failed {
        return quote!(#item #mistakes);
    }
    let private = expand::private(krate.as_ref());
    let text = private.to_string().replace(' ', "");
    let (serde, schemars) = (format!("{text}::serde"), format!("{text}::schemars"));
    let header = head.header_impl(krate.as_ref());
    quote_spanned! {Span::mixed_site()=>
        #[derive(#private::serde::Serialize, #private::serde::Deserialize, #private::schemars::JsonSchema)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        #item
        #header
    }
}

/// What precedes the fields of a type.
struct Head {
    attrs: Vec<Attribute>,
    keyword: Ident,
    name: Ident,
    is_generic: bool,
}

impl Parse for Head {
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

impl Head {
    /// Lets an enum be the value of a header; whether it is a string there is the runtime's to see.
    fn header_impl(&self, krate: Option<&Path>) -> Option<TokenStream> {
        if self.keyword != "enum" || self.is_generic {
            return None;
        }
        let name = &self.name;
        let cfgs: Vec<TokenStream> = self
            .attrs
            .iter()
            .filter(|attr| attr.path().is_ident("cfg"))
            .map(ToTokens::to_token_stream)
            .collect();
        let inner = quote_spanned!(Span::mixed_site()=> impl __rt::HeaderArg for #name {});
        Some(expand::anonymous(krate, &cfgs, &inner))
    }
}

/// The same derive twice would be a wall of conflicting impls.
fn refuse_derives(attrs: &[Attribute], errors: &Errors) {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        let Ok(paths) = attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated) else {
            continue;
        };
        for path in paths {
            let Some(last) = path.segments.last() else { continue };
            if DERIVES.iter().any(|derive| last.ident == derive) {
                errors.at(
                    &path,
                    format_args!("`#[mcp_type]` derives `{}` already\nremove one of them", last.ident),
                );
            }
        }
    }
}
