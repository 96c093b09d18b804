//! What an argument completes to: the function that its attribute names, or by itself the choices that it has.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    arguments::{
        AnyArg, BoxFuture, Inject,
        named::{Async, Named, Sync, Values, any_number_of_values, elsewhere},
    },
    context::Context,
    error::Failure,
    schema::{Direction, generator, hoist_defs, minimize},
};

/// A completer behind its type; without a call it only says what it takes.
pub(crate) type CompleteFn =
    fn(Option<(Completion, Context)>) -> Named<BoxFuture<Result<Vec<String>, Failure>>>;
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

/// Functions that `complete = path` can name; `M` tells their shapes apart.
#[diagnostic::on_unimplemented(
    message = "this function cannot complete a parameter",
    label = "not a completer",
    note = "write `fn(&Completion) -> Vec<String>`, sync or async; more parameters `&State` are injected"
)]
pub trait Completer<M>: Send + 'static {
    #[doc(hidden)]
    fn takes() -> Vec<Inject>;
    #[doc(hidden)]
    fn run(self, completion: Completion, context: Context) -> BoxFuture<Result<Vec<String>, Failure>>;
}

macro_rules! shapes {
    ($($(($s:ident $v:ident))*;)*) => {$(
        impl<F, R, I, $($s: ?Sized + 'static),*> Completer<(Sync, R, $(fn(&$s),)*)> for F
        where
            F: Fn(&Completion, $(&$s),*) -> R + Send + 'static,
            R: IntoIterator<Item = I>,
            I: Into<String>,
        {
            fn takes() -> Vec<Inject> {
                vec![$(Inject::taken::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, completion: Completion, context: Context) -> BoxFuture<Result<Vec<String>, Failure>> {
                Box::pin(async move {
                    let values = Values::new(context);
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
            fn takes() -> Vec<Inject> {
                vec![$(Inject::taken::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, completion: Completion, context: Context) -> BoxFuture<Result<Vec<String>, Failure>> {
                elsewhere(move |thread| {
                    let values = Values::new(context);
                    $(let $v = values.find::<$s>()?;)*
                    let all = thread.wait(self(&completion, $($v),*))?;
                    Ok(all.into_iter().map(Into::into).collect())
                })
            }
        }

    )*};
}
any_number_of_values!(shapes);

/// Runs the completer that an attribute names.
pub fn complete<M, F: Completer<M>>(
    function: F,
    call: Option<(Completion, Context)>,
) -> Named<BoxFuture<Result<Vec<String>, Failure>>> {
    match call {
        Some((completion, context)) => Named::gave(function.run(completion, context)),
        None => Named::takes(F::takes()),
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

/// What an argument completes to by itself: the choices of its attribute, the values of an enum, `true` and `false`.
pub(crate) fn choices(arg: &'static dyn AnyArg) -> Vec<String> {
    if !arg.choices().is_empty() {
        return arg.choices().iter().map(|&choice| choice.to_owned()).collect();
    }
    let mut generator = generator();
    let mut schema = arg.property(&mut generator).to_value();
    hoist_defs(&mut schema, generator.take_definitions(true));
    minimize(&mut schema, Direction::Input);
    let mut found = Vec::new();
    collect(&schema, &mut found);
    found
}

fn collect(schema: &Value, found: &mut Vec<String>) {
    let types = match schema.get("type") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one.as_str()],
        _ => Vec::new(),
    };
    if types.contains(&"boolean") {
        found.extend(["true".to_owned(), "false".to_owned()]);
    }
    let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    found.extend(values.chain(schema.get("const")).filter_map(Value::as_str).map(str::to_owned));
    for key in ["oneOf", "anyOf"] {
        for inner in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect(inner, found);
        }
    }
}
