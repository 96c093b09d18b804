//! The functions that `subscribe = path` names, which decide who may subscribe to a resource.

use std::{collections::BTreeMap, sync::Arc};

use crate::core::{
    arguments::attribute_fn::{
        AttributeFn, InjectedFn, InjectedValues, IntoReturned, Itself, Plain, StartsWith,
    },
    callback::Callback,
    context::Context,
    error::Failure,
};

/// Decides on a subscription.
pub(crate) type DynSubscribe = dyn Fn(Subscription, Context) -> Result<bool, Failure> + Send + Sync;

/// A check that an attribute names.
pub(crate) type SubscribeFn = fn() -> AttributeFn<DynSubscribe>;

/// The target of a client's subscription: a resource, or an instance of a template.
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
    note = "write a plain `fn(&Subscription) -> bool`, or a `Result` of it; more parameters `&State` are injected, such as `&Context`"
)]
pub trait SubscriptionCheck<M>: Copy + Send + Sync + 'static {
    #[doc(hidden)]
    fn erase(self) -> AttributeFn<DynSubscribe>;
}

#[diagnostic::do_not_recommend]
impl<F, N, A> SubscriptionCheck<(N, A)> for F
where
    F: for<'a> InjectedFn<'a, bool, Plain, N, A>,
    N: 'static,
    A: StartsWith<Subscription>,
{
    fn erase(self) -> AttributeFn<DynSubscribe> {
        let mut injects = F::injects();
        // it is given the subscription
        injects.remove(0);
        let call = Arc::new(move |subscription: Subscription, context: Context| {
            self.call(&InjectedValues::new(context, subscription))
        });
        AttributeFn { injects, call: Callback(call) }
    }
}

impl IntoReturned<Self, Itself> for bool {
    fn into_returned(self) -> Result<Self, Failure> {
        Ok(self)
    }
}

/// The check that an attribute names.
pub fn subscribe<M, F: SubscriptionCheck<M>>(check: F) -> AttributeFn<DynSubscribe> {
    check.erase()
}
