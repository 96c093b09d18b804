//! The functions that `subscribe = path` names, which decide who may subscribe to a resource.

use std::collections::BTreeMap;

use crate::{
    arguments::{
        Inject,
        attribute_fn::{AttributeFn, InjectedValues, for_each_arity},
    },
    context::Context,
    error::Failure,
};

/// A type-erased check; called with `None`, it only reports what it injects.
pub(crate) type SubscribeFn = fn(Option<(&Subscription, Context)>) -> AttributeFn<Result<bool, Failure>>;

/// What a client subscribes to: a resource, or an instance of a template.
///
/// ```
/// use mcp_runtime::{prelude::*, resource::Subscription};
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

/// Functions that `subscribe = path` can name; `M` distinguishes their signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot decide on subscriptions",
    label = "not a check of subscriptions",
    note = "write `fn(&Subscription) -> bool`; more parameters `&State` are injected, such as `&Context`"
)]
pub trait SubscriptionCheck<M> {
    #[doc(hidden)]
    fn injects() -> Vec<Inject>;
    #[doc(hidden)]
    fn run(self, subscription: &Subscription, context: Context) -> Result<bool, Failure>;
}

macro_rules! impl_subscription_check {
    ($($(($s:ident $v:ident))*;)*) => {$(
        impl<F, $($s: ?Sized + 'static),*> SubscriptionCheck<($(fn(&$s),)*)> for F
        where
            F: Fn(&Subscription, $(&$s),*) -> bool,
        {
            fn injects() -> Vec<Inject> {
                vec![$(Inject::of_attribute_fn::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, subscription: &Subscription, context: Context) -> Result<bool, Failure> {
                let values = InjectedValues::new(context);
                $(let $v = values.find::<$s>()?;)*
                Ok(self(subscription, $($v),*))
            }
        }
    )*};
}
for_each_arity!(impl_subscription_check);

/// Runs the check that an attribute names, or reports what it injects.
pub fn subscribe<M, F: SubscriptionCheck<M>>(
    check: F,
    call: Option<(&Subscription, Context)>,
) -> AttributeFn<Result<bool, Failure>> {
    match call {
        Some((subscription, context)) => AttributeFn::with_outcome(check.run(subscription, context)),
        None => AttributeFn::with_injects(F::injects()),
    }
}
