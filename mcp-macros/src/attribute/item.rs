//! `#[mcp_tool]`, `#[mcp_resource]`, `#[mcp_prompt]` and `#[mcp_event]` on free functions. The function itself is emitted first and
//! unchanged; after an error, a marker without a definition follows it, so that registering it is not another error.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use crate::attribute::misplaced;
use crate::diagnostics::Errors;
use crate::expand::definition::{Fields, invalid_registration, marker, registration};
use crate::model::item::{Item, ItemOptions};
use crate::model::kind::is_expanded_marker;
use crate::syntax::function::Function;

/// Whether an item begins in the first column, where methods are not.
fn is_at_start_of_line(item: &TokenStream) -> bool {
    let first = item.clone().into_iter().next().filter(|_| proc_macro::is_available());
    first.is_some_and(|token| token.span().unwrap().column() == 1)
}

pub(crate) fn expand<O: ItemOptions + Fields>(options: TokenStream, item: TokenStream) -> TokenStream {
    if is_expanded_marker(&options) {
        return item;
    }
    let errors = Errors::new();
    let mut function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let mut tokens = misplaced::report_item(item, O::KIND.attribute(), error, &errors);
            tokens.extend(errors.finish());
            return tokens;
        }
    };
    let mut receiver = function.sig.receiver().cloned();
    if let Some(free) = receiver.take_if(|_| is_at_start_of_line(&item)) {
        errors.at(
            &free,
            "a function outside of an `impl` has no `self`\n\
             take state as `&T`, or move the function into an `impl` with `#[mcp_service]`",
        );
        // which rustc would report as well, where the body uses it too
        function.sig.inputs = function.sig.inputs.into_iter().skip(1).collect();
        function.body = quote!({ loop {} });
        function.attrs.push(syn::parse_quote!(#[allow(unused_variables)]));
    }
    if let Some(receiver) = &receiver {
        let noun = O::KIND.noun();
        let message = if function.has_body() {
            format!(
                "a method becomes a {noun} through its `impl`\n\
                 put `#[mcp_service]` on the `impl`, which is one of the type itself: what a trait declares is called from there"
            )
        } else {
            format!(
                "a method of a trait cannot be a {noun}\n\
                 put `#[mcp_service]` on an `impl` of the type itself, and call the trait's method there"
            )
        };
        errors.at(receiver, message);
    }
    let item = Item::<O>::read(options, &mut function, None, &errors);
    let mut tokens = function.to_token_stream();
    let is_valid = errors.is_empty();
    tokens.extend(errors.finish());
    // A struct inside an `impl` would be a second error.
    if receiver.is_none() {
        tokens.extend(marker(&function, &item.common.marker));
        tokens.extend(if is_valid {
            registration(&function, &item)
        } else {
            invalid_registration(&function, &item)
        });
    }
    tokens
}
