//! Functions that complete a parameter, or list a template's instances: named by path in an attribute, with any
//! number of injected states, sync or async.

use std::{collections::BTreeMap, future::Future, pin::Pin};

use tokio::runtime::Handle;

use super::{
    Inject, ListedResource,
    named::{Named, Values, any_number_of_values},
};
use crate::{
    blocking::{GivenUp, run_blocking},
    context::Context,
    reply::{Failure, ToolError},
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A completer behind its type; without a call it only says what it takes.
pub(crate) type CompleteFn =
    fn(Option<(Completion, Context)>) -> Named<BoxFuture<Result<Vec<String>, Failure>>>;
/// A lister behind its type; without a call it only says what it takes.
pub(crate) type ListFn = fn(Option<Context>) -> Named<BoxFuture<Result<Vec<ListedResource>, Failure>>>;

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

/// Functions that `list = path` can name; `M` tells their shapes apart.
#[diagnostic::on_unimplemented(
    message = "this function cannot list the instances of a template",
    label = "not a lister",
    note = "write `fn() -> Vec<ListedResource>`, sync or async; parameters `&State` are injected"
)]
pub trait Lister<M>: Send + 'static {
    #[doc(hidden)]
    fn takes() -> Vec<Inject>;
    #[doc(hidden)]
    fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>>;
}

/// Marks a plain function.
#[derive(Debug)]
pub struct Sync;
/// Marks an async function.
#[derive(Debug)]
pub struct Async;

/// Runs a future that need not be `Send` on the blocking pool: an async function that borrows its parameters has no
/// `Send` bound that can be written down.
fn elsewhere<T: Send + 'static>(
    body: impl FnOnce(Waiting) -> Result<T, Failure> + Send + 'static,
) -> BoxFuture<Result<T, Failure>> {
    Box::pin(run_blocking(move |given_up| body(Waiting { runtime: Handle::current(), given_up })))
}

/// A thread that waits for a future on behalf of a call.
struct Waiting {
    runtime: Handle,
    given_up: GivenUp,
}

impl Waiting {
    /// The future's output; it is dropped when the call is given up.
    fn wait<T>(self, future: impl Future<Output = T>) -> Result<T, Failure> {
        let Self { runtime, given_up } = self;
        runtime.block_on(async {
            tokio::select! {
                output = future => Ok(output),
                _ = given_up => Err(Failure::Body(ToolError::private("the call was given up"))),
            }
        })
    }
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

        impl<F, R, I, $($s: ?Sized + 'static),*> Lister<(Sync, R, $(fn(&$s),)*)> for F
        where
            F: Fn($(&$s),*) -> R + Send + 'static,
            R: IntoIterator<Item = I>,
            I: Into<ListedResource>,
        {
            fn takes() -> Vec<Inject> {
                vec![$(Inject::taken::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>> {
                Box::pin(async move {
                    let values = Values::new(context);
                    $(let $v = values.find::<$s>()?;)*
                    Ok(self($($v),*).into_iter().map(Into::into).collect())
                })
            }
        }

        impl<F, R, I, $($s: ?Sized + 'static),*> Lister<(Async, R, $(fn(&$s),)*)> for F
        where
            F: AsyncFn($(&$s),*) -> R + Send + 'static,
            R: IntoIterator<Item = I>,
            I: Into<ListedResource>,
        {
            fn takes() -> Vec<Inject> {
                vec![$(Inject::taken::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>> {
                elsewhere(move |thread| {
                    let values = Values::new(context);
                    $(let $v = values.find::<$s>()?;)*
                    let all = thread.wait(self($($v),*))?;
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

/// Runs the lister that an attribute names.
pub fn list<M, F: Lister<M>>(
    function: F,
    call: Option<Context>,
) -> Named<BoxFuture<Result<Vec<ListedResource>, Failure>>> {
    match call {
        Some(context) => Named::gave(function.run(context)),
        None => Named::takes(F::takes()),
    }
}

/// The choices that begin with `value`, ignoring case.
pub(crate) fn prefixed<'a>(choices: impl IntoIterator<Item = &'a str>, value: &str) -> Vec<String> {
    let value = value.to_lowercase();
    choices
        .into_iter()
        .filter(|choice| choice.to_lowercase().starts_with(&value))
        .map(str::to_owned)
        .collect()
}
