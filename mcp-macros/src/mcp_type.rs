//! `#[mcp_type]`: the three derives that arguments and results need, so that users depend on one crate.
//!
//! Called by `lib`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Path, Token, Visibility};

use crate::attr;
use crate::errors::Errors;
use crate::expand;
use crate::misplaced;

/// The derives, and the crates that they come from.
const DERIVES: [(&str, &str); 3] =
    [("Serialize", "serde"), ("Deserialize", "serde"), ("JsonSchema", "schemars")];

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
    if refuse_attributes_above(&head.attrs, &errors) {
        let mistakes = errors.finish();
        return quote!(#item #mistakes);
    }
    let present = refuse_derives(&head.attrs, &errors);
    let mistakes = errors.finish();
    let private = expand::private(krate.as_ref());
    let text = private.to_string().replace(' ', "");
    let (serde, schemars) = (format!("{text}::serde"), format!("{text}::schemars"));
    let derives = DERIVES.iter().filter(|(name, _)| !present.contains(name)).map(|(name, home)| {
        let (name, home) = (format_ident!("{name}"), format_ident!("{home}"));
        quote_spanned!(Span::mixed_site()=> #private::#home::#name)
    });
    let header = head.header_impl(krate.as_ref());
    quote_spanned! {Span::mixed_site()=>
        #[derive(#(#derives),*)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        #item
        #header
        #mistakes
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

/// The same derive twice would be a wall of conflicting impls; gives those that are there.
fn refuse_derives(attrs: &[Attribute], errors: &Errors) -> Vec<&'static str> {
    let mut present = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        let Ok(paths) = attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated) else {
            continue;
        };
        for path in paths {
            let Some(last) = path.segments.last() else { continue };
            let Some((name, _)) = DERIVES.iter().find(|(name, _)| last.ident == name) else { continue };
            errors.at(&path, format_args!("`#[mcp_type]` derives `{name}` already\nremove one of them"));
            present.push(*name);
        }
    }
    present
}

/// Attributes of a derive mean nothing above it. The compiler says so, and then stumbles over the derives.
fn refuse_attributes_above(attrs: &[Attribute], errors: &Errors) -> bool {
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
            errors.at(attr, format_args!("`#[{name}]` stands above `#[mcp_type]`\nmove it below"));
            found = true;
        }
    }
    found
}
