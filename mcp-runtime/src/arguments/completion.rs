//! Completion of one argument: by the function that its attribute names, or from the choices that it declares.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use super::{
    BoxFuture,
    attribute_fn::{Async, AttributeFn, InjectedValues, Sync, for_each_arity, run_on_blocking_thread},
    inject::Inject,
};
use crate::{
    context::Context,
    error::Failure,
    schema::{Direction, hoist_defs, minimize},
};

/// A type-erased completer; called with `None`, it only reports what it injects.
pub(crate) type CompleteFn =
    fn(Option<(Completion, Context)>) -> AttributeFn<BoxFuture<Result<Vec<String>, Failure>>>;

/// What is being completed: the text so far, and the arguments chosen before.
///
/// See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Completion {
    /// The parameter's wire name.
    pub argument: String,
    /// What has been typed.
    pub value: String,
    /// The other arguments that are chosen already, by wire name.
    pub arguments: BTreeMap<String, String>,
}

/// Functions that `complete = path` can name; `M` distinguishes their signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot complete a parameter",
    label = "not a completer",
    note = "write `fn(&Completion) -> Vec<String>`, sync or async; more parameters `&State` are injected"
)]
pub trait Completer<M>: Send + 'static {
    #[doc(hidden)]
    fn injects() -> Vec<Inject>;
    #[doc(hidden)]
    fn run(self, completion: Completion, context: Context) -> BoxFuture<Result<Vec<String>, Failure>>;
}

macro_rules! impl_completer {
    ($($(($s:ident $v:ident))*;)*) => {$(
        impl<F, R, I, $($s: ?Sized + 'static),*> Completer<(Sync, R, $(fn(&$s),)*)> for F
        where
            F: Fn(&Completion, $(&$s),*) -> R + Send + 'static,
            R: IntoIterator<Item = I>,
            I: Into<String>,
        {
            fn injects() -> Vec<Inject> {
                vec![$(Inject::of_attribute_fn::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, completion: Completion, context: Context) -> BoxFuture<Result<Vec<String>, Failure>> {
                Box::pin(async move {
                    let values = InjectedValues::new(context);
                    $(let $v = values.find::<$s>()?;)*
                    Ok(self(&completion, $($v),*).into_iter().map(Into::into).collect())
                })
            }
        }

        impl<F, R, I, $($s: ?Sized + 'static),*> Completer<(Async, R, $(fn(&$s),)*)> for F
        where
            F: AsyncFn(&Completion, $(&$s),*) -> R + Send + 'static,
            R: IntoIterator<Item = I>,
            I: Into<String>,
        {
            fn injects() -> Vec<Inject> {
                vec![$(Inject::of_attribute_fn::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, completion: Completion, context: Context) -> BoxFuture<Result<Vec<String>, Failure>> {
                run_on_blocking_thread(move |thread| {
                    let values = InjectedValues::new(context);
                    $(let $v = values.find::<$s>()?;)*
                    let all = thread.block_on(self(&completion, $($v),*))?;
                    Ok(all.into_iter().map(Into::into).collect())
                })
            }
        }
    )*};
}
for_each_arity!(impl_completer);

/// Runs the completer that an attribute names, or reports what it injects.
pub fn complete<M, F: Completer<M>>(
    function: F,
    call: Option<(Completion, Context)>,
) -> AttributeFn<BoxFuture<Result<Vec<String>, Failure>>> {
    match call {
        Some((completion, context)) => AttributeFn::with_outcome(function.run(completion, context)),
        None => AttributeFn::with_injects(F::injects()),
    }
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
pub(crate) fn choices_in_schema(schema: Schema, mut generator: SchemaGenerator) -> Vec<String> {
    let mut schema = schema.to_value();
    hoist_defs(&mut schema, generator.take_definitions(true));
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
