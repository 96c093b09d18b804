//! Functions that an attribute names by path (`complete`, `list`, `subscribe`): what they inject, so that `build()` can
//! check that it is registered, what they may return, and how they run: in place, on a blocking thread or as a future,
//! which is dropped when its call is.

use std::{any::Any, fmt, future::Future, pin::Pin};

use super::{
    BoxFuture,
    inject::{Inject, Probe, ProbeDyn},
};
use crate::core::{
    blocking::run_blocking,
    callback::Callback,
    context::Context,
    error::{Failure, IntoFailure},
    extensions::Extensions,
};

/// A function that an attribute names, without its type.
pub struct AttributeFn<F: ?Sized> {
    pub(crate) injects: Vec<Inject>,
    pub(crate) call: Callback<F>,
}

impl<F: ?Sized> fmt::Debug for AttributeFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttributeFn").field("injects", &self.injects).finish_non_exhaustive()
    }
}

/// The values that a function named by an attribute can take by reference: what it is called with, the call's context,
/// and what that provides.
pub struct InjectedValues {
    context: Context,
    given: Extensions,
}

impl InjectedValues {
    pub(crate) fn new(context: Context, given: impl Any + Send + Sync) -> Self {
        let mut values = Extensions::default();
        values.insert(context.clone());
        values.insert(given);
        if let Some(caller) = &context.inner().request.caller {
            values.insert_arc(caller.clone());
        }
        Self { context, given: values }
    }

    /// # Errors
    /// No value of this type came with the request.
    fn find<S: ?Sized + 'static>(&self) -> Result<&S, Failure> {
        self.given.get().map_or_else(|| ProbeDyn::find(&Probe::<S>::new(), &self.context), Ok)
    }

    fn find_optional<S: ?Sized + 'static>(&self) -> Option<&S> {
        self.given.get().or_else(|| ProbeDyn::find_optional(&Probe::<S>::new(), &self.context))
    }
}

impl fmt::Debug for InjectedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InjectedValues").field("given", &self.given).finish_non_exhaustive()
    }
}

/// A future that borrows the values that its function takes.
type BorrowingFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether a function is [`Plain`] or [`Async`].
pub trait FnKind: Sized + 'static {
    /// The return type of a call with borrowed values.
    type Returned<'a, T: 'a>;

    /// Runs a function to its end; `blocking` is for plain ones.
    fn run<T, N, A, F>(function: F, values: InjectedValues, blocking: bool) -> BoxFuture<Result<T, Failure>>
    where
        T: Send + 'static,
        N: 'static,
        A: 'static,
        F: for<'a> InjectedFn<'a, T, Self, N, A>;
}

/// Marks a plain function.
#[derive(Debug)]
pub struct Plain;
/// Marks an async function.
#[derive(Debug)]
pub struct Async;

impl FnKind for Plain {
    type Returned<'a, T: 'a> = Result<T, Failure>;

    fn run<T, N, A, F>(function: F, values: InjectedValues, blocking: bool) -> BoxFuture<Result<T, Failure>>
    where
        T: Send + 'static,
        N: 'static,
        A: 'static,
        F: for<'a> InjectedFn<'a, T, Self, N, A>,
    {
        if blocking {
            Box::pin(run_blocking(move || function.call(&values)))
        } else {
            Box::pin(async move { function.call(&values) })
        }
    }
}

impl FnKind for Async {
    type Returned<'a, T: 'a> = BorrowingFuture<'a, Result<T, Failure>>;

    fn run<T, N, A, F>(function: F, values: InjectedValues, _: bool) -> BoxFuture<Result<T, Failure>>
    where
        T: Send + 'static,
        N: 'static,
        A: 'static,
        F: for<'a> InjectedFn<'a, T, Self, N, A>,
    {
        Box::pin(async move { function.call(&values).await })
    }
}

/// Functions that the explicit `blocking(path)` accepts.
#[diagnostic::on_unimplemented(
    message = "`blocking` is for a plain `fn`, and this one is async",
    label = "async functions do not need `blocking`",
    note = "remove the `blocking(..)`, or the `async`"
)]
pub trait CanBlock: FnKind {}
impl CanBlock for Plain {}

/// A function whose parameters are references to injected values, and which returns a `T`, in the way that `N` marks. `A`
/// are its parameters.
pub trait InjectedFn<'a, T: 'a, K: FnKind, N, A>: Copy + Send + Sync + 'static {
    #[doc(hidden)]
    fn injects() -> Vec<Inject>;
    #[doc(hidden)]
    fn call(self, values: &'a InjectedValues) -> K::Returned<'a, T>;
}

/// The parameters of which the first is a `&T`.
pub trait StartsWith<T: ?Sized>: 'static {}

/// What a parameter `&A` (`required`) or `Option<&A>` (`optional`) is in code.
macro_rules! parameter {
    (required marker $s:ident) => { fn(&$s) };
    (optional marker $s:ident) => { fn(Option<&$s>) };
    (required type $life:lifetime $s:ident) => { &$life $s };
    (optional type $life:lifetime $s:ident) => { Option<&$life $s> };
    (required inject $s:ident) => { Inject::of_attribute_fn::<$s>() };
    (optional inject $s:ident) => { Inject::of_attribute_fn::<$s>().or_none() };
    (required find $values:ident $s:ident) => { $values.find::<$s>() };
    (optional find $values:ident $s:ident) => { Ok::<_, Failure>($values.find_optional::<$s>()) };
}

macro_rules! impl_injected_fn {
    ($($how:ident $s:ident $v:ident)*) => {
        impl<'a, F, T, R, N, $($s: ?Sized + Sync + 'static),*>
            InjectedFn<'a, T, Plain, N, ($(parameter!($how marker $s),)*)> for F
        where
            F: Fn($(parameter!($how type 'a $s)),*) -> R + Copy + Send + Sync + 'static,
            R: IntoReturned<T, N>,
            T: 'a,
        {
            fn injects() -> Vec<Inject> {
                vec![$(parameter!($how inject $s)),*]
            }

            #[allow(unused_variables)]
            fn call(self, values: &'a InjectedValues) -> Result<T, Failure> {
                $(let $v = parameter!($how find values $s)?;)*
                self($($v),*).into_returned()
            }
        }

        impl<'a, F, T, R, N, $($s: ?Sized + Sync + 'static),*>
            InjectedFn<'a, T, Async, N, ($(parameter!($how marker $s),)*)> for F
        where
            F: Fn($(parameter!($how type 'a $s)),*) -> R + Copy + Send + Sync + 'static,
            R: Future<Output: IntoReturned<T, N>> + Send + 'a,
            T: 'a,
        {
            fn injects() -> Vec<Inject> {
                vec![$(parameter!($how inject $s)),*]
            }

            #[allow(unused_variables)]
            fn call(self, values: &'a InjectedValues) -> BorrowingFuture<'a, Result<T, Failure>> {
                // outside of the future, so that whether it is `Send` does not depend on all that a context holds
                $(let $v = match parameter!($how find values $s) {
                    Ok(value) => value,
                    Err(failure) => return Box::pin(async move { Err(failure) }),
                };)*
                Box::pin(async move { self($($v),*).await.into_returned() })
            }
        }
    };
}

/// Implements the trait for parameters each of which is a `&A` or an `Option<&A>`.
macro_rules! for_each_choice {
    ([$($chosen:ident)*]) => { impl_injected_fn! { $($chosen)* } };
    ([$($chosen:ident)*] ($s:ident $v:ident) $($rest:tt)*) => {
        for_each_choice! { [$($chosen)* required $s $v] $($rest)* }
        for_each_choice! { [$($chosen)* optional $s $v] $($rest)* }
    };
}

for_each_choice! { [] }
for_each_choice! { [] (A a) }
for_each_choice! { [] (A a) (B b) }
for_each_choice! { [] (A a) (B b) (C c) }
for_each_choice! { [] (A a) (B b) (C c) (D d) }

impl<T: ?Sized + 'static> StartsWith<T> for (fn(&T),) {}
impl<T: ?Sized + 'static, B: 'static> StartsWith<T> for (fn(&T), B) {}
impl<T: ?Sized + 'static, B: 'static, C: 'static> StartsWith<T> for (fn(&T), B, C) {}
impl<T: ?Sized + 'static, B: 'static, C: 'static, D: 'static> StartsWith<T> for (fn(&T), B, C, D) {}

/// The return types of a function that an attribute names, for a `T`; `N` marks the conversion.
pub trait IntoReturned<T, N> {
    #[doc(hidden)]
    fn into_returned(self) -> Result<T, Failure>;
}

/// Marks a `T` itself.
#[derive(Debug)]
pub struct Itself;
/// Marks an iterator over what a `T` consists of.
#[derive(Debug)]
pub struct Iterated;
/// Marks a `Result` of what `N` marks.
#[derive(Debug)]
pub struct Fallible<N>(N);

impl<T, N, R: IntoReturned<T, N>, E: IntoFailure> IntoReturned<T, Fallible<N>> for Result<R, E> {
    fn into_returned(self) -> Result<T, Failure> {
        self.map_err(|error| Failure::from(error.into_failure()))?.into_returned()
    }
}
