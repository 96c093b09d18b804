//! An expansion that panics is one error, and the annotated item stays: other code that uses it compiles, and an editor
//! still completes its body.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proc_macro2::{Span, TokenStream};

use crate::attribute::misplaced;
use crate::diagnostics::Errors;

/// Expands an attribute; after a panic, returns the item without helper attributes, and the error.
pub(crate) fn expand_or_keep(
    options: TokenStream,
    item: TokenStream,
    expand: impl FnOnce(TokenStream, TokenStream) -> TokenStream,
) -> TokenStream {
    let plain = item.clone();
    catch_unwind(AssertUnwindSafe(|| expand(options, item))).unwrap_or_else(|panic| {
        let reason = message(&*panic);
        let errors = Errors::new();
        errors.at_span(
            Span::call_site(),
            format_args!("this attribute panicked, which is a bug of `mcp-runtime`: {reason}\nreport it with the annotated item"),
        );
        let mut tokens = misplaced::strip_item(plain);
        tokens.extend(errors.finish());
        tokens
    })
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("the panic has no message")
}
