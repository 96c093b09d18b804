//! `#[mcp_runtime::main]`: an `async fn main` on the runtime that the framework brings.
//!
//! Called by `lib`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use crate::attr;
use crate::errors::Errors;
use crate::expand;
use crate::item::Function;

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let krate = attr::crate_option(options, "`#[mcp_runtime::main]`", &errors);
    let mut function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            errors.at_span(
                Span::call_site(),
                "`#[mcp_runtime::main]` belongs to `async fn main()`\nmove it there",
            );
            let failed = errors.finish();
            return quote!(#item #failed);
        }
    };
    let token = function.sig.asyncness.take();
    if token.is_none() {
        errors.at(
            function.sig.fn_token,
            "`#[mcp_runtime::main]` is for an `async fn`\nadd `async`, or remove the attribute",
        );
    }
    if !function.sig.inputs.is_empty() {
        errors.at(&function.sig.inputs, "`main` takes no parameters\nread `std::env::args()` in the body");
        // The compiler would refuse them as well, and the body may use them.
        function.sig.inputs.clear();
        function.body = quote!({ loop {} });
    }
    if !function.sig.generics.params.is_empty() {
        errors.at(&function.sig.generics, "`main` cannot be generic\nname the types");
    }
    if !errors.any() {
        let private = expand::private(krate.as_ref());
        let body = &function.body;
        function.body = quote_spanned!(Span::mixed_site()=> { #private::block_on(async move #body) });
    }
    let Function { attrs, vis, sig, body } = &function;
    let mut tokens = quote!(#(#attrs)* #vis #sig #body);
    tokens.extend(errors.finish());
    tokens
}
