//! Completion of one argument: by the function that its attribute names, or from the choices that it declares.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    AnyArg, BoxFuture,
    arg::choices,
    attribute_fn::{
        AttributeFn, CanBlock, FnKind, InjectedFn, InjectedValues, IntoReturned, Iterated, StartsWith,
    },
};
use crate::{
    core::{callback::Callback, context::Context, error::Failure},
    schema::{Direction, minimize},
};

/// Completes an argument.
pub(crate) type DynComplete =
    dyn Fn(Completion, Context) -> BoxFuture<Result<Vec<String>, Failure>> + Send + Sync;

/// A completer that an attribute names.
pub(crate) type CompleteFn = fn() -> AttributeFn<DynComplete>;

/// An argument, and how it completes.
#[derive(Debug, Clone)]
pub(crate) struct ArgumentCompletion {
    pub(crate) argument: Cow<'static, str>,
    pub(crate) source: CompletionSource,
}

/// Where the values that complete an argument come from.
#[derive(Debug, Clone)]
pub(crate) enum CompletionSource {
    /// May be empty.
    Choices(Vec<String>),
    Function(Callback<DynComplete>),
}

impl CompletionSource {
    /// A function given at run time.
    pub(crate) fn function<F, Fut, N>(complete: F) -> Self
    where
        F: Fn(Completion, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReturned<Vec<String>, N>> + Send + 'static,
    {
        let complete = Arc::new(complete);
        Self::Function(Callback(Arc::new(move |completion, context| {
            let complete = complete.clone();
            // called in the first poll, where panics are caught
            Box::pin(async move { complete(completion, context).await.into_returned() })
        })))
    }
}

impl ArgumentCompletion {
    pub(crate) fn of(arg: &'static dyn AnyArg) -> Self {
        let source = match arg.options().complete {
            Some(function) => CompletionSource::Function(function().call),
            None => CompletionSource::Choices(choices(arg)),
        };
        Self { argument: arg.name().into(), source }
    }

    /// Whether it has values to offer.
    pub(crate) fn completes(&self) -> bool {
        match &self.source {
            CompletionSource::Choices(choices) => !choices.is_empty(),
            CompletionSource::Function(_) => true,
        }
    }
}

/// The argument to complete: the text so far, and the arguments chosen before.
///
/// See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Completion {
    /// The parameter's wire name.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// The other arguments that are chosen already, by wire name.
    pub arguments: BTreeMap<String, String>,
}

/// Functions that `complete = path` can name; `M` distinguishes their signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot complete a parameter",
    label = "not a completer",
    note = "write `fn(&Completion) -> Vec<String>`, or a `Result` of it; more parameters `&State` are injected",
    note = "the future of an `async fn` must be `Send`"
)]
pub trait Completer<M>: Copy + Send + Sync + 'static {
    #[doc(hidden)]
    fn erase(self, blocking: bool) -> AttributeFn<DynComplete>;
}

#[diagnostic::do_not_recommend]
impl<F, K, N, A> Completer<(K, N, A)> for F
where
    F: for<'a> InjectedFn<'a, Vec<String>, K, N, A>,
    K: FnKind,
    N: 'static,
    A: StartsWith<Completion>,
{
    fn erase(self, blocking: bool) -> AttributeFn<DynComplete> {
        let mut injects = F::injects();
        // it is given the completion
        injects.remove(0);
        let call = Arc::new(move |completion: Completion, context: Context| {
            K::run(self, InjectedValues::new(context, completion), blocking)
        });
        AttributeFn { injects, call: Callback(call) }
    }
}

impl<R: IntoIterator<Item: Into<String>>> IntoReturned<Vec<String>, Iterated> for R {
    fn into_returned(self) -> Result<Vec<String>, Failure> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}

/// The completer that an attribute names; if it is plain, `blocking` runs it on a thread.
pub fn complete<M, F: Completer<M>>(function: F, blocking: bool) -> AttributeFn<DynComplete> {
    function.erase(blocking)
}

/// The plain completer that an attribute names in `blocking(..)`.
pub fn complete_blocking<K: CanBlock, N, A, F: Completer<(K, N, A)>>(
    function: F,
) -> AttributeFn<DynComplete> {
    function.erase(true)
}

/// The choices that begin with `value`, ignoring case.
pub(crate) fn choices_with_prefix<'a>(
    choices: impl IntoIterator<Item = &'a str>,
    value: &str,
) -> Vec<String> {
    let value = value.to_lowercase();
    choices
        .into_iter()
        .filter(|choice| choice.to_lowercase().starts_with(&value))
        .map(str::to_owned)
        .collect()
}

/// The string and boolean values that a schema allows.
pub(crate) fn choices_in_schema(mut schema: Value) -> Vec<String> {
    minimize(&mut schema, Direction::Input);
    let mut choices = Vec::new();
    collect_choices(&schema, &mut choices);
    choices
}

fn collect_choices(schema: &Value, choices: &mut Vec<String>) {
    let types = match schema.get("type") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one.as_str()],
        _ => Vec::new(),
    };
    if types.contains(&"boolean") {
        choices.extend(["true".to_owned(), "false".to_owned()]);
    }
    let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    choices.extend(values.chain(schema.get("const")).filter_map(Value::as_str).map(str::to_owned));
    for key in ["oneOf", "anyOf"] {
        for alternative in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect_choices(alternative, choices);
        }
    }
}
