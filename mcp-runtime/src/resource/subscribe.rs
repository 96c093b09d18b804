//! Functions that decide who may subscribe to a resource: named by path in an attribute, with any number of injected
//! states. Dispatch asks them before it remembers a subscription.

use std::collections::BTreeMap;

use crate::arguments::{
    Inject,
    named::{Named, Values, any_number_of_values},
};
use crate::{context::Context, error::Failure};

/// A check behind its type; without a call it only says what it takes.
pub(crate) type SubscribeFn = fn(Option<(&Subscription, Context)>) -> Named<Result<bool, Failure>>;

/// What a client wants to be told of: a resource, or an instance of a template.
///
/// ```
/// use mcp_runtime::{Subscription, prelude::*};
///
/// struct Live(Vec<u64>);
///
/// /// Only products that are on sale change.
/// fn on_sale(wanted: &Subscription, live: &Live) -> bool {
///     wanted.variables.get("id").and_then(|id| id.parse().ok()).is_some_and(|id| live.0.contains(&id))
/// }
///
/// /// One product.
/// #[mcp_resource(uri = "catalogue://products/{id}", subscribe = on_sale)]
/// fn product(id: u64) -> String {
///     id.to_string()
/// }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Subscription {
    /// The URI, as the client wrote it.
    pub uri: String,
    /// The template's variables, percent-decoded, by name; a list is joined with `/`.
    pub variables: BTreeMap<String, String>,
}

/// Functions that `subscribe = path` can name; `M` tells their shapes apart.
#[diagnostic::on_unimplemented(
    message = "this function cannot decide on subscriptions",
    label = "not a check of subscriptions",
    note = "write `fn(&Subscription) -> bool`; more parameters `&State` are injected, such as `&Context`"
)]
pub trait SubscriptionCheck<M> {
    #[doc(hidden)]
    fn takes() -> Vec<Inject>;
    #[doc(hidden)]
    fn run(self, wanted: &Subscription, context: Context) -> Result<bool, Failure>;
}

macro_rules! shapes {
    ($($(($s:ident $v:ident))*;)*) => {$(
        impl<F, $($s: ?Sized + 'static),*> SubscriptionCheck<($(fn(&$s),)*)> for F
        where
            F: Fn(&Subscription, $(&$s),*) -> bool,
        {
            fn takes() -> Vec<Inject> {
                vec![$(Inject::taken::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, wanted: &Subscription, context: Context) -> Result<bool, Failure> {
                let values = Values::new(context);
                $(let $v = values.find::<$s>()?;)*
                Ok(self(wanted, $($v),*))
            }
        }
    )*};
}
any_number_of_values!(shapes);

/// Runs the check that an attribute names.
pub fn subscribe<M, F: SubscriptionCheck<M>>(
    check: F,
    call: Option<(&Subscription, Context)>,
) -> Named<Result<bool, Failure>> {
    match call {
        Some((wanted, context)) => Named::gave(check.run(wanted, context)),
        None => Named::takes(F::takes()),
    }
}
