//! Every error of one attribute is reported in the same compilation, and none is lost.

use std::cell::{Cell, RefCell};
use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The errors found so far, and the number of those that rustc itself reports. In debug builds, dropping it without
/// calling [`finish`](Self::finish) panics.
pub(crate) struct Errors {
    found: RefCell<Option<Vec<syn::Error>>>,
    /// Errors that rustc reports in the user's function, which would be repeated in code that is generated from it.
    left_to_rustc: Cell<usize>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { found: RefCell::new(Some(Vec::new())), left_to_rustc: Cell::new(0) }
    }

    /// Reports an error that covers `tokens`.
    pub(crate) fn at(&self, tokens: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    /// Reports an error at one span.
    pub(crate) fn at_span(&self, span: Span, message: impl Display) {
        self.add(syn::Error::new(span, message));
    }

    /// Reports an error that syn returned.
    pub(crate) fn add(&self, error: syn::Error) {
        if let Some(found) = self.found.borrow_mut().as_mut() {
            found.push(error);
        }
    }

    /// Counts an error that rustc reports in the user's function.
    pub(crate) fn leave_to_rustc(&self) {
        self.left_to_rustc.set(self.left_to_rustc.get() + 1);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The number of errors so far. Compared before and after a step, it tells whether the step failed.
    pub(crate) fn count(&self) -> usize {
        self.left_to_rustc.get() + self.found.borrow().as_ref().map_or(0, Vec::len)
    }

    /// One `compile_error!` for each error; empty if there was none.
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
