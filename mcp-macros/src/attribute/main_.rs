//! `#[mcp_runtime::main]`: an `async fn main` becomes a `fn main` that blocks on the runtime's executor.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use crate::diagnostics::Errors;
use crate::expand::idents::private_module;
use crate::options::entry;
use crate::syntax::function::Function;

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let errors = Errors::new();
    let krate = entry::read_crate(options, "`#[mcp_runtime::main]`", &errors);
    let mut function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            errors.at_span(
                Span::call_site(),
                "`#[mcp_runtime::main]` belongs to `async fn main()`\nmove it there",
            );
            let errors = errors.finish();
            return quote!(#item #errors);
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
        // rustc would also report the parameters, and the body may use them.
        function.sig.inputs.clear();
        function.body = quote!({ loop {} });
    }
    if !function.sig.generics.params.is_empty() {
        errors.at(&function.sig.generics, "`main` cannot be generic\nname the types");
    }
    if errors.is_empty() {
        let private = private_module(krate.as_ref());
        let body = &function.body;
        function.body = quote_spanned!(Span::mixed_site()=> { #private::block_on(async move #body) });
    }
    let Function { attrs, vis, sig, body } = &function;
    let mut tokens = quote!(#(#attrs)* #vis #sig #body);
    tokens.extend(errors.finish());
    tokens
}
