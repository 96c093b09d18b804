//! A function whose header is parsed and whose body remains tokens, so that an incomplete body is re-emitted
//! unchanged and still completes in an editor.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Ident, Signature, Visibility};

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
        // First, so that the user's own lint levels win.
        tokens.extend(quote_spanned! {Span::mixed_site()=>
            #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::unused_async)]
        });
        tokens.extend(quote!(#(#attrs)* #vis #sig #body));
    }
}

impl Function {
    pub(crate) fn name(&self) -> String {
        self.sig.ident.unraw().to_string()
    }

    /// Whether a block follows the signature, and not a `;`.
    pub(crate) fn has_body(&self) -> bool {
        matches!(self.body.clone().into_iter().next(), Some(TokenTree::Group(_)))
    }

    pub(crate) fn is_async(&self) -> bool {
        self.sig.asyncness.is_some()
    }

    /// The lifetimes that the function declares.
    pub(crate) fn lifetimes(&self) -> Vec<String> {
        self.sig.generics.lifetimes().map(|param| param.lifetime.to_string()).collect()
    }

    /// The attributes that generated items share with the function.
    pub(crate) fn shared_attrs(&self) -> Vec<TokenStream> {
        self.attrs.iter().filter_map(shared_attr).collect()
    }
}

/// The `#[cfg]`s of an item, for what is generated beside it.
pub(crate) fn cfgs(attrs: &[Attribute]) -> Vec<TokenStream> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).map(ToTokens::to_token_stream).collect()
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
    // A copied expectation may be unfulfilled, which would be a second warning.
    if name == "expect" {
        let list = &attr.meta.require_list().ok()?.tokens;
        return Some(quote_spanned!(Span::mixed_site()=> #[allow(#list)]));
    }
    None
}
