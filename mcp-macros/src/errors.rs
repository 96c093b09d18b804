//! Collects every mistake of one attribute, so that all are reported in one compilation.
//!
//! Every parser and check is handed an `&Errors`; only the entry of an expansion creates one.

use std::cell::RefCell;
use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The mistakes found so far; in debug builds it complains when dropped unread.
pub(crate) struct Errors {
    found: RefCell<Option<Vec<syn::Error>>>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { found: RefCell::new(Some(Vec::new())) }
    }

    /// Reports a mistake that covers `tokens`.
    pub(crate) fn at(&self, tokens: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    /// Reports a mistake at one span.
    pub(crate) fn at_span(&self, span: Span, message: impl Display) {
        self.add(syn::Error::new(span, message));
    }

    /// Reports what syn could not parse.
    pub(crate) fn add(&self, error: syn::Error) {
        if let Some(found) = self.found.borrow_mut().as_mut() {
            found.push(error);
        }
    }

    pub(crate) fn any(&self) -> bool {
        self.count() > 0
    }

    /// How many there are so far: whether a part was read without any is then known.
    pub(crate) fn count(&self) -> usize {
        self.found.borrow().as_ref().map_or(0, Vec::len)
    }

    /// Ends the collection: one `compile_error!` for each mistake, nothing if there was none.
    pub(crate) fn finish(self) -> TokenStream {
        let found = self.found.take().unwrap_or_default();
        found.iter().map(syn::Error::to_compile_error).collect()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        debug_assert!(
            std::thread::panicking() || self.found.borrow().is_none(),
            "an expansion ended without reporting its errors"
        );
    }
}
