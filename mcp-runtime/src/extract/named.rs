//! Functions that an attribute names by path (`complete`, `list`, `subscribe`): which state they take, so that `build()`
//! can ask for it, and how they find it when they run.

use std::fmt;

use super::{Inject, Probe, ProbeDyn};
use crate::{context::Context, extensions::Extensions, reply::Failure};

/// Hands a macro how many values such a function may take: type and variable of each.
macro_rules! any_number_of_values {
    ($implement:ident) => {
        $implement! {
            ;
            (A a);
            (A a)(B b);
            (A a)(B b)(C c);
        }
    };
}
pub(super) use any_number_of_values;

/// What such a function gave; without a call to run in, only which state it takes.
pub struct Named<T> {
    pub(crate) takes: Vec<Inject>,
    pub(crate) outcome: Option<T>,
}

impl<T> Named<T> {
    pub(super) fn takes(takes: Vec<Inject>) -> Self {
        Self { takes, outcome: None }
    }

    pub(super) fn gave(outcome: T) -> Self {
        Self { takes: Vec::new(), outcome: Some(outcome) }
    }
}

impl<T> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("takes", &self.takes).finish_non_exhaustive()
    }
}

/// Where such a function finds what it takes: in the call's context, which may be taken itself.
pub(super) struct Values {
    context: Context,
    own: Extensions,
}

impl Values {
    pub(super) fn new(context: Context) -> Self {
        let mut own = Extensions::default();
        own.put(context.clone());
        Self { context, own }
    }

    /// # Errors
    /// No value of this type came with the request.
    pub(super) fn find<S: ?Sized + 'static>(&self) -> Result<&S, Failure> {
        self.own.get().map_or_else(|| ProbeDyn::find(&Probe::<S>::new(), &self.context), Ok)
    }
}
